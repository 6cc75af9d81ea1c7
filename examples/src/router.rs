//! Sends an HTTP request for each session that expires.
//!
//! A session is an item with an expiry. The sweeper of the store removes it then, which is a record in the change
//! stream. A router selects these changes by a pattern and posts them to a webhook, whose first request fails and is
//! retried. A handler in the program processes the sessions that users end themselves.
//!
//! `cargo run -p floe-examples --bin router`

#![expect(clippy::print_stdout, reason = "the program prints its results")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use floe::changes::sink::Webhook;
use floe::changes::{Cause, ChangeConsumer, Pattern, Removed, Router, consumer};
use floe::model::Expiry;
use floe::{Db, Model, Tx};
use floe_examples::{Fallible, arguments, claim};
use floe_local::{LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::{Env, Timestamp};
use tokio::net::TcpListener;

const USAGE: &str = "\
Usage: cargo run -p floe-examples --bin router

Posts each session that expires to a local HTTP server.";

#[derive(Model)]
#[model(table = "sessions", stream)]
struct Session {
    #[model(key)]
    id: String,
    user: String,
    #[model(expires)]
    ends: Expiry,
}

/// The server with the posts it received.
#[derive(Clone, Default)]
struct Server {
    posts: Arc<Mutex<Vec<String>>>,
    requests: Arc<AtomicU32>,
}

#[tokio::main]
async fn main() -> Fallible {
    if arguments(USAGE, 0)?.is_none() {
        return Ok(());
    }
    // A manual clock, so that the program does not wait for an hour.
    let clock = ManualClock::at(Timestamp::from_millis(1_767_225_600_000));
    let options = Options::new()
        .env(Env::manual(clock.clone(), 7))
        .background(false);
    let engine = Arc::new(LocalEngine::memory_with(options)?);
    let db = Db::with_engine(engine.clone());
    db.ensure_tables(&[Session::SCHEMA]).await?;
    db.ensure_tables(&consumer::SCHEMAS).await?;

    let server = Server::default();
    let url = serve(server.clone()).await?;

    // Expired sessions are posted to the server, ended ones go to a handler.
    let expired = Pattern::parse(
        r#"{
            "detail-type": ["REMOVE"],
            "detail": { "record": { "userIdentity": { "principalId": ["dynamodb.amazonaws.com"] } } }
        }"#,
    )?;
    let ended = Arc::new(Mutex::new(Vec::new()));
    let seen = ended.clone();
    let router = Router::new()
        .source("sessions")
        .forward(expired, Webhook::new(&url)?.secret("s3cret"))
        .on_removed::<Session>(Cause::Deleted, move |removed: Removed<Session>| {
            let seen = seen.clone();
            async move {
                println!("{} has logged out", removed.value.user);
                seen.lock()
                    .map_err(|_| floe::changes::Failure::new("poisoned"))?
                    .push(removed.value.user);
                Ok(())
            }
        });
    let consumer = ChangeConsumer::new(&db, "farewell", router)
        .backoff(Duration::from_millis(1), Duration::from_millis(10));

    let ends = Expiry::from(Timestamp::from_millis(1_767_229_200_000));
    db.transact(async |tx: &Tx| {
        for (id, user) in [("s1", "ada"), ("s2", "bob"), ("s3", "eve")] {
            let (id, user) = (id.to_owned(), user.to_owned());
            tx.create(Session { id, user, ends })?;
        }
        Ok::<_, floe::Error>(())
    })
    .await?;
    db.transact(async |tx: &Tx| tx.delete_key::<Session>("s2"))
        .await?;
    clock.advance(Duration::from_secs(2 * 3600));
    while engine.run_background_once()? {}

    let summary = consumer.run_until_caught_up().await?;
    println!(
        "{} changes, {} of them handled",
        summary.records, summary.handled
    );
    let posts = server.posts.lock().map_err(|_| "poisoned")?.clone();
    let ended = ended.lock().map_err(|_| "poisoned")?.clone();
    claim(
        summary.records == 6,
        "three sessions are created and removed",
    )?;
    claim(ended == ["bob"], "one session is ended by its user")?;
    claim(
        posts.len() == 2,
        "the other two sessions are posted once each",
    )?;
    let requests = server.requests.load(Ordering::SeqCst);
    claim(requests == 3, "the first request failed and was retried")?;
    let again = consumer.run_until_caught_up().await?;
    claim(again.records == 0, "no change is delivered twice")
}

/// Starts a server that is unavailable for the first request, and then records the posts.
async fn serve(server: Server) -> Fallible<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/expired", listener.local_addr()?);
    let respond = async move |headers: HeaderMap, body: String| {
        if server.requests.fetch_add(1, Ordering::SeqCst) == 0 {
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        let id = headers
            .get("idempotency-key")
            .and_then(|id| id.to_str().ok());
        println!(
            "POST {} {} bytes, signed: {}",
            id.unwrap_or("?"),
            body.len(),
            headers.contains_key("x-floe-signature")
        );
        match server.posts.lock() {
            Ok(mut posts) => posts.push(body),
            Err(_) => return StatusCode::INTERNAL_SERVER_ERROR,
        }
        StatusCode::NO_CONTENT
    };
    let respond = move |headers: HeaderMap, body: String| {
        let respond = respond.clone();
        async move { respond(headers, body).await }
    };
    let app = axum::Router::new().route("/expired", post(respond));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}
