//! Connections with a paused clock: which are closed, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::spawn;
use crate::api_response::ApiResponse;
use crate::http::{Handler, Responder};
use crate::limits::{Limits, TICK};
use crate::options::Options;
use crate::registry::{Phase, Registry};

/// Returns N bytes for `size N`, and for `wait` a response once the gate is opened.
#[derive(Clone, Default)]
struct TestHandler {
    calls: Arc<AtomicUsize>,
    gate: Arc<Gate>,
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Handler for TestHandler {
    async fn call(&self, target: &str, body: &[u8]) -> ApiResponse {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let size = match target.split_once(' ') {
            Some(("size", size)) => size.parse().unwrap(),
            _ => body.len(),
        };
        if target == "wait" {
            self.gate.0.acquire().await.unwrap().forget();
        }
        ApiResponse {
            status: 200,
            body: Bytes::from(vec![b'x'; size]),
        }
    }

    fn precheck(&self, _: &str, _: &[u8]) -> Option<ApiResponse> {
        None
    }
}

/// A server without network.
struct TestServer {
    registry: Arc<Registry>,
    responder: Arc<Responder<TestHandler>>,
    handler: TestHandler,
}

impl TestServer {
    fn new(limits: Limits) -> Self {
        let handler = TestHandler::default();
        let registry = Registry::new(limits);
        let watched = Arc::clone(&registry);
        tokio::spawn(async move { watched.watch().await });
        Self {
            registry,
            responder: Arc::new(Responder::new(&Options::new(), handler.clone())),
            handler,
        }
    }

    async fn connect(&self) -> Client {
        // The size of a typical socket buffer.
        let (client, server) = tokio::io::duplex(64 << 10);
        let slot = self.registry.acquire_slot().await;
        spawn(server, slot, Arc::clone(&self.responder));
        Client(client)
    }

    fn calls(&self) -> usize {
        self.handler.calls.load(Ordering::SeqCst)
    }
}

struct Client(DuplexStream);

impl Client {
    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a request with a body of this length.
    async fn send_request(&mut self, target: &str, length: usize) {
        self.send(&head(target, length)).await;
        self.0.write_all(&vec![b' '; length]).await.unwrap();
    }

    /// Reads a response: its status and the length of its body.
    async fn read_response(&mut self) -> (u16, usize) {
        let (head, length) = self.head().await;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        (head, length)
    }

    async fn head(&mut self) -> (u16, usize) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length = length.split("\r\n").next().unwrap();
        (head[9..12].parse().unwrap(), length.parse().unwrap())
    }

    /// Reads until the server closes the connection. Returns the number of bytes.
    async fn rest(&mut self) -> usize {
        let mut rest = Vec::new();
        // An aborted connection may end with an error.
        drop(self.0.read_to_end(&mut rest).await);
        rest.len()
    }

    async fn is_disconnected(&mut self) -> bool {
        self.rest().await == 0
    }
}

fn head(target: &str, length: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: {target}\r\nX-Amz-Date: now\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=a, SignedHeaders=b, Signature=c\r\n\
         Content-Type: application/x-amz-json-1.0\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// Asserts that this time has passed, with the precision of deadlines.
fn check_elapsed(since: Instant, expected: Duration) {
    let elapsed = since.elapsed();
    assert!(
        elapsed >= expected.saturating_sub(2 * TICK) && elapsed <= expected + 4 * TICK,
        "elapsed {elapsed:?}, expected {expected:?}"
    );
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test(start_paused = true)]
async fn silent_client_is_disconnected() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    let since = Instant::now();
    assert!(client.is_disconnected().await);
    check_elapsed(since, Limits::default().head_deadline);
    assert_eq!(server.registry.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_headers_are_cut_off() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    let since = Instant::now();
    let mut sent = 0;
    for byte in head("any", 0).bytes() {
        if client.0.write_u8(byte).await.is_err() {
            break;
        }
        sent += 1;
        sleep(seconds(1)).await;
    }
    assert!(client.is_disconnected().await);
    assert!((19..=21).contains(&sent), "{sent}");
    check_elapsed(since, seconds(21));
    assert_eq!(server.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn connection_after_a_response_may_idle_longer() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    for _ in 0..3 {
        sleep(seconds(15)).await;
        client.send_request("any", 10).await;
        assert_eq!(client.read_response().await, (200, 10));
        sleep(seconds(250)).await;
    }
    let since = Instant::now();
    assert!(client.is_disconnected().await);
    check_elapsed(since, seconds(50));
}

#[tokio::test(start_paused = true)]
async fn second_request_has_the_same_header_deadline() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    client.send_request("any", 10).await;
    assert_eq!(client.read_response().await, (200, 10));
    sleep(seconds(100)).await;
    client.send("POST / HTTP/1.1\r\n").await;
    let since = Instant::now();
    assert!(client.is_disconnected().await);
    check_elapsed(since, Limits::default().head_deadline);
}

#[tokio::test(start_paused = true)]
async fn missing_body_is_cut_off() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    client.send(&head("any", 1000)).await;
    client.send("some of it").await;
    let since = Instant::now();
    assert!(client.is_disconnected().await);
    check_elapsed(since, Limits::default().body_deadline);
    assert_eq!(server.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_body_is_read_while_it_keeps_the_pace() {
    let limits = Limits::default();
    let pace = limits.pace_bytes;
    let server = TestServer::new(limits);
    for (per_second, is_read) in [(pace, true), (pace / 2, false)] {
        let mut client = server.connect().await;
        client.send(&head("any", 60 * per_second)).await;
        let mut sent = 0;
        while sent < 60 && client.0.write_all(&vec![b' '; per_second]).await.is_ok() {
            sent += 1;
            sleep(seconds(1)).await;
        }
        if is_read {
            assert_eq!(client.read_response().await, (200, 60 * per_second));
        } else {
            assert!(client.is_disconnected().await);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_is_disconnected() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    client.send_request("size 1000000", 2).await;
    let since = Instant::now();
    while server.registry.count() > 0 {
        sleep(TICK).await;
    }
    // Bytes in the socket buffer count as received: 64 KB, which is one second.
    check_elapsed(since, Limits::default().response_deadline + seconds(1));
    assert!(client.rest().await < 100_000);
}

#[tokio::test(start_paused = true)]
async fn slow_reader_receives_the_whole_response() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    client.send_request("size 6000000", 2).await;
    let (status, mut left) = client.head().await;
    assert_eq!((status, left), (200, 6_000_000));
    while left > 0 {
        let mut piece = vec![0; left.min(100_000)];
        left -= client.0.read_exact(&mut piece).await.unwrap();
        sleep(seconds(1)).await;
    }
    client.send_request("any", 10).await;
    assert_eq!(client.read_response().await, (200, 10));
}

#[tokio::test(start_paused = true)]
async fn connection_is_not_closed_during_execution() {
    let server = TestServer::new(Limits {
        connections_max: 1,
        ..Limits::default()
    });
    let mut client = server.connect().await;
    client.send_request("wait", 10).await;
    sleep(seconds(3600)).await;
    assert!(!server.registry.evict());
    server.handler.gate.0.add_permits(1);
    assert_eq!(client.read_response().await, (200, 10));
}

#[tokio::test(start_paused = true)]
async fn longest_idle_connection_is_evicted() {
    let server = TestServer::new(Limits {
        connections_max: 3,
        ..Limits::default()
    });
    let mut served = server.connect().await;
    served.send_request("any", 1).await;
    assert_eq!(served.read_response().await, (200, 1));
    sleep(seconds(1)).await;
    let mut silent = server.connect().await;
    sleep(seconds(1)).await;
    let mut later = server.connect().await;
    sleep(seconds(1)).await;
    // A connection without a response so far is closed before one that had a response, even if it waited less.
    let mut fourth = server.connect().await;
    assert!(silent.is_disconnected().await);
    sleep(seconds(1)).await;
    let mut fifth = server.connect().await;
    assert!(later.is_disconnected().await);
    for client in [&mut served, &mut fourth, &mut fifth] {
        client.send_request("any", 5).await;
        assert_eq!(client.read_response().await, (200, 5));
    }
    assert_eq!(server.registry.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn stalled_holder_of_memory_is_disconnected_under_pressure() {
    let server = TestServer::new(Limits {
        bodies_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut stuck = server.connect().await;
    stuck.send(&head("any", 900_000)).await;
    stuck.0.write_all(&[b' '; 100_000]).await.unwrap();
    sleep(seconds(5)).await;
    let since = Instant::now();
    let mut client = server.connect().await;
    client.send_request("any", 500_000).await;
    assert_eq!(client.read_response().await, (200, 500_000));
    assert!(since.elapsed() < seconds(1), "{:?}", since.elapsed());
    assert!(stuck.is_disconnected().await);
}

#[tokio::test(start_paused = true)]
async fn announced_body_reserves_no_memory() {
    let server = TestServer::new(Limits {
        bodies_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut announced = Vec::new();
    for _ in 0..100 {
        let mut client = server.connect().await;
        client.send(&head("any", 900_000)).await;
        client.send("{").await;
        announced.push(client);
    }
    let since = Instant::now();
    let mut client = server.connect().await;
    client.send_request("any", 900_000).await;
    assert_eq!(client.read_response().await, (200, 900_000));
    assert!(since.elapsed() < TICK, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn waiting_too_long_for_memory_fails_with_503() {
    let server = TestServer::new(Limits {
        bodies_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut busy = server.connect().await;
    busy.send_request("wait", 900_000).await;
    let mut client = server.connect().await;
    let since = Instant::now();
    client.send_request("any", 500_000).await;
    assert_eq!(client.read_response().await.0, 503);
    check_elapsed(since, Limits::default().memory_deadline);
    server.handler.gate.0.add_permits(1);
    assert_eq!(busy.read_response().await, (200, 900_000));
    client.send_request("any", 500_000).await;
    assert_eq!(client.read_response().await, (200, 500_000));
}

#[tokio::test(start_paused = true)]
async fn unread_responses_do_not_block_other_clients() {
    let server = TestServer::new(Limits {
        responses_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let mut client = server.connect().await;
        client.send_request("size 400000", 2).await;
        stuck.push(client);
    }
    let mut client = server.connect().await;
    let since = Instant::now();
    client.send_request("any", 10).await;
    assert_eq!(client.read_response().await, (200, 10));
    // Twenty connections, three per sweep, each after the maximum stall.
    assert!(since.elapsed() < seconds(4), "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_requests_in_progress() {
    let server = TestServer::new(Limits::default());
    let mut idle = server.connect().await;
    idle.send_request("any", 1).await;
    assert_eq!(idle.read_response().await, (200, 1));
    let mut fresh = server.connect().await;
    let mut busy = server.connect().await;
    busy.send_request("wait", 10).await;
    let mut partial = server.connect().await;
    partial.send(&head("any", 10)).await;
    sleep(TICK).await;
    let draining = {
        let registry = Arc::clone(&server.registry);
        tokio::spawn(async move { registry.drain().await })
    };
    assert!(idle.is_disconnected().await);
    assert!(fresh.is_disconnected().await);
    partial.send("0123456789").await;
    assert_eq!(partial.read_response().await, (200, 10));
    assert!(partial.is_disconnected().await);
    assert!(!draining.is_finished());
    server.handler.gate.0.add_permits(1);
    assert_eq!(busy.read_response().await, (200, 10));
    assert!(busy.is_disconnected().await);
    draining.await.unwrap();
    assert_eq!(server.registry.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_at_the_deadline() {
    let server = TestServer::new(Limits::default());
    let mut busy = server.connect().await;
    busy.send_request("wait", 10).await;
    sleep(TICK).await;
    let since = Instant::now();
    server.registry.drain().await;
    check_elapsed(since, Limits::default().shutdown_deadline);
    assert!(busy.is_disconnected().await);
}

#[tokio::test(start_paused = true)]
async fn requests_can_be_pipelined() {
    let server = TestServer::new(Limits::default());
    let mut client = server.connect().await;
    for _ in 0..10 {
        client.send_request("any", 20).await;
    }
    for _ in 0..10 {
        assert_eq!(client.read_response().await, (200, 20));
    }
    let slot = server.registry.try_acquire_slot().unwrap();
    assert_eq!(slot.entry.phase(), Phase::Idle);
}
