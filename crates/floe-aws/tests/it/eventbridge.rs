//! Amazon EventBridge, simulated by a local server that rejects some entries and fails some requests.

use std::sync::{Arc, Mutex};

use floe::changes::sink::ToBus;
use floe::changes::{Change, Pattern, Router};
use floe_aws::{ConnectOptions, EventBridge};
use floe_store::bus::{BusEntry, EventBus};
use floe_store::op::{ChangeKind, ChangeRecord};
use floe_store::table::StreamView;
use floe_store::{Error, Item, Timestamp};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Returns the response to a request, given its number and body.
type Respond = dyn Fn(usize, &Value) -> (u16, Value) + Send + Sync;

/// A server that records requests.
#[derive(Clone)]
struct Server {
    requests: Arc<Mutex<Vec<Value>>>,
    respond: Arc<Respond>,
}

impl Server {
    async fn start(
        respond: impl Fn(usize, &Value) -> (u16, Value) + Send + Sync + 'static,
    ) -> (Self, EventBridge) {
        let server = Self {
            requests: Arc::default(),
            respond: Arc::new(respond),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        let bus = EventBridge::connect(ConnectOptions::local(url), "shop");
        (server, bus.await.unwrap())
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        loop {
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
                if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                    return;
                }
                continue;
            };
            let head = String::from_utf8_lossy(&bytes).to_lowercase();
            assert!(head.contains("x-amz-target: awsevents.putevents"), "{head}");
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            while bytes.len() < end + 4 + length {
                stream.read_buf(&mut bytes).await.unwrap();
            }
            let request: Vec<u8> = bytes.drain(..end + 4 + length).skip(end + 4).collect();
            let request: Value = serde_json::from_slice(&request).unwrap();
            let number = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(request.clone());
                requests.len() - 1
            };
            let (status, body) = (self.respond)(number, &request);
            let body = body.to_string();
            let response = format!(
                "HTTP/1.1 {status} x\r\ncontent-type: application/x-amz-json-1.1\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(response.as_bytes()).await.unwrap();
        }
    }
}

fn entry(number: usize) -> BusEntry {
    BusEntry {
        source: "shop".to_owned(),
        detail_type: "INSERT".to_owned(),
        detail: format!(r#"{{"number":{number}}}"#),
        resources: vec!["orders".to_owned()],
        time: Timestamp::from_millis(1_735_689_600_000),
    }
}

#[tokio::test]
async fn outcome_is_returned_for_each_entry() {
    let (server, bus) = Server::start(|_, _| {
        let refused = json!({ "ErrorCode": "ThrottlingException", "ErrorMessage": "slow down" });
        let body = json!({ "FailedEntryCount": 1, "Entries": [{ "EventId": "1" }, refused] });
        (200, body)
    })
    .await;
    let outcomes = bus.put_events(vec![entry(1), entry(2)]).await.unwrap();
    let refused = Err("slow down: code=ThrottlingException".to_owned());
    assert_eq!(outcomes, [Ok(()), refused]);
    let requests = server.requests.lock().unwrap().clone();
    let [request] = &requests[..] else {
        unreachable!("{requests:?}")
    };
    assert_eq!(
        request.pointer("/Entries/0").unwrap(),
        &json!({
            "EventBusName": "shop", "Source": "shop", "DetailType": "INSERT", "Detail": "{\"number\":1}",
            "Resources": ["orders"], "Time": 1_735_689_600,
        })
    );
}

#[tokio::test]
async fn transient_errors_are_retried_and_others_returned() {
    let (server, bus) = Server::start(|number, _| match number {
        0 => (
            500,
            json!({ "__type": "InternalException", "message": "oops" }),
        ),
        1 => (
            400,
            json!({ "__type": "ThrottlingException", "message": "slow down" }),
        ),
        _ => (
            200,
            json!({ "FailedEntryCount": 0, "Entries": [{ "EventId": "1" }] }),
        ),
    })
    .await;
    assert_eq!(bus.put_events(vec![entry(1)]).await.unwrap(), [Ok(())]);
    assert_eq!(server.requests.lock().unwrap().len(), 3);
    let (server, bus) = Server::start(|_, _| {
        (
            400,
            json!({ "__type": "AccessDeniedException", "message": "not yours" }),
        )
    })
    .await;
    let error = bus.put_events(vec![entry(1)]).await.unwrap_err();
    assert!(matches!(error, Error::AccessDenied(_)), "{error:?}");
    assert_eq!(server.requests.lock().unwrap().len(), 1);
}

fn change(number: u64) -> Change {
    let keys = Item::new().with("pk", format!("order#{number}").as_str());
    let record = ChangeRecord {
        event_id: format!("event-{number}"),
        kind: ChangeKind::Insert,
        new_image: Some(keys.clone()),
        keys,
        old_image: None,
        sequence: number.to_string(),
        size_bytes: 0,
        view: StreamView::NewAndOldImages,
        created: Timestamp::from_millis(1_735_689_600_000),
        identity: None,
    };
    Change::new("orders", record)
}

/// In a router, a rejected entry fails its change only.
#[tokio::test]
async fn rejected_entries_fail_their_changes() {
    let (_server, bus) = Server::start(|_, request| {
        let entries = request.get("Entries").unwrap().as_array().unwrap().iter();
        let responses = entries.map(|entry| {
            let detail = entry.get("Detail").unwrap().as_str().unwrap();
            if detail.contains("order#3") {
                json!({ "ErrorCode": "InternalFailure", "ErrorMessage": "oops" })
            } else {
                json!({ "EventId": "1" })
            }
        });
        let responses: Vec<Value> = responses.collect();
        (200, json!({ "FailedEntryCount": 1, "Entries": responses }))
    })
    .await;
    let router = Router::new().forward(Pattern::any(), ToBus::new(bus));
    let changes: Vec<Change> = (1..=12).map(change).collect();
    let delivery = router.deliver(&changes).await;
    assert_eq!(delivery.handled, 11);
    let failed: Vec<&str> = delivery
        .failures
        .iter()
        .map(|f| f.event_id.as_str())
        .collect();
    assert_eq!(failed, ["event-3"]);
    let failure = &delivery.failures.first().unwrap().failure;
    assert_eq!(
        failure.to_string(),
        "the bus rejected the entry: oops: code=InternalFailure"
    );
}
