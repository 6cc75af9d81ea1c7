//! A transaction for each HTTP request: which are committed, which run again, and the responses to clients.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::support::{self, no_time};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request};
use axum::http::{HeaderMap, Method, StatusCode, Uri, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Extension, Json, Router};
use floe::changes::outbox::OutboxRecord;
use floe::http::{BODY_BYTES_MAX, RequestTx, TransactionLayer};
use floe::{Db, Error, ErrorKind, Model, Outcome, Tx};
use floe_local::{LocalEngine, Options};
use floe_store::{BoxFuture, Capabilities, Engine, Env};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;
use no_time::NoTime;
use support::{Player, player};
use tower::{Layer, Service, ServiceExt};

struct World {
    /// The database that the requests use.
    db: Db,
    /// The same tables, for another writer that changes what a handler has read.
    other: Db,
    recording: Arc<RecordingEngine>,
    faults: Arc<FaultEngine>,
}

async fn world() -> World {
    world_claiming(Capabilities::all()).await
}

async fn world_claiming(capabilities: Capabilities) -> World {
    // The clock of the engine stands still, so that a deadline passes only where a test says so.
    let options = Options::new().env(TestEnv::seeded(1).env);
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(options).unwrap());
    let other = Db::with_engine(engine.clone());
    let schemas = [Player::SCHEMA, OutboxRecord::SCHEMA];
    other.ensure_tables(&schemas).await.unwrap();
    let create = async |tx: &Tx| tx.create(player("ada", 1)).map(drop);
    other.transact(create).await.unwrap();
    let recording = Arc::new(RecordingEngine::new(engine).claiming(capabilities));
    let faults = Arc::new(FaultEngine::new(recording.clone(), Faults::seeded(1)));
    World {
        db: Db::with_parts(faults.clone(), Env::system(), Arc::new(NoTime)),
        other,
        recording,
        faults,
    }
}

impl World {
    fn layer(&self) -> TransactionLayer {
        TransactionLayer::new(self.db.clone())
    }

    async fn level(&self, id: &str) -> Option<i64> {
        let body = async |tx: &Tx| {
            let found = tx.get::<Player>(id).await?;
            Ok::<_, Error>(found.map(|player| *player.level))
        };
        self.other.transact(body).await.unwrap()
    }
}

/// Adds to a level on a separate task, outside of any transaction.
async fn add_meanwhile(db: Db, id: &'static str, n: i64) {
    let add = async move {
        let body = async |tx: &Tx| {
            tx.get::<Player>(id).await?.unwrap().level += n;
            Ok::<_, Error>(())
        };
        db.transact(body).await
    };
    tokio::spawn(add).await.unwrap().unwrap();
}

fn request(method: Method, uri: &str, body: impl Into<Body>) -> Request {
    let request = Request::builder().method(method).uri(uri);
    let request = request.header(header::CONTENT_TYPE, "application/json");
    request.body(body.into()).unwrap()
}

async fn send(app: &Router, method: Method, uri: &str, body: impl Into<Body>) -> Response {
    let answer = app.clone().oneshot(request(method, uri, body)).await;
    answer.unwrap_or_else(|never| match never {})
}

async fn text(response: Response) -> String {
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn json(response: Response) -> serde_json::Value {
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    serde_json::from_str(&text(response).await).unwrap()
}

/// Counts the runs of a handler.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicU32>);

impl Runs {
    /// The number of this run, from 0.
    fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Creates a player and responds with this status.
async fn create(
    tx: RequestTx,
    Path((name, status)): Path<(String, u16)>,
) -> Result<(StatusCode, String), Error> {
    tx.create(player(&name, 1))?;
    Ok((StatusCode::from_u16(status).unwrap(), name))
}

#[tokio::test]
async fn only_responses_below_400_are_committed() {
    let world = world().await;
    let app = Router::new()
        .route("/{name}/{status}", post(create))
        .layer(world.layer());
    for (status, is_committed) in [
        (200, true),
        (201, true),
        (303, true),
        (399, true),
        (400, false),
        (404, false),
        (500, false),
        (599, false),
    ] {
        let name = format!("p{status}");
        let response = send(&app, Method::POST, &format!("/{name}/{status}"), "").await;
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(text(response).await, name, "the handler's own response");
        assert_eq!(world.recording.take().len(), usize::from(is_committed));
        assert_eq!(world.level(&name).await.is_some(), is_committed, "{status}");
    }
}

#[tokio::test]
async fn safe_methods_cannot_write() {
    let world = world().await;
    let write = async |tx: RequestTx| {
        tx.get::<Player>("ada").await?.unwrap().level += 1;
        Ok::<_, Error>("written")
    };
    let app = Router::new().route("/", any(write)).layer(world.layer());
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        let response = send(&app, method.clone(), "/", "").await;
        assert_eq!(
            response.status(),
            StatusCode::INTERNAL_SERVER_ERROR,
            "{method}"
        );
        let error = response.extensions().get::<Error>().unwrap();
        assert_eq!(error.kind(), ErrorKind::ReadOnly);
        assert_eq!(world.level("ada").await, Some(1));
    }
    for (n, method) in [Method::PUT, Method::PATCH, Method::DELETE]
        .into_iter()
        .enumerate()
    {
        let response = send(&app, method, "/", "").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(world.level("ada").await, Some(n as i64 + 2));
    }
}

#[tokio::test]
async fn read_is_one_request() {
    let world = world().await;
    let read = async |tx: RequestTx| {
        let ada = tx.get::<Player>("ada").await?.unwrap();
        Ok::<_, Error>(ada.level.to_string())
    };
    let app = Router::new().route("/", get(read)).layer(world.layer());
    let response = send(&app, Method::GET, "/", "").await;
    assert_eq!(text(response).await, "1");
    assert_eq!(world.recording.take(), [r#"GetItem Player {"_id": "ada"}"#]);
}

/// Adds the number in the body, while another writer causes a conflict in the first run.
async fn add_contended(
    tx: RequestTx,
    Extension((runs, other)): Extension<(Runs, Db)>,
    Json(n): Json<i64>,
) -> Result<String, Error> {
    let mut ada = tx.get::<Player>("ada").await?.unwrap();
    ada.level += n;
    if runs.next() == 0 {
        add_meanwhile(other, "ada", 10).await;
    }
    Ok(ada.level.to_string())
}

#[tokio::test]
async fn conflict_repeats_the_handler_with_the_same_body() {
    let world = world().await;
    let runs = Runs::default();
    let app = Router::new()
        .route("/", post(add_contended))
        .layer(Extension((runs.clone(), world.other.clone())))
        .layer(world.layer());
    let response = send(&app, Method::POST, "/", "100").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(text(response).await, "111", "the response of the last run");
    assert_eq!(runs.count(), 2);
    assert_eq!(world.level("ada").await, Some(111));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_are_all_counted() {
    let world = world().await;
    let add = async |tx: RequestTx, Json(n): Json<i64>| {
        tx.get::<Player>("ada").await?.unwrap().level += n;
        Ok::<_, Error>(())
    };
    let layer = world.layer().options(|tx, _| tx.retries(100_000));
    let app = Router::new().route("/", post(add)).layer(layer);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let app = app.clone();
            tokio::spawn(async move {
                for _ in 0..25 {
                    let response = send(&app, Method::POST, "/", "2").await;
                    assert_eq!(response.status(), StatusCode::OK);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(world.level("ada").await, Some(1 + 8 * 25 * 2));
}

#[tokio::test]
async fn each_run_receives_the_original_request() {
    #[derive(Clone, Debug, PartialEq)]
    struct Client(u32);
    type Seen = (Method, Uri, Version, HeaderMap, Option<Client>, String);
    let world = world().await;
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let (runs, other, notes) = (Runs::default(), world.other.clone(), seen.clone());
    let handler = async move |tx: RequestTx, mut request: Request| {
        // Changes that a run makes to its request are not visible to the next.
        let client = request.extensions_mut().remove::<Client>();
        let headers = std::mem::take(request.headers_mut());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let version = request.version();
        let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let request = (method, uri, version, headers, client, body);
        notes.lock().unwrap().push(request);
        tx.get::<Player>("ada").await?.unwrap().level += 1;
        if runs.next() == 0 {
            add_meanwhile(other, "ada", 1).await;
        }
        Ok::<_, Error>(())
    };
    let app = Router::new().route("/a/{b}", any(handler));
    let app = app.layer(world.layer()).layer(Extension(Client(7)));
    let mut put = request(Method::PUT, "/a/b?c=d", "the body");
    *put.version_mut() = Version::HTTP_2;
    put.headers_mut().append("x-twice", "1".parse().unwrap());
    put.headers_mut().append("x-twice", "2".parse().unwrap());
    let headers = put.headers().clone();
    let response = app.oneshot(put).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let uri = Uri::from_static("/a/b?c=d");
    let client = Some(Client(7));
    let body = "the body".to_owned();
    let expected = (Method::PUT, uri, Version::HTTP_2, headers, client, body);
    assert_eq!(*seen.lock().unwrap(), [expected.clone(), expected]);
}

#[tokio::test]
async fn body_over_the_limit_is_rejected_before_the_handler_runs() {
    let world = world().await;
    let runs = Runs::default();
    let counted = runs.clone();
    let length = async move |_: RequestTx, request: Request| {
        counted.next();
        let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
        body.len().to_string()
    };
    let by_default = Router::new().route("/", post(length.clone()));
    let by_default = by_default.layer(world.layer());
    let small = Router::new().route("/", post(length));
    let small = small.layer(world.layer().body_bytes_max(10));
    for (app, max) in [(by_default, BODY_BYTES_MAX), (small, 10)] {
        let response = send(&app, Method::POST, "/", "x".repeat(max)).await;
        assert_eq!(text(response).await, max.to_string());
        let before = runs.count();
        let response = send(&app, Method::POST, "/", "x".repeat(max + 1)).await;
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let expected = serde_json::json!({
            "error": "body_too_large",
            "message": format!("the request body is too large: bytes_max={max}"),
        });
        assert_eq!(json(response).await, expected);
        assert_eq!(runs.count(), before);
    }
    assert_eq!(BODY_BYTES_MAX, 2 * 1024 * 1024);
}

/// A body whose client has disconnected.
struct Broken;

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())))
    }
}

#[tokio::test]
async fn incomplete_body_is_rejected_before_the_handler_runs() {
    let world = world().await;
    let app = Router::new()
        .route("/{name}/{status}", post(create))
        .layer(world.layer());
    let response = send(&app, Method::POST, "/eve/200", Body::new(Broken)).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(json(response).await["error"], "body_unread");
    assert_eq!(world.level("eve").await, None);
}

#[tokio::test]
async fn hooks_receive_the_outcome_once() {
    let world = world().await;
    let outcomes: Arc<Mutex<Vec<Outcome>>> = Arc::default();
    let (runs, other, notes) = (Runs::default(), world.other.clone(), outcomes.clone());
    let handler = async move |tx: RequestTx, Path(status): Path<u16>| {
        let notes = notes.clone();
        tx.on_post_commit(async move |outcome| notes.lock().unwrap().push(outcome));
        if status == 299 {
            tx.create(player("ada", 1))?;
        } else {
            tx.get::<Player>("ada").await?.unwrap().level += 1;
        }
        if runs.next() == 0 {
            add_meanwhile(other, "ada", 1).await;
        }
        Ok::<_, Error>(StatusCode::from_u16(status).unwrap())
    };
    let app = Router::new().route("/{status}", post(handler));
    let app = app.layer(world.layer());
    for (uri, status) in [("/200", 200), ("/404", 404), ("/299", 409)] {
        let response = send(&app, Method::POST, uri, "").await;
        assert_eq!(response.status().as_u16(), status);
    }
    let kinds: Vec<_> = outcomes.lock().unwrap().iter().map(kind_of).collect();
    let failed = [ErrorKind::Aborted, ErrorKind::AlreadyExists].map(Some);
    assert_eq!(kinds, [None, failed[0], failed[1]]);
}

fn kind_of(outcome: &Outcome) -> Option<ErrorKind> {
    match outcome {
        Outcome::Committed => None,
        Outcome::Failed(error) => Some(error.kind()),
    }
}

#[tokio::test]
async fn errors_of_the_request_are_reported_to_the_client() {
    let world = world().await;
    let set = async |tx: RequestTx, Path(level): Path<i64>| {
        tx.get::<Player>("ada").await?.unwrap().level.set(level)
    };
    let leave = async |tx: RequestTx, Path(level): Path<i64>| {
        *tx.get::<Player>("ada").await?.unwrap().level = level;
        Ok::<_, Error>(())
    };
    let grow = async |tx: RequestTx| {
        let mut ada = tx.get::<Player>("ada").await?.unwrap();
        ada.guild.set(Some("x".repeat(500_000)))
    };
    let app = Router::new()
        .route("/create/{name}/{status}", post(create))
        .route("/set/{level}", post(set))
        .route("/leave/{level}", post(leave))
        .route("/grow", post(grow))
        .layer(world.layer());
    // Errors of the handler, and of the commit.
    for uri in ["/set/-5", "/leave/-5"] {
        let response = send(&app, Method::POST, uri, "").await;
        assert_eq!(response.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let expected = serde_json::json!({
            "error": "invalid_field",
            "field": "level",
            "message": "the value is below the minimum: value=-5 min=0 model=Player field=level",
        });
        assert_eq!(json(response).await, expected);
    }
    let response = send(&app, Method::POST, "/create/ada/200", "").await;
    assert_eq!(response.status(), StatusCode::CONFLICT);
    let expected = serde_json::json!({
        "error": "already_exists",
        "message": "the item already exists: model=Player key=\"ada\"",
    });
    assert_eq!(json(response).await, expected);
    let response = send(&app, Method::POST, "/grow", "").await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(json(response).await["error"], "too_large");
}

/// Conflicts in every run.
async fn conflict(tx: RequestTx, Extension(other): Extension<Db>) -> Result<(), Error> {
    tx.get::<Player>("ada").await?.unwrap().level += 1;
    add_meanwhile(other, "ada", 1).await;
    Ok(())
}

#[tokio::test]
async fn exhausted_retries_return_a_retryable_status() {
    let world = world().await;
    let app = Router::new().route("/", post(conflict));
    let app = app.layer(Extension(world.other.clone()));
    let label = |request: &axum::http::request::Parts| request.uri.path().to_owned();
    let layer = world.layer();
    let layer = layer.options(move |tx, request| tx.retries(2).label(label(request)));
    let response = send(&app.clone().layer(layer), Method::POST, "/", "").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    let error = response.extensions().get::<Error>().unwrap().clone();
    assert_eq!(error.kind(), ErrorKind::TransactionFailed);
    assert_eq!(error.attempts(), Some(3));
    assert!(error.to_string().ends_with(" label=/"), "{error}");
    let expected = serde_json::json!({
        "error": "transaction_failed",
        "message": "the server is busy and nothing was written: send the request again later",
    });
    assert_eq!(json(response).await, expected);
    assert_eq!(world.level("ada").await, Some(4), "the others' three");

    let layer = world.layer().options(|tx, _| tx.deadline(Duration::ZERO));
    let response = send(&app.layer(layer), Method::POST, "/", "").await;
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(json(response).await["error"], "deadline");
}

#[tokio::test]
async fn unknown_outcome_is_not_reported_as_retryable() {
    let world = world_claiming(Capabilities::dynamodb()).await;
    // The response to the write is lost, and there is no time to reconcile it.
    let written = world
        .faults
        .script(Operation::WriteItem, FaultKind::LostAfter);
    written.unwrap();
    let add = async move |tx: RequestTx| {
        tx.get::<Player>("ada").await?.unwrap().level += 1;
        Ok::<_, Error>(())
    };
    let layer = world.layer().options(|tx, _| tx.deadline(Duration::ZERO));
    let app = Router::new().route("/", post(add)).layer(layer);
    let response = send(&app, Method::POST, "/", "").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!response.headers().contains_key(header::RETRY_AFTER));
    assert_eq!(json(response).await["error"], "outcome_unknown");
    assert_eq!(world.level("ada").await, Some(2));
}

#[tokio::test]
async fn internal_errors_are_not_revealed_to_clients() {
    let world = world().await;
    let twice = async |tx: RequestTx| {
        let _first = tx.get::<Player>("ada").await?;
        tx.get::<Player>("ada").await.map(drop)
    };
    let app = Router::new().route("/", post(twice)).layer(world.layer());
    let response = send(&app, Method::POST, "/", "").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let error = response.extensions().get::<Error>().unwrap();
    assert!(error.to_string().contains("model=Player"), "{error}");
    let expected = serde_json::json!({
        "error": "fetched_twice",
        "message": "the server failed",
    });
    assert_eq!(json(response).await, expected);
}

#[tokio::test]
async fn transient_read_failure_repeats_the_handler() {
    let world = world().await;
    let runs = Runs::default();
    let counted = runs.clone();
    // The handler turns the error into its own response.
    let handler = async move |tx: RequestTx| {
        counted.next();
        match tx.get::<Player>("ada").await {
            Ok(_) => StatusCode::OK,
            Err(_) => StatusCode::IM_A_TEAPOT,
        }
    };
    let app = Router::new().route("/", get(handler));
    let app = app.layer(world.layer().options(|tx, _| tx.retries(1)));
    let throttle = |times| {
        for _ in 0..times {
            let script = world.faults.script(Operation::GetItem, FaultKind::Throttle);
            script.unwrap();
        }
    };
    throttle(1);
    let response = send(&app, Method::GET, "/", "").await;
    assert_eq!((response.status(), runs.count()), (StatusCode::OK, 2));
    throttle(2);
    let response = send(&app, Method::GET, "/", "").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(runs.count(), 4);
}

#[tokio::test]
async fn busy_store_returns_retry_after() {
    let world = world().await;
    let read = async |tx: RequestTx| tx.get::<Player>("ada").await.map(drop);
    let app = Router::new().route("/", get(read));
    let app = app.layer(world.layer().options(|tx, _| tx.retries(0)));
    let script = world.faults.script(Operation::GetItem, FaultKind::Throttle);
    script.unwrap();
    let response = send(&app, Method::GET, "/", "").await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    assert_eq!(json(response).await["error"], "transaction_failed");
}

#[tokio::test]
async fn row_kept_by_a_task_fails_the_request() {
    let world = world().await;
    let (hold, held) = (Arc::new(tokio::sync::Notify::new()), Runs::default());
    let (released, counted) = (hold.clone(), held.clone());
    let handler = async move |tx: RequestTx| {
        let (has_row, got) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            let mut ada = tx.get::<Player>("ada").await.unwrap().unwrap();
            has_row.send(()).unwrap();
            released.notified().await;
            ada.level += 1;
            drop(ada);
            counted.next();
        });
        got.await.unwrap();
        "done"
    };
    let app = Router::new().route("/", post(handler)).layer(world.layer());
    let response = send(&app, Method::POST, "/", "").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let error = response.extensions().get::<Error>().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(
        error.to_string(),
        "a row was still held when the body ended: model=Player key=\"ada\""
    );
    hold.notify_one();
    while held.count() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        world.level("ada").await,
        Some(1),
        "the change comes too late"
    );
}

/// Checks that a transaction cannot be used any more.
async fn assert_ended(tx: &Tx) {
    let refused = [
        tx.get::<Player>("ada").await.map(drop),
        tx.create(player("eve", 1)).map(drop),
        tx.delete_key::<Player>("ada"),
        tx.outbox("a", &1),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidUse);
    }
}

#[tokio::test]
async fn kept_transaction_cannot_be_used_after_the_request() {
    let world = world().await;
    let (keep, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let handler = async move |tx: RequestTx, Path(status): Path<u16>| {
        tx.get::<Player>("ada").await?.unwrap().level += 1;
        keep.send(tx).unwrap();
        Ok::<_, Error>(StatusCode::from_u16(status).unwrap())
    };
    let app = Router::new().route("/{status}", post(handler));
    let app = app.layer(world.layer());
    for (uri, status) in [("/200", 200), ("/404", 404)] {
        let response = send(&app, Method::POST, uri, "").await;
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(world.level("ada").await, Some(2));
        world.recording.take();
        assert_ended(&kept.recv().await.unwrap()).await;
        assert_eq!(world.recording.take(), [""; 0]);
    }
}

#[tokio::test]
async fn read_that_ends_after_the_request_returns_no_row() {
    type Read = Pin<Box<dyn Future<Output = ErrorKind> + Send>>;
    let world = world().await;
    let (keep, mut kept) = tokio::sync::mpsc::unbounded_channel::<Read>();
    let handler = async move |tx: RequestTx| {
        let mut read: Read = Box::pin(async move {
            let row = tx.get::<Player>("ada").await;
            row.map(drop).unwrap_err().kind()
        });
        // The read has started, and yields before it is sent.
        let begun = poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await;
        assert!(begun.is_pending());
        keep.send(read).map_err(drop).unwrap();
    };
    let app = Router::new().route("/", get(handler)).layer(world.layer());
    let response = send(&app, Method::GET, "/", "").await;
    assert_eq!(response.status(), StatusCode::OK);
    let read = kept.recv().await.unwrap();
    assert_eq!(read.await, ErrorKind::InvalidUse);
}

#[tokio::test]
async fn handler_is_not_called_without_the_layer() {
    let read = async |tx: RequestTx| tx.get::<Player>("ada").await.map(drop);
    let maybe = async |tx: Option<RequestTx>| tx.is_some().to_string();
    let app: Router = Router::new().route("/", get(read));
    let app = app.route("/maybe", get(maybe));
    let response = send(&app, Method::GET, "/", "").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let expected = serde_json::json!({
        "error": "missing_layer",
        "message": "the route has no transaction: add a TransactionLayer to its router",
    });
    assert_eq!(json(response).await, expected);
    let response = send(&app, Method::GET, "/maybe", "").await;
    assert_eq!(text(response).await, "false");
    let app = app.layer(world().await.layer());
    let response = send(&app, Method::GET, "/maybe", "").await;
    assert_eq!(text(response).await, "true");
}

#[tokio::test]
async fn panicking_handler_commits_nothing_and_affects_no_other_request() {
    let world = world().await;
    let handler = async |tx: RequestTx, Path(panics): Path<bool>| {
        tx.get::<Player>("ada").await?.unwrap().level += 1;
        assert!(!panics, "in the handler");
        Ok::<_, Error>(())
    };
    let app = Router::new().route("/{panics}", post(handler));
    let app = app.layer(world.layer());
    let panicking = app.clone();
    let task = tokio::spawn(async move { send(&panicking, Method::POST, "/true", "").await });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(world.level("ada").await, Some(1));
    let response = send(&app, Method::POST, "/false", "").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(world.level("ada").await, Some(2));
}

#[tokio::test]
async fn middleware_inside_the_layer_shares_the_transaction() {
    let world = world().await;
    let audit = async |tx: RequestTx, request: Request, next: Next| {
        let response = next.run(request).await;
        match tx.outbox("audit", &response.status().as_u16()) {
            Ok(()) => response,
            Err(error) => error.into_response(),
        }
    };
    let app = Router::new()
        .route("/{name}/{status}", post(create))
        .layer(middleware::from_fn(audit))
        .layer(world.layer());
    let response = send(&app, Method::POST, "/eve/201", "").await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let sent = world.recording.take();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].starts_with("TransactWriteItems [PutItem Player "));
    assert!(sent[0].contains("; PutItem floe_outbox "), "{sent:?}");
}

#[tokio::test]
async fn nested_layer_is_rejected() {
    let world = world().await;
    let app = Router::new()
        .route("/{name}/{status}", post(create))
        .layer(world.layer())
        .layer(world.layer());
    let response = send(&app, Method::POST, "/eve/200", "").await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(json(response).await["error"], "invalid_use");
    assert_eq!(world.level("eve").await, None);
}

#[tokio::test]
async fn options_can_depend_on_the_request() {
    let world = world().await;
    let layer = world.layer().options(|tx, request| {
        if request.headers.contains_key("x-look") {
            tx.read_only()
        } else {
            tx
        }
    });
    let app = Router::new()
        .route("/{name}/{status}", post(create))
        .layer(layer);
    let mut look = request(Method::POST, "/eve/200", "");
    look.headers_mut().insert("x-look", "1".parse().unwrap());
    let response = app.clone().oneshot(look).await.unwrap();
    assert_eq!(json(response).await["error"], "read_only");
    let response = send(&app, Method::POST, "/eve/200", "").await;
    assert_eq!(response.status(), StatusCode::OK);
}

/// A service not from axum: each clone must be polled for readiness, and it can fail.
struct Plain {
    runs: Runs,
    other: Db,
    is_ready: bool,
}

impl Clone for Plain {
    fn clone(&self) -> Self {
        Self {
            runs: self.runs.clone(),
            other: self.other.clone(),
            is_ready: false,
        }
    }
}

impl Service<Request> for Plain {
    type Response = Response;
    type Error = String;
    type Future = BoxFuture<'static, Result<Response, String>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), String>> {
        if self.is_ready {
            return Poll::Ready(Ok(()));
        }
        self.is_ready = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, request: Request) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called before ready");
        let (run, other) = (self.runs.next(), self.other.clone());
        Box::pin(async move {
            let tx = request.extensions().get::<RequestTx>().unwrap();
            let got = tx.get::<Player>("ada").await;
            got.map_err(|e| e.to_string())?.unwrap().level += 1;
            match request.uri().path() {
                "/fails" => return Err("out of order".to_owned()),
                _ if run == 0 => add_meanwhile(other, "ada", 1).await,
                _ => {}
            }
            Ok(Response::new(Body::empty()))
        })
    }
}

#[tokio::test]
async fn any_service_can_be_inside_the_layer() {
    let world = world().await;
    let plain = Plain {
        runs: Runs::default(),
        other: world.other.clone(),
        is_ready: false,
    };
    let runs = plain.runs.clone();
    let service = world.layer().layer(plain);
    let answer = service.clone().oneshot(request(Method::POST, "/", ""));
    assert_eq!(answer.await.unwrap().status(), StatusCode::OK);
    assert_eq!((runs.count(), world.level("ada").await), (2, Some(3)));
    let answer = service.oneshot(request(Method::POST, "/fails", ""));
    assert_eq!(answer.await.unwrap_err(), "out of order");
    assert_eq!((runs.count(), world.level("ada").await), (3, Some(3)));
}

#[tokio::test]
async fn disconnected_client_commits_nothing() {
    let world = world().await;
    let (keep, mut kept) = tokio::sync::mpsc::unbounded_channel();
    let handler = async move |tx: RequestTx| -> Result<(), Infallible> {
        tx.create(player("eve", 1)).map(drop).unwrap();
        keep.send(tx).unwrap();
        std::future::pending().await
    };
    let app = Router::new().route("/", post(handler)).layer(world.layer());
    {
        let mut answer = pin!(send(&app, Method::POST, "/", ""));
        let first = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await;
        assert!(first.is_pending());
    }
    assert_ended(&kept.recv().await.unwrap()).await;
    assert_eq!(world.recording.take(), [""; 0]);
    assert_eq!(world.level("eve").await, None);
}
