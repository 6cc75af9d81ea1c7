//! HTTP responses: statuses, headers and limits, in DynamoDB's order of checks.
//!
//! Cases with a checksum are responses of DynamoDB, recorded by the tests of dynalite.

mod failures;
mod health;
mod line_endings;

use std::time::Duration;

use crate::support::{Client, Response, UNVERIFIED_AUTHORIZATION, call, exchange, request, start};
use floe_server::{Limits, Options};

const SERIALIZATION: (&str, u32) = (
    r#"{"__type":"com.amazon.coral.service#SerializationException"}"#,
    3_948_637_019,
);
const UNKNOWN_OPERATION: (&str, u32) = (
    r#"{"__type":"com.amazon.coral.service#UnknownOperationException"}"#,
    1_368_724_161,
);
const MISSING_TOKEN: (&str, u32) = (
    r#"{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request is missing Authentication Token"}"#,
    2_088_342_776,
);
const UNKNOWN_PAGE: (&str, u32) = ("<UnknownOperationException/>\n", 3_552_371_480);

const LIST: (&str, &str) = ("X-Amz-Target", "DynamoDB_20120810.ListTables");
const JSON: &str = "application/json";
const AMZ_JSON: &str = "application/x-amz-json-1.0";

/// Checks the headers that every response of DynamoDB has.
fn check_headers(response: &Response, case: &str) {
    let id = response.header("x-amzn-requestid");
    let is_id = |b: u8| b.is_ascii_digit() || b.is_ascii_uppercase();
    assert!(id.len() == 52 && id.bytes().all(is_id), "{case}: {id}");
    assert_eq!(response.header("server"), "Server", "{case}");
    assert!(response.header("date").ends_with(" GMT"), "{case}");
    let checksum = crc32fast::hash(response.body.as_bytes()).to_string();
    assert_eq!(response.header("x-amz-crc32"), checksum, "{case}");
}

async fn check(request: &str, status: u16, (body, checksum): (&str, u32), content_type: &str) {
    let server = start(Options::new()).await;
    let response = exchange(server.local_addr(), request).await;
    assert_eq!(response.body, body, "{request}");
    assert_eq!(response.status, status, "{request}");
    assert_eq!(
        response.header("x-amz-crc32"),
        checksum.to_string(),
        "{request}"
    );
    assert_eq!(response.header("content-type"), content_type, "{request}");
    check_headers(&response, request);
    server.shutdown().await;
}

#[tokio::test]
async fn get_returns_the_health_page() {
    let page = ("healthy: dynamodb.us-east-1.amazonaws.com ", 3_128_867_991);
    check(&request("GET /", &[], ""), 200, page, "").await;
    let server = start(Options::new().region("eu-west-1")).await;
    let response = exchange(server.local_addr(), &request("GET /", &[], "")).await;
    assert_eq!(response.body, "healthy: dynamodb.eu-west-1.amazonaws.com ");
}

#[tokio::test]
async fn other_pages_do_not_exist() {
    for line in [
        "OPTIONS /",
        "PUT /",
        "DELETE /",
        "PATCH /",
        "GET /abc",
        "GET /health",
        "POST /abc",
        "POST //",
    ] {
        check(&request(line, &[], ""), 404, UNKNOWN_PAGE, "").await;
    }
}

#[tokio::test]
async fn body_needs_a_supported_content_type() {
    let post = |content_type| request("POST /", &[("Content-Type", content_type), LIST], "hi");
    check(&request("POST /", &[LIST], "hi"), 404, UNKNOWN_PAGE, "").await;
    for unknown in [
        "whatever",
        "application/x-amz-json-1.1",
        "application/jsonasdf",
        "text/plain",
    ] {
        check(&post(unknown), 404, UNKNOWN_PAGE, "").await;
    }
    for (known, expected) in [
        (JSON, JSON),
        (AMZ_JSON, AMZ_JSON),
        ("application/json;", JSON),
        ("  application/json  ;   asfd", JSON),
        ("application/json;blahblah", JSON),
        ("application/x-amz-json-1.0;blahblah", AMZ_JSON),
    ] {
        check(&post(known), 400, SERIALIZATION, expected).await;
    }
}

#[tokio::test]
async fn operation_is_checked_after_the_body_and_before_the_signature() {
    type Headers = &'static [(&'static str, &'static str)];
    let cases: [(Headers, &str, &str); 7] = [
        (&[], "", JSON),
        (&[("Content-Type", JSON)], "{}", JSON),
        (&[("Content-Type", AMZ_JSON)], "{}", AMZ_JSON),
        (
            &[("Content-Type", "application/json;charset=x")],
            "{}",
            JSON,
        ),
        (&[("X-Amz-Target", "whatever")], "", JSON),
        (&[("X-Amz-Target", "DynamoDB_20120810.ListTable")], "", JSON),
        (&[("X-Amz-Target", "Kinesis.ListTables")], "", JSON),
    ];
    for (headers, body, content_type) in cases {
        let request = request("POST /", headers, body);
        check(&request, 400, UNKNOWN_OPERATION, content_type).await;
    }
    let signed = [
        ("Authorization", UNVERIFIED_AUTHORIZATION),
        ("X-Amz-Date", "x"),
    ];
    let request = request("POST /", &signed, "");
    check(&request, 400, UNKNOWN_OPERATION, JSON).await;
}

#[tokio::test]
async fn call_needs_a_signature() {
    let post = |line: &str, authorization: Option<&str>| {
        let mut headers = vec![LIST];
        headers.extend(authorization.map(|value| ("Authorization", value)));
        request(line, &headers, "")
    };
    let query = "POST /?X-Amz-Credential=a&X-Amz-Signature=b&X-Amz-SignedHeaders=c&X-Amz-Date=d";
    for (line, authorization) in [
        ("POST /", None),
        ("POST /", Some("AWS4")),
        ("POST /", Some("Basic dTpw")),
        ("POST /?X-Amz-Algorith", Some("X")),
        (query, None),
    ] {
        check(&post(line, authorization), 400, MISSING_TOKEN, JSON).await;
    }
    let both = "{\"__type\":\"com.amazon.coral.service#InvalidSignatureException\",\"message\":\"Found both \
                'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.\"}";
    let request = post("POST /?X-Amz-Algorithm", Some("X"));
    check(&request, 400, (both, 2_139_606_068), JSON).await;
}

fn incomplete(message: &str) -> String {
    format!(
        "{{\"__type\":\"com.amazon.coral.service#IncompleteSignatureException\",\"message\":\"{message}\"}}"
    )
}

#[tokio::test]
async fn signature_needs_all_parts() {
    let all = "Authorization header requires 'Credential' parameter. Authorization header requires 'Signature' \
               parameter. Authorization header requires 'SignedHeaders' parameter. Authorization header requires \
               existence of either a 'X-Amz-Date' or a 'Date' header. Authorization=AWS4-";
    let bare = request("POST /", &[LIST, ("Authorization", "AWS4-")], "");
    check(&bare, 400, (&incomplete(all), 1_828_866_742), JSON).await;
    for (authorization, checksum) in [
        ("AWS4- Signature=b Credential=a", 15_336_762),
        ("AWS4- Signature=b,Credential=a", 1_159_703_774),
        ("AWS4- Signature=b, Credential=a", 164_353_342),
    ] {
        let headers = [LIST, ("Authorization", authorization), ("Date", "a")];
        let message = incomplete(&format!(
            "Authorization header requires 'SignedHeaders' parameter. Authorization={authorization}"
        ));
        let request = request("POST /", &headers, "");
        check(&request, 400, (&message, checksum), JSON).await;
    }
}

#[tokio::test]
async fn query_signature_needs_all_parts() {
    let all = "AWS query-string parameters must include 'X-Amz-Algorithm'. AWS query-string parameters must include \
               'X-Amz-Credential'. AWS query-string parameters must include 'X-Amz-Signature'. AWS query-string \
               parameters must include 'X-Amz-SignedHeaders'. AWS query-string parameters must include 'X-Amz-Date'. \
               Re-examine the query-string parameters.";
    let bare = request("POST /?X-Amz-Algorithm", &[LIST], "");
    check(&bare, 400, (&incomplete(all), 2_900_502_663), JSON).await;
    let line = "POST /?X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-Date=d";
    let message = "AWS query-string parameters must include 'X-Amz-SignedHeaders'. Re-examine the query-string \
                   parameters.";
    let one = request(line, &[LIST], "");
    check(&one, 400, (&incomplete(message), 3_712_057_481), JSON).await;
}

#[tokio::test]
async fn signed_call_without_body_is_invalid_json() {
    let headers = [
        LIST,
        ("Authorization", UNVERIFIED_AUTHORIZATION),
        ("X-Amz-Date", "x"),
    ];
    check(&request("POST /", &headers, ""), 400, SERIALIZATION, JSON).await;
}

#[tokio::test]
async fn requests_on_a_connection_are_handled_in_order() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    for _ in 0..3 {
        let response = client.exchange(&call("ListTables", "{}")).await;
        assert_eq!(response.status, 200);
        assert_eq!(response.body, r#"{"TableNames":[]}"#);
        assert_eq!(response.header("content-type"), AMZ_JSON);
        assert_eq!(response.header("connection"), "");
        check_headers(&response, "ListTables");
    }
    // Two pipelined requests.
    client
        .send(call("ListTables", "{}") + &call("Nothing", "{}"))
        .await;
    assert_eq!(client.read_response().await.status, 200);
    assert_eq!(client.read_response().await.status, 400);
}

// With several threads, so that the large body is parsed in a blocking section.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn body_may_arrive_in_pieces_or_chunks() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let whole = call("ListTables", r#"{"Limit":5}"#);
    for piece in whole.as_bytes().chunks(7) {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.read_response().await.status, 200);
    let chunked = call("ListTables", "").replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let chunks = "4\r\n{\"Li\r\n7\r\nmit\":5}\r\n0\r\n\r\n";
    assert_eq!(client.exchange(&(chunked + chunks)).await.status, 200);
    // A large body, padded with white space.
    let padded = format!("{{{}}}", " ".repeat(3_000_000));
    assert_eq!(
        client.exchange(&call("ListTables", &padded)).await.status,
        200
    );
}

#[tokio::test]
async fn body_that_is_too_large_is_rejected_with_413() {
    let server = start(Options::new()).await;
    let largest = " ".repeat(16 << 20);
    let mut client = Client::connect(server.local_addr()).await;
    let response = client.exchange(&call("ListTables", &largest)).await;
    assert_eq!(response.body, SERIALIZATION.0);

    let (head, _) = largest.split_at(0);
    let announced = call("ListTables", head).replace("Length: 0", "Length: 16777217");
    let chunked =
        call("ListTables", head).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let chunk = format!("1000001\r\n{largest} \r\n0\r\n\r\n");
    for request in [format!("{announced}{largest} "), chunked + &chunk] {
        let mut client = Client::connect(server.local_addr()).await;
        let response = client.exchange(&request).await;
        assert_eq!(response.status, 413);
        assert_eq!(response.header("transfer-encoding"), "chunked");
        assert_eq!(response.header("connection"), "close");
    }
    // With `Expect: 100-continue` the error is sent at once.
    let expecting = announced.replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let mut client = Client::connect(server.local_addr()).await;
    assert_eq!(client.exchange(&expecting).await.status, 413);
}

#[tokio::test]
async fn expect_100_continue_is_honored() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let whole = call("ListTables", "{}").replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let (head, body) = whole.split_at(whole.len() - 2);
    assert_eq!(client.exchange(head).await.status, 100);
    assert_eq!(client.exchange(body).await.status, 200);
}

#[tokio::test]
async fn headers_are_limited() {
    let server = start(Options::new()).await;
    let long = "x".repeat(17 << 10);
    let response = exchange(
        server.local_addr(),
        &request("GET /", &[("X-Long", &long)], ""),
    )
    .await;
    assert_eq!(response.status, 431);
    let many = vec![("X-Many", "x"); 120];
    let response = exchange(server.local_addr(), &request("GET /", &many, "")).await;
    assert_eq!(response.status, 431);
    let most = "x".repeat(14 << 10);
    let response = exchange(
        server.local_addr(),
        &request("GET /", &[("X-Long", &most)], ""),
    )
    .await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn invalid_http_is_rejected() {
    let server = start(Options::new()).await;
    for text in [
        "hello\r\n\r\n",
        "GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ] {
        let mut client = Client::connect(server.local_addr()).await;
        assert_eq!(client.exchange(text).await.status, 400, "{text}");
        assert!(client.is_closed().await);
    }
}

#[tokio::test]
async fn content_length_with_chunked_encoding_is_no_smuggling() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    // A proxy that uses the length would see the second request as part of the body.
    let hidden = request("GET /", &[], "");
    let text = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
        hidden.len() + 5
    );
    client.send(text).await;
    let first = client.read_response().await;
    assert_eq!(first.body, UNKNOWN_OPERATION.0);
    assert!(client.is_closed().await || first.header("connection") == "close");
}

#[tokio::test]
async fn http_1_0_connection_closes_after_one_response() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let response = client.exchange("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(response.status, 200);
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn deeply_nested_json_is_rejected() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let deep = "[".repeat(15 << 20);
    let nested = "{\"\":".repeat(200_000) + "{}" + &"}".repeat(200_000);
    let item = format!("{{\"TableName\":\"x\",\"Item\":{{\"p\":{{\"S\":\"x\"}},\"a\":{nested}}}}}");
    for (operation, body) in [
        ("ListTables", &deep),
        ("PutItem", &deep),
        ("PutItem", &item),
    ] {
        let response = client.exchange(&call(operation, body)).await;
        assert_eq!(response.status, 400, "{operation}");
    }
    assert_eq!(client.exchange(&call("ListTables", "{}")).await.status, 200);
}

#[tokio::test]
async fn shutdown_closes_connections_and_rejects_new_ones() {
    let server = start(Options::new()).await;
    let address = server.local_addr();
    let mut client = Client::connect(address).await;
    assert_eq!(client.exchange(&call("ListTables", "{}")).await.status, 200);
    server.shutdown().await;
    assert!(client.is_closed().await);
    let rejected = tokio::net::TcpStream::connect(address).await;
    assert!(rejected.is_err());
}

#[tokio::test]
async fn new_connection_evicts_an_idle_one() {
    let limits = Limits {
        connections_max: 2,
        ..Limits::default()
    };
    let server = start(Options::new().limits(limits)).await;
    let mut silent = Client::connect(server.local_addr()).await;
    let mut first = Client::connect(server.local_addr()).await;
    assert_eq!(first.exchange(&call("ListTables", "{}")).await.status, 200);
    let mut second = Client::connect(server.local_addr()).await;
    assert_eq!(second.exchange(&call("ListTables", "{}")).await.status, 200);
    assert!(silent.is_closed().await);
    assert_eq!(first.exchange(&call("ListTables", "{}")).await.status, 200);
}

#[tokio::test]
async fn slow_client_is_disconnected_on_a_real_socket() {
    let limits = Limits {
        head_deadline: Duration::from_millis(300),
        ..Limits::default()
    };
    let server = start(Options::new().limits(limits)).await;
    let mut client = Client::connect(server.local_addr()).await;
    client.send("POST / HT").await;
    assert!(client.is_closed().await);
}
