//! Metrics are counted correctly, and clients cannot create labels.

use bytes::Bytes;

use super::*;

fn response(status: u16, body: &'static str) -> ApiResponse {
    ApiResponse {
        status,
        body: Bytes::from_static(body.as_bytes()),
    }
}

#[test]
fn errors_are_counted_by_name() {
    let conflict = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"x"}"#;
    for (status, body, expected) in [
        (200, "{}", "ok"),
        (400, conflict, "TransactionConflictException"),
        (
            500,
            r#"{"__type":"InternalServerError"}"#,
            "InternalServerError",
        ),
        (400, "", "Unknown"),
        (400, "{}", "Unknown"),
    ] {
        assert_eq!(outcome(&response(status, body)), expected);
    }
}

#[test]
fn latency_buckets_are_cumulative() {
    let metrics = Metrics::new();
    for micros in [250, 251, 1_000_000, 60_000_000] {
        let took = Duration::from_micros(micros);
        metrics.record("DynamoDB_20120810.GetItem", &response(200, "{}"), took);
    }
    let text = metrics.text(3);
    for line in [
        "floe_connections 3",
        r#"floe_requests_total{operation="GetItem",outcome="ok"} 4"#,
        r#"floe_request_seconds_bucket{operation="GetItem",le="0.00025"} 1"#,
        r#"floe_request_seconds_bucket{operation="GetItem",le="0.0005"} 2"#,
        r#"floe_request_seconds_bucket{operation="GetItem",le="0.5"} 2"#,
        r#"floe_request_seconds_bucket{operation="GetItem",le="1"} 3"#,
        r#"floe_request_seconds_bucket{operation="GetItem",le="10"} 3"#,
        r#"floe_request_seconds_bucket{operation="GetItem",le="+Inf"} 4"#,
        r#"floe_request_seconds_sum{operation="GetItem"} 61.000501"#,
        r#"floe_request_seconds_count{operation="GetItem"} 4"#,
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\n{text}");
    }
    assert!(!text.contains("PutItem"), "{text}");
}

#[test]
fn unknown_operations_are_counted_as_other() {
    let metrics = Metrics::new();
    for target in ["", "x", "DynamoDB_20120810.Evil\"} 1", "DynamoDB_20120810."] {
        metrics.record(target, &response(400, ""), Duration::ZERO);
    }
    let text = metrics.text(0);
    let line = r#"floe_requests_total{operation="Other",outcome="Unknown"} 4"#;
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("Evil"), "{text}");
}
