//! Figures for Prometheus: they are right, they are told to whom the rest is told, and they cost nothing unless asked for.

use std::sync::Arc;

use crate::support::{Response, ask, call, request, start};
use floe_local::LocalEngine;
use floe_server::{Options, Running, Server, Service};

async fn measured() -> Running {
    let engine = Arc::new(LocalEngine::memory().unwrap());
    let service = Service::new(engine).with_metrics();
    Server::bind(Options::new(), service).await.unwrap().spawn()
}

async fn metrics(running: &Running, headers: &[(&str, &str)]) -> Response {
    let request = request("GET /metrics", headers, "");
    ask(running.local_addr(), &request).await
}

const TABLE: &str = r#"{"TableName":"things","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}"#;

#[tokio::test]
async fn requests_are_counted_by_what_came_of_them() {
    let running = measured().await;
    let put = r#"{"TableName":"things","Item":{"id":{"S":"a"}}"#;
    let refused = format!(r#"{put},"ConditionExpression":"attribute_not_exists(id)"}}"#);
    let told = format!(r#"{put},"ReturnConsumedCapacity":"TOTAL"}}"#);
    let (put, get) = (
        format!("{put}}}"),
        r#"{"TableName":"things","Key":{"id":{"S":"a"}}}"#,
    );
    for (operation, body, status, answered) in [
        ("CreateTable", TABLE, 200, "TableDescription"),
        ("PutItem", put.as_str(), 200, "{}"),
        ("PutItem", told.as_str(), 200, r#""CapacityUnits":1"#),
        ("PutItem", refused.as_str(), 400, "ConditionalCheckFailed"),
        ("GetItem", get, 200, r#"{"Item":{"id":{"S":"a"}}}"#),
        ("Dance", "{}", 400, "UnknownOperationException"),
    ] {
        let answer = ask(running.local_addr(), &call(operation, body)).await;
        assert_eq!(answer.status, status, "{operation} {}", answer.body);
        assert!(
            answer.body.contains(answered),
            "{operation} {}",
            answer.body
        );
    }
    let answer = metrics(&running, &[]).await;
    assert_eq!(answer.status, 200);
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!(answer.header("content-type"), content_type);
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
            answer.body.lines().any(|known| known == line),
            "{line}\n{}",
            answer.body
        );
    }
    assert!(
        !answer.body.contains("floe_connections 0"),
        "{}",
        answer.body
    );
    running.shutdown().await;
}

#[tokio::test]
async fn web_pages_are_not_told() {
    let running = measured().await;
    let page = [("Origin", "https://evil.example")];
    assert_eq!(metrics(&running, &page).await.status, 403);
    running.shutdown().await;
}

#[tokio::test]
async fn there_are_none_unless_they_are_asked_for() {
    let running = start(Options::new()).await;
    let answer = metrics(&running, &[]).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.body, "<UnknownOperationException/>\n");
    running.shutdown().await;
}

#[tokio::test]
async fn canceled_transactions_are_counted_by_reason() {
    let running = measured().await;
    ask(running.local_addr(), &call("CreateTable", TABLE)).await;
    let check = |id: &str| {
        format!(
            r#"{{"ConditionCheck":{{"TableName":"things","Key":{{"id":{{"S":"{id}"}}}},
                "ConditionExpression":"attribute_exists(id)"}}}}"#
        )
    };
    let checks = [check("a"), check("b")].join(",");
    let body = format!(r#"{{"TransactItems":[{checks}]}}"#);
    for _ in 0..2 {
        let answer = ask(running.local_addr(), &call("TransactWriteItems", &body)).await;
        assert!(
            answer.body.contains("TransactionCanceledException"),
            "{}",
            answer.body
        );
    }
    let answer = metrics(&running, &[]).await;
    let line = r#"floe_canceled_transactions_total{reason="ConditionalCheckFailed"} 2"#;
    assert!(
        answer.body.lines().any(|known| known == line),
        "{}",
        answer.body
    );
    running.shutdown().await;
}
