//! Lines that end with a line feed alone are refused: a proxy in front of the server may read them in another way.

use floe_server::Options;

use crate::support::{Client, call, request, start};

/// A call whose body is in chunks.
fn chunked(body: &str) -> String {
    let head = call("ListTables", "").replace("Content-Length: 0", "Transfer-Encoding: chunked");
    head + body
}

async fn check_refused(text: &str, pieces: &[&str]) {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    for piece in pieces {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    let response = client.response().await;
    assert_eq!(response.status, 400, "{text:?}");
    assert_eq!(response.body, "", "{text:?}");
    assert!(client.is_closed().await, "{text:?}");
}

#[tokio::test]
async fn bare_line_feed_in_a_head_is_refused() {
    for text in [
        "GET / HTTP/1.1\nHost: localhost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\nX-Other: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\n",
        "GET / HTTP/1.1\nHost: localhost\n\n",
        "\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        // The end of the head is not waited for.
        "GET / HTTP/1.1\r\nHost: localhost\n",
    ] {
        check_refused(text, &[text]).await;
    }
}

#[tokio::test]
async fn bare_line_feed_is_found_however_the_head_is_split() {
    let text = "GET / HTTP/1.1\r\nHost: localhost\nX-Other: y\r\n\r\n";
    let (end, _) = text.match_indices('\n').nth(1).unwrap();
    for at in [1, 5, 14, 15, 16, 20, end - 1, end] {
        let (first, second) = text.split_at(at);
        check_refused(text, &[first, second]).await;
    }
}

#[tokio::test]
async fn bare_line_feed_around_chunks_is_refused() {
    for body in [
        "2\n{}\r\n0\r\n\r\n",
        "2;x=y\n{}\r\n0\r\n\r\n",
        "2\r\n{}\n0\r\n\r\n",
        "2\r\n{}\r\n0\n\r\n",
        "2\r\n{}\r\n0\r\n\n",
        "2\r\n{}\r\n0\r\nX-Trailer: y\n\r\n",
    ] {
        let text = chunked(body);
        check_refused(&text, &[&text]).await;
    }
}

#[tokio::test]
async fn line_feeds_in_bodies_pass() {
    let server = start(Options::new()).await;
    let mut client = Client::connect(server.local_addr()).await;
    let body = "\n{\n\"Limit\":\n5\n}\n\n";
    let plain = call("ListTables", body);
    let chunks = chunked("3\r\n\n{\n\r\n4\r\n\n}\n\n\r\n0\r\nX-Trailer: y\r\n\r\n");
    for text in [&plain, &chunks, &plain, &chunks] {
        let response = client.ask(text).await;
        assert_eq!(response.status, 200, "{text:?}: {response:?}");
    }
    for piece in (plain.clone() + &chunks).as_bytes().chunks(3) {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.response().await.status, 200);
    assert_eq!(client.response().await.status, 200);
}

#[tokio::test]
async fn pipelined_requests_are_followed_one_by_one() {
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
        assert_eq!(client.response().await.status, 200);
    }
    assert_eq!(client.response().await.status, 400);
    assert!(client.is_closed().await);
}
