//! Prometheus metrics: they are correct, protected like other requests, and optional.

use std::sync::Arc;

use crate::support::{Response, call, exchange, request, start};
use floe_local::LocalEngine;
use floe_server::{Options, Server, ServerHandle, Service};

async fn server_with_metrics() -> ServerHandle {
    let engine = Arc::new(LocalEngine::memory().unwrap());
    let service = Service::new(engine).with_metrics();
    Server::bind(Options::new(), service).await.unwrap().spawn()
}

async fn metrics(server: &ServerHandle, headers: &[(&str, &str)]) -> Response {
    let request = request("GET /metrics", headers, "");
    exchange(server.local_addr(), &request).await
}

const TABLE: &str = r#"{"TableName":"things","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#;

#[tokio::test]
async fn requests_are_counted_by_outcome() {
    let server = server_with_metrics().await;
    let put = r#"{"TableName":"things","Item":{"id":{"S":"a"}}"#;
    let rejected = format!(r#"{put},"ConditionExpression":"attribute_not_exists(id)"}}"#);
    let with_capacity = format!(r#"{put},"ReturnConsumedCapacity":"TOTAL"}}"#);
    let (put, get) = (
        format!("{put}}}"),
        r#"{"TableName":"things","Key":{"id":{"S":"a"}}}"#,
    );
    for (operation, body, status, expected) in [
        ("CreateTable", TABLE, 200, "TableDescription"),
        ("PutItem", put.as_str(), 200, "{}"),
        (
            "PutItem",
            with_capacity.as_str(),
            200,
            r#""CapacityUnits":1"#,
        ),
        ("PutItem", rejected.as_str(), 400, "ConditionalCheckFailed"),
        ("GetItem", get, 200, r#"{"Item":{"id":{"S":"a"}}}"#),
        ("Dance", "{}", 400, "UnknownOperationException"),
    ] {
        let response = exchange(server.local_addr(), &call(operation, body)).await;
        assert_eq!(response.status, status, "{operation} {}", response.body);
        assert!(
            response.body.contains(expected),
            "{operation} {}",
            response.body
        );
    }
    let response = metrics(&server, &[]).await;
    assert_eq!(response.status, 200);
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(response.header("content-type"), content_type);
    for line in [
        r#"floe_requests_total{operation="PutItem",outcome="ok"} 2"#,
        r#"floe_requests_total{operation="PutItem",outcome="ConditionalCheckFailedException"} 1"#,
        r#"floe_requests_total{operation="GetItem",outcome="ok"} 1"#,
        r#"floe_requests_total{operation="Other",outcome="UnknownOperationException"} 1"#,
        r#"floe_request_seconds_count{operation="PutItem"} 3"#,
        r#"floe_consumed_capacity_units_total{operation="PutItem",kind="write"} 2"#,
        r#"floe_consumed_capacity_units_total{operation="GetItem",kind="read"} 0.5"#,
    ] {
        assert!(
            response.body.lines().any(|known| known == line),
            "{line}\n{}",
            response.body
        );
    }
    assert!(
        !response.body.contains("floe_connections 0"),
        "{}",
        response.body
    );
    server.shutdown().await;
}

#[tokio::test]
async fn web_pages_cannot_read_metrics() {
    let server = server_with_metrics().await;
    let page = [("Origin", "https://evil.example")];
    assert_eq!(metrics(&server, &page).await.status, 403);
    server.shutdown().await;
}

#[tokio::test]
async fn metrics_are_off_by_default() {
    let server = start(Options::new()).await;
    let response = metrics(&server, &[]).await;
    assert_eq!(response.status, 404);
    assert_eq!(response.body, "<UnknownOperationException/>\n");
    server.shutdown().await;
}

#[tokio::test]
async fn canceled_transactions_are_counted_by_reason() {
    let server = server_with_metrics().await;
    exchange(server.local_addr(), &call("CreateTable", TABLE)).await;
    let check = |id: &str| {
        format!(
            r#"{{"ConditionCheck":{{"TableName":"things","Key":{{"id":{{"S":"{id}"}}}},
                "ConditionExpression":"attribute_exists(id)"}}}}"#
        )
    };
    let checks = [check("a"), check("b")].join(",");
    let body = format!(r#"{{"TransactItems":[{checks}]}}"#);
    for _ in 0..2 {
        let response = exchange(server.local_addr(), &call("TransactWriteItems", &body)).await;
        assert!(
            response.body.contains("TransactionCanceledException"),
            "{}",
            response.body
        );
    }
    let response = metrics(&server, &[]).await;
    let line = r#"floe_canceled_transactions_total{reason="ConditionalCheckFailed"} 2"#;
    assert!(
        response.body.lines().any(|known| known == line),
        "{}",
        response.body
    );
    server.shutdown().await;
}
