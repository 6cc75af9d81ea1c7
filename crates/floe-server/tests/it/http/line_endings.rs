//! Lines that end with a bare line feed are rejected, because a proxy in front of the server may parse them
//! differently.

use floe_server::Options;

use crate::support::{Client, call, request, start};

/// Returns a call with a chunked body.
fn chunked(body: &str) -> String {
    let head = call("ListTables", "").replace("Content-Length: 0", "Transfer-Encoding: chunked");
    head + body
}

async fn check_rejected(text: &str, pieces: &[&str]) {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    for piece in pieces {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    let response = client.read_response().await;
    assert_eq!(response.status, 400, "{text:?}");
    assert_eq!(response.body, "", "{text:?}");
    assert!(client.is_closed().await, "{text:?}");
}

#[tokio::test]
async fn bare_line_feed_in_a_head_is_rejected() {
    for text in [
        "GET / HTTP/1.1\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\nX-Other: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\n",
        "GET / HTTP/1.1\nHost: localhost\n\n",
        "\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        // Rejected before the head is complete.
        "GET / HTTP/1.1\r\nHost: localhost\n",
    ] {
        check_rejected(text, &[text]).await;
    }
}

#[tokio::test]
async fn bare_line_feed_is_found_in_any_segmentation() {
    let text = "GET / HTTP/1.1\r\nHost: localhost\nX-Other: y\r\n\r\n";
    let (end, _) = text.match_indices('\n').nth(1).unwrap();
    for at in [1, 5, 14, 15, 16, 20, end - 1, end] {
        let (first, second) = text.split_at(at);
        check_rejected(text, &[first, second]).await;
    }
}

#[tokio::test]
async fn bare_line_feed_around_chunks_is_rejected() {
    for body in [
        "2\n{}\r\n0\r\n\r\n",
        "2;x=y\n{}\r\n0\r\n\r\n",
        "2\r\n{}\n0\r\n\r\n",
        "2\r\n{}\r\n0\n\r\n",
        "2\r\n{}\r\n0\r\n\n",
        "2\r\n{}\r\n0\r\nX-Trailer: y\n\r\n",
    ] {
        let text = chunked(body);
        check_rejected(&text, &[&text]).await;
    }
}

#[tokio::test]
async fn line_feeds_in_bodies_are_accepted() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let body = "\n{\n\"Limit\":\n5\n}\n\n";
    let plain = call("ListTables", body);
    let chunks = chunked("3\r\n\n{\n\r\n4\r\n\n}\n\n\r\n0\r\nX-Trailer: y\r\n\r\n");
    for text in [&plain, &chunks, &plain, &chunks] {
        let response = client.exchange(text).await;
        assert_eq!(response.status, 200, "{text:?}: {response:?}");
    }
    for piece in (plain.clone() + &chunks).as_bytes().chunks(3) {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.read_response().await.status, 200);
    assert_eq!(client.read_response().await.status, 200);
}

#[tokio::test]
async fn pipelined_requests_are_parsed_in_sequence() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let call = call("ListTables", "\n{}\n");
    let chunks = chunked("2\r\n{}\r\n0\r\n\r\n");
    let get = request("GET /", &[], "");
    let bad = "GET / HTTP/1.1\r\nHost: localhost\n\r\n";
    let large = super::call("ListTables", &format!("{{{}}}", "\n".repeat(200_000)));
    let text = [&call, &get, &chunks, &large, &get, &chunks, bad].concat();
    client.send(text).await;
    for _ in 0..6 {
        assert_eq!(client.read_response().await.status, 200);
    }
    assert_eq!(client.read_response().await.status, 400);
    assert!(client.is_closed().await);
}
