//! Compressed requests and responses.

use crate::support::{Client, Response, UNVERIFIED_AUTHORIZATION, call, start};
use floe_server::Options;

const TABLE: &str = r#"{"TableName": "tab", "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}]}"#;

/// Returns a call with a further header and a binary body.
fn call_with(operation: &str, header: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: DynamoDB_20120810.{operation}\r\nX-Amz-Date: 20150830T123600Z\r\n\
         Authorization: {UNVERIFIED_AUTHORIZATION}\r\n{header}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    member.extend(miniz_oxide::deflate::compress_to_vec(bytes, 6));
    member.extend(crc32fast::hash(bytes).to_le_bytes());
    // The length as 32 bits.
    member.extend(bytes.len().to_le_bytes().into_iter().take(4));
    member
}

fn put(key: &str, value: &str) -> Vec<u8> {
    let item = format!(r#"{{"p": {{"S": "{key}"}}, "x": {{"S": "{value}"}}}}"#);
    format!(r#"{{"TableName": "tab", "Item": {item}}}"#).into_bytes()
}

fn get(key: &str, paths: &str) -> String {
    let key = format!(r#"{{"p": {{"S": "{key}"}}}}"#);
    format!(r#"{{"TableName": "tab", "Key": {key}, "ProjectionExpression": "{paths}"}}"#)
}

async fn send(client: &mut Client, request: Vec<u8>) -> Response {
    client.send(request).await;
    client.read_response().await
}

#[tokio::test]
async fn compressed_requests_are_accepted() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    assert_eq!(
        client.exchange(&call("CreateTable", TABLE)).await.status,
        200
    );
    let encoding = "Content-Encoding: gzip";
    let long = "floe".repeat(20_000);
    let halves = |body: Vec<u8>| [gzip(&body[..10]), gzip(&body[10..])].concat();
    for (key, value, body) in [
        ("small", "v", gzip(&put("small", "v"))),
        ("long", &*long, gzip(&put("long", &long))),
        ("two", "v", halves(put("two", "v"))),
    ] {
        let response = send(&mut client, call_with("PutItem", encoding, &body)).await;
        assert_eq!((response.status, &*response.body), (200, "{}"), "{key}");
        let response = client.exchange(&call("GetItem", &get(key, "x"))).await;
        let item = format!(r#"{{"Item":{{"x":{{"S":"{value}"}}}}}}"#);
        assert_eq!(response.body, item, "{key}");
    }
}

#[tokio::test]
async fn invalid_compression_is_rejected() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    assert_eq!(
        client.exchange(&call("CreateTable", TABLE)).await.status,
        200
    );
    let (plain, whole) = (put("a", "v"), gzip(&put("a", "v")));
    let junk = [&whole[..], b"junk"].concat();
    for (encoding, body) in [
        ("gzip", &plain[..]),
        ("gzip", b""),
        ("gzip", &whole[..whole.len() - 1]),
        ("gzip", &junk),
        ("garbage", &plain),
        ("deflate", &plain),
    ] {
        let header = format!("Content-Encoding: {encoding}");
        let response = send(&mut client, call_with("PutItem", &header, body)).await;
        assert_eq!(response.status, 500, "{encoding}");
        let failure = r#"{"__type":"com.amazon.coral.service#InternalFailure""#;
        assert!(response.body.starts_with(failure), "{}", response.body);
        let response = client.exchange(&call("GetItem", &get("a", "x"))).await;
        assert_eq!(response.body, "{}", "{encoding}");
    }
    let plainly = "Content-Encoding: identity";
    let response = send(&mut client, call_with("PutItem", plainly, &plain)).await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn decompressed_size_is_limited() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let spaces = vec![b' '; 16 << 20];
    let bomb = gzip(&[&b"{}"[..], &spaces].concat());
    assert!(bomb.len() < 32 << 10);
    let request = call_with("ListTables", "Content-Encoding: gzip", &bomb);
    assert_eq!(send(&mut client, request).await.status, 413);
}

#[tokio::test]
async fn large_responses_are_compressed_on_request() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    assert_eq!(
        client.exchange(&call("CreateTable", TABLE)).await.status,
        200
    );
    let value = "x".repeat(4096 - 25);
    let body = String::from_utf8(put("a", &value)).unwrap();
    assert_eq!(client.exchange(&call("PutItem", &body)).await.status, 200);
    let plain = client.exchange(&call("GetItem", &get("a", "p, x"))).await;
    assert_eq!(plain.header("content-encoding"), "");

    for encoding in ["gzip", "deflate"] {
        let header = format!("Accept-Encoding: {encoding}");
        let request = |paths: &str| call_with("GetItem", &header, get("a", paths).as_bytes());
        let long = send(&mut client, request("p, x")).await;
        assert_eq!(long.header("content-encoding"), encoding);
        let checksum = crc32fast::hash(&long.bytes).to_string();
        assert_eq!(long.header("x-amz-crc32"), checksum, "{encoding}");
        let text = match encoding {
            "gzip" => miniz_oxide::inflate::decompress_to_vec(&long.bytes[10..]),
            _ => miniz_oxide::inflate::decompress_to_vec_zlib(&long.bytes),
        };
        assert_eq!(text.unwrap(), plain.bytes, "{encoding}");

        let short = send(&mut client, request("x")).await;
        assert_eq!(short.header("content-encoding"), "", "{encoding}");
    }
}
