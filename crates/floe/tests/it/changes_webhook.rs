//! Webhooks, sent to a local server that fails now and then.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe::changes::sink::Webhook;
use floe::changes::{Change, ChangeConsumer, Pattern, Router, consumer};
use floe::{Db, Model, Tx};
use floe_store::op::{ChangeKind, ChangeRecord};
use floe_store::table::StreamView;
use floe_store::{BoxFuture, Item, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request that the server received.
#[derive(Clone, Debug)]
struct Post {
    head: String,
    body: String,
}

impl Post {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A server with scripted responses, and 204 after the last. An empty response closes the connection.
#[derive(Clone, Default)]
struct Server {
    posts: Arc<Mutex<Vec<Post>>>,
    answers: Arc<Mutex<VecDeque<&'static str>>>,
}

impl Server {
    async fn start(answers: &[&'static str]) -> (Self, String) {
        let server = Self::default();
        server.answers.lock().unwrap().extend(answers);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/changes", listener.local_addr().unwrap());
        let served = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        (server, url)
    }

    async fn serve(self, mut stream: TcpStream) {
        while let Some(post) = read(&mut stream).await {
            self.posts.lock().unwrap().push(post);
            let answer = self.answers.lock().unwrap().pop_front();
            let head = match answer {
                Some("") => return,
                Some("never") => std::future::pending().await,
                Some(head) => head,
                None => "204 No Content",
            };
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> Option<Post> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut post = Post {
        head: String::from_utf8(bytes[..head].to_vec()).unwrap(),
        body: String::new(),
    };
    let length: usize = post.header("content-length").unwrap().parse().unwrap();
    while bytes.len() < head + 4 + length {
        stream.read_buf(&mut bytes).await.unwrap();
    }
    post.body = String::from_utf8(bytes[head + 4..].to_vec()).unwrap();
    Some(post)
}

fn change() -> Change {
    let keys = Item::new()
        .with("pk", "lyr#eu.numpy")
        .with("sk", "lyrVrsn#v1");
    let record = ChangeRecord {
        event_id: "event-1".to_owned(),
        kind: ChangeKind::Remove,
        old_image: Some(keys.clone()),
        keys,
        new_image: None,
        sequence: "1".to_owned(),
        size_bytes: 0,
        view: StreamView::NewAndOldImages,
        created: Timestamp::from_millis(1_735_689_600_000),
        identity: None,
    };
    Change::new("layers", record)
}

#[tokio::test]
async fn change_is_posted_with_its_id_and_signature() {
    let (server, url) = Server::start(&[]).await;
    let webhook = Webhook::new(&url).unwrap().secret("s3cret");
    let webhook = webhook.header("Authorization", "Bearer 7").unwrap();
    let router = Router::new()
        .source("klayers")
        .forward(Pattern::any(), webhook);
    let delivery = router.deliver(&[change()]).await;
    assert_eq!((delivery.handled, delivery.failures.len()), (1, 0));
    let posts = server.posts();
    assert_eq!(posts.len(), 1);
    assert!(
        posts[0].head.starts_with("POST /changes HTTP/1.1"),
        "{posts:?}"
    );
    assert_eq!(posts[0].header("content-type"), Some("application/json"));
    assert_eq!(posts[0].header("idempotency-key"), Some("event-1"));
    assert_eq!(posts[0].header("authorization"), Some("Bearer 7"));
    let body: serde_json::Value = serde_json::from_str(&posts[0].body).unwrap();
    assert_eq!(body["source"], "klayers");
    assert_eq!(body["detail"]["pk_type"], "lyr");
    assert_eq!(
        body["detail"]["record"]["dynamodb"]["Keys"]["sk"]["S"],
        "lyrVrsn#v1"
    );
    let expected = hmac_of(b"s3cret", posts[0].body.as_bytes());
    assert_eq!(posts[0].header("x-floe-signature"), Some(expected.as_str()));
}

fn hmac_of(secret: &[u8], body: &[u8]) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret).unwrap();
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// How each response is classified.
#[tokio::test]
async fn transient_and_permanent_failures_are_distinguished() {
    for (answer, is_permanent, pause, reason) in [
        (
            "500 Oops",
            false,
            None,
            "the server rejected the change: status=500",
        ),
        (
            "503 Busy\r\nretry-after: 7",
            false,
            Some(7),
            "the server rejected the change: status=503",
        ),
        (
            "429 Slow\r\nRetry-After: 120",
            false,
            Some(120),
            "the server rejected the change: status=429",
        ),
        (
            "408 Late",
            false,
            None,
            "the server rejected the change: status=408",
        ),
        (
            "404 Gone",
            true,
            None,
            "the server rejected the change: status=404",
        ),
        (
            "301 There\r\nlocation: /x",
            true,
            None,
            "the server rejected the change: status=301",
        ),
        (
            "",
            false,
            None,
            "client error (SendRequest): connection closed before message completed",
        ),
    ] {
        let (_server, url) = Server::start(&[answer]).await;
        let router = Router::new().forward(Pattern::any(), Webhook::new(&url).unwrap());
        let delivery = router.deliver(&[change()]).await;
        let failure = &delivery.failures[0].failure;
        assert_eq!(failure.to_string(), reason);
        assert_eq!(failure.is_permanent(), is_permanent, "{answer}");
        assert_eq!(failure.pause(), pause.map(Duration::from_secs), "{answer}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let router = Router::new().forward(Pattern::any(), Webhook::new(&url).unwrap());
    let delivery = router.deliver(&[change()]).await;
    let failure = &delivery.failures[0].failure;
    assert!(!failure.is_permanent() && failure.to_string().contains("Connection refused"));
}

/// A timer whose sleeps return at once.
struct NoTime;

impl floe::db::Timer for NoTime {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }
}

#[tokio::test]
async fn unresponsive_server_times_out() {
    let (_server, url) = Server::start(&["never"]).await;
    let webhook = Webhook::new(&url).unwrap().timer(Arc::new(NoTime));
    let webhook = webhook.timeout(Duration::from_secs(3));
    let router = Router::new().forward(Pattern::any(), webhook);
    let delivery = router.deliver(&[change()]).await;
    assert_eq!(
        delivery.failures[0].failure.to_string(),
        "the server did not respond in time: timeout_ms=3000"
    );
}

#[derive(Clone, Debug, PartialEq, Model)]
#[model(table = "players", stream)]
struct Player {
    #[model(key)]
    name: String,
    level: i64,
}

/// End to end: from commits through a consumer to a server that fails now and then.
#[tokio::test]
async fn changes_arrive_in_order_at_an_unreliable_server() {
    let answers = [
        "500 a", "204 b", "", "429 c", "204 d", "503 e", "", "204 f", "500 g",
    ];
    let (server, url) = Server::start(&answers).await;
    let db = Db::memory().unwrap();
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    db.ensure_tables(&consumer::SCHEMAS).await.unwrap();
    for level in 1..=20 {
        for name in ["ada", "bob", "eve"] {
            let body = async |tx: &Tx| {
                let name = name.to_owned();
                let mut player = tx.get_or_create(Player { name, level: 0 }).await?;
                player.level.set(level)?;
                Ok::<_, floe::Error>(())
            };
            db.transact(body).await.unwrap();
        }
    }
    let router = Router::new().forward(Pattern::any(), Webhook::new(&url).unwrap());
    let ran = ChangeConsumer::new(&db, "hook", router)
        .table("players")
        .backoff(Duration::from_millis(1), Duration::from_millis(2))
        .run_until_caught_up()
        .await
        .unwrap();
    assert_eq!((ran.handled, ran.dead_letters), (60, 0));
    let mut levels: BTreeMap<String, i64> = BTreeMap::new();
    let mut ids = BTreeMap::new();
    for post in server.posts() {
        let body: serde_json::Value = serde_json::from_str(&post.body).unwrap();
        let image = &body["detail"]["record"]["dynamodb"]["NewImage"];
        let name = image["_id"]["S"].as_str().unwrap().to_owned();
        let level: i64 = image["level"]["N"].as_str().unwrap().parse().unwrap();
        let last = levels.entry(name).or_default();
        assert!(level == *last || level == *last + 1, "{level} after {last}");
        *last = level;
        let id = post.header("idempotency-key").unwrap().to_owned();
        assert_eq!(*ids.entry(id).or_insert(post.body.clone()), post.body);
    }
    assert_eq!(ids.len(), 60);
    assert_eq!(server.posts().len(), 60 + 6);
}
