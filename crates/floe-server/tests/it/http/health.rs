//! Health checks: whether the server accepts writes.

use std::sync::Arc;

use floe_local::LocalEngine;
use floe_server::{Keys, Options, Server, Service};
use floe_store::{Engine, Health, forward_to};

use crate::support::{Client, Response, exchange, request};

/// An engine that reports this health.
struct HealthEngine {
    inner: LocalEngine,
    health: Health,
}

impl Engine for HealthEngine {
    fn health(&self) -> Health {
        self.health.clone()
    }

    forward_to!(self.inner; capabilities, now, table_arn, items, tables, streams);
}

fn writes_refused() -> Health {
    Health::WritesRefused {
        reason: "/var/lib/floe/journal: no space left on device".to_owned(),
    }
}

/// Sends a request to a server whose engine has this health.
async fn get(health: Health, options: Options, path: &str) -> Response {
    let engine = HealthEngine {
        inner: LocalEngine::memory().unwrap(),
        health,
    };
    let service = Service::new(Arc::new(engine)).with_metrics();
    let server = Server::bind(options, service).await.unwrap().spawn();
    let line = format!("GET {path}");
    exchange(server.local_addr(), &request(&line, &[], "")).await
}

async fn check(path: &str, health: Health, status: u16, body: &str) {
    let response = get(health, Options::new(), path).await;
    assert_eq!(
        (response.status, response.body.as_str()),
        (status, body),
        "{path}"
    );
    super::check_headers(&response, path);
}

const REFUSED: &str = "writes refused: the store cannot write; see the server's log";

#[tokio::test]
async fn healthz_reports_whether_writes_are_accepted() {
    check("/healthz", Health::Ready, 200, "ready").await;
    check("/healthz", Health::ReadOnly, 200, "read-only").await;
    check("/healthz", writes_refused(), 503, REFUSED).await;
}

#[tokio::test]
async fn root_page_is_unhealthy_while_writes_are_refused() {
    let healthy = "healthy: dynamodb.us-east-1.amazonaws.com ";
    check("/", Health::Ready, 200, healthy).await;
    check("/", Health::ReadOnly, 200, healthy).await;
    check("/", writes_refused(), 503, REFUSED).await;
}

#[tokio::test]
async fn health_checks_need_no_signature() {
    let options = || Options::new().keys(Keys::one("a", "b"));
    for path in ["/", "/healthz"] {
        assert_eq!(get(Health::Ready, options(), path).await.status, 200);
        assert_eq!(get(writes_refused(), options(), path).await.status, 503);
    }
}

#[tokio::test]
async fn health_checks_require_get() {
    let server = super::start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let response = client.exchange(&request("POST /healthz", &[], "")).await;
    assert_eq!(response.status, 404);
}
