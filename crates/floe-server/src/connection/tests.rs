//! Connections in time that the test owns: who is cut off, when, and who is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::spawn;
use crate::answer::Answer;
use crate::http::{Handler, Responder};
use crate::limits::{Limits, TICK};
use crate::options::Options;
use crate::registry::{Phase, Registry};

/// Answers `size N` with so many bytes, and `wait` when it is let go.
#[derive(Clone, Default)]
struct Double {
    calls: Arc<AtomicUsize>,
    gate: Arc<Gate>,
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Handler for Double {
    async fn call(&self, target: &str, body: &[u8]) -> Answer {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let size = match target.split_once(' ') {
            Some(("size", size)) => size.parse().unwrap(),
            _ => body.len(),
        };
        if target == "wait" {
            self.gate.0.acquire().await.unwrap().forget();
        }
        Answer {
            status: 200,
            body: Bytes::from(vec![b'x'; size]),
        }
    }

    fn refuse(&self, _: &str, _: &[u8]) -> Option<Answer> {
        None
    }
}

/// A server without a network.
struct Stage {
    registry: Arc<Registry>,
    responder: Arc<Responder<Double>>,
    double: Double,
}

impl Stage {
    fn new(limits: Limits) -> Self {
        let double = Double::default();
        let registry = Registry::new(limits);
        let watched = Arc::clone(&registry);
        tokio::spawn(async move { watched.watch().await });
        Self {
            registry,
            responder: Arc::new(Responder::new(&Options::new(), double.clone())),
            double,
        }
    }

    async fn connect(&self) -> Client {
        // As much as a system takes in without anybody reading.
        let (client, server) = tokio::io::duplex(64 << 10);
        let place = self.registry.enter().await;
        spawn(server, place, Arc::clone(&self.responder));
        Client(client)
    }

    fn calls(&self) -> usize {
        self.double.calls.load(Ordering::SeqCst)
    }
}

struct Client(DuplexStream);

impl Client {
    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Sends a request with a body of so many bytes.
    async fn ask(&mut self, target: &str, length: usize) {
        self.send(&head(target, length)).await;
        self.0.write_all(&vec![b' '; length]).await.unwrap();
    }

    /// Reads an answer: its status and the length of its body.
    async fn answer(&mut self) -> (u16, usize) {
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

    /// Reads until the server hangs up, and tells what came before.
    async fn rest(&mut self) -> usize {
        let mut rest = Vec::new();
        // An aborted connection may end with an error.
        drop(self.0.read_to_end(&mut rest).await);
        rest.len()
    }

    async fn is_gone(&mut self) -> bool {
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

/// Whether so much time has passed, to within the ticks by which deadlines are met.
fn check_elapsed(since: Instant, expected: Duration) {
    let elapsed = since.elapsed();
    assert!(
        elapsed >= expected.saturating_sub(2 * TICK) && elapsed <= expected + 4 * TICK,
        "{elapsed:?} is not {expected:?}"
    );
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_cut_off() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    let since = Instant::now();
    assert!(client.is_gone().await);
    check_elapsed(since, Limits::default().head_deadline);
    assert_eq!(stage.registry.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn headers_that_drip_are_cut_off() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    let since = Instant::now();
    let mut sent = 0;
    for byte in head("any", 0).bytes() {
        if client.0.write_u8(byte).await.is_err() {
            break;
        }
        sent += 1;
        sleep(seconds(1)).await;
    }
    assert!(client.is_gone().await);
    assert!((19..=21).contains(&sent), "{sent}");
    check_elapsed(since, seconds(21));
    assert_eq!(stage.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_had_an_answer_may_stay_longer_without_a_request() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    for _ in 0..3 {
        sleep(seconds(15)).await;
        client.ask("any", 10).await;
        assert_eq!(client.answer().await, (200, 10));
        sleep(seconds(250)).await;
    }
    let since = Instant::now();
    assert!(client.is_gone().await);
    check_elapsed(since, seconds(50));
}

#[tokio::test(start_paused = true)]
async fn a_second_request_has_the_same_time_for_its_headers() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    client.ask("any", 10).await;
    assert_eq!(client.answer().await, (200, 10));
    sleep(seconds(100)).await;
    client.send("POST / HTTP/1.1\r\n").await;
    let since = Instant::now();
    assert!(client.is_gone().await);
    check_elapsed(since, Limits::default().head_deadline);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_cut_off() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    client.send(&head("any", 1000)).await;
    client.send("some of it").await;
    let since = Instant::now();
    assert!(client.is_gone().await);
    check_elapsed(since, Limits::default().body_deadline);
    assert_eq!(stage.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_is_read_as_long_as_it_keeps_the_pace() {
    let limits = Limits::default();
    let pace = limits.pace_bytes;
    let stage = Stage::new(limits);
    for (per_second, is_read) in [(pace, true), (pace / 2, false)] {
        let mut client = stage.connect().await;
        client.send(&head("any", 60 * per_second)).await;
        let mut sent = 0;
        while sent < 60 && client.0.write_all(&vec![b' '; per_second]).await.is_ok() {
            sent += 1;
            sleep(seconds(1)).await;
        }
        match is_read {
            true => assert_eq!(client.answer().await, (200, 60 * per_second)),
            false => assert!(client.is_gone().await),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_take_the_answer_is_cut_off() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    client.ask("size 1000000", 2).await;
    let since = Instant::now();
    while stage.registry.count() > 0 {
        sleep(TICK).await;
    }
    // What the system had taken in counts as taken: 64 KB, which is a second.
    check_elapsed(since, Limits::default().answer_deadline + seconds(1));
    assert!(client.rest().await < 100_000);
}

#[tokio::test(start_paused = true)]
async fn who_takes_the_answer_slowly_gets_it() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    client.ask("size 6000000", 2).await;
    let (status, mut left) = client.head().await;
    assert_eq!((status, left), (200, 6_000_000));
    while left > 0 {
        let mut piece = vec![0; left.min(100_000)];
        left -= client.0.read_exact(&mut piece).await.unwrap();
        sleep(seconds(1)).await;
    }
    client.ask("any", 10).await;
    assert_eq!(client.answer().await, (200, 10));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_cut_off_while_it_is_being_answered() {
    let stage = Stage::new(Limits {
        connections_max: 1,
        ..Limits::default()
    });
    let mut client = stage.connect().await;
    client.ask("wait", 10).await;
    sleep(seconds(3600)).await;
    assert!(!stage.registry.evict());
    stage.double.gate.0.add_permits(1);
    assert_eq!(client.answer().await, (200, 10));
}

#[tokio::test(start_paused = true)]
async fn when_all_places_are_taken_the_longest_waiting_loses_its_own() {
    let stage = Stage::new(Limits {
        connections_max: 3,
        ..Limits::default()
    });
    let mut served = stage.connect().await;
    served.ask("any", 1).await;
    assert_eq!(served.answer().await, (200, 1));
    sleep(seconds(1)).await;
    let mut silent = stage.connect().await;
    sleep(seconds(1)).await;
    let mut later = stage.connect().await;
    sleep(seconds(1)).await;
    // One that never had an answer goes before one that had, however long that one waits.
    let mut fourth = stage.connect().await;
    assert!(silent.is_gone().await);
    sleep(seconds(1)).await;
    let mut fifth = stage.connect().await;
    assert!(later.is_gone().await);
    for client in [&mut served, &mut fourth, &mut fifth] {
        client.ask("any", 5).await;
        assert_eq!(client.answer().await, (200, 5));
    }
    assert_eq!(stage.registry.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn who_holds_memory_and_stands_still_goes_when_others_need_it() {
    let stage = Stage::new(Limits {
        bodies_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut stuck = stage.connect().await;
    stuck.send(&head("any", 900_000)).await;
    stuck.0.write_all(&[b' '; 100_000]).await.unwrap();
    sleep(seconds(5)).await;
    let since = Instant::now();
    let mut client = stage.connect().await;
    client.ask("any", 500_000).await;
    assert_eq!(client.answer().await, (200, 500_000));
    assert!(since.elapsed() < seconds(1), "{:?}", since.elapsed());
    assert!(stuck.is_gone().await);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_announced_and_does_not_come_holds_no_memory() {
    let stage = Stage::new(Limits {
        bodies_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut announced = Vec::new();
    for _ in 0..100 {
        let mut client = stage.connect().await;
        client.send(&head("any", 900_000)).await;
        client.send("{").await;
        announced.push(client);
    }
    let since = Instant::now();
    let mut client = stage.connect().await;
    client.ask("any", 900_000).await;
    assert_eq!(client.answer().await, (200, 900_000));
    assert!(since.elapsed() < TICK, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_for_memory_is_asked_to_try_again() {
    let stage = Stage::new(Limits {
        bodies_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut busy = stage.connect().await;
    busy.ask("wait", 900_000).await;
    let mut client = stage.connect().await;
    let since = Instant::now();
    client.ask("any", 500_000).await;
    assert_eq!(client.answer().await.0, 503);
    check_elapsed(since, Limits::default().memory_deadline);
    stage.double.gate.0.add_permits(1);
    assert_eq!(busy.answer().await, (200, 900_000));
    client.ask("any", 500_000).await;
    assert_eq!(client.answer().await, (200, 500_000));
}

#[tokio::test(start_paused = true)]
async fn answers_that_nobody_takes_do_not_stop_the_others() {
    let stage = Stage::new(Limits {
        answers_bytes_max: 1_000_000,
        ..Limits::default()
    });
    let mut stuck = Vec::new();
    for _ in 0..20 {
        let mut client = stage.connect().await;
        client.ask("size 400000", 2).await;
        stuck.push(client);
    }
    let mut client = stage.connect().await;
    let since = Instant::now();
    client.ask("any", 10).await;
    assert_eq!(client.answer().await, (200, 10));
    // Twenty of them, three at a time, each as long as it may stand still.
    assert!(since.elapsed() < seconds(4), "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_finishes_what_is_under_way() {
    let stage = Stage::new(Limits::default());
    let mut idle = stage.connect().await;
    idle.ask("any", 1).await;
    assert_eq!(idle.answer().await, (200, 1));
    let mut fresh = stage.connect().await;
    let mut busy = stage.connect().await;
    busy.ask("wait", 10).await;
    let mut begun = stage.connect().await;
    begun.send(&head("any", 10)).await;
    sleep(TICK).await;
    let draining = {
        let registry = Arc::clone(&stage.registry);
        tokio::spawn(async move { registry.drain().await })
    };
    assert!(idle.is_gone().await);
    assert!(fresh.is_gone().await);
    begun.send("0123456789").await;
    assert_eq!(begun.answer().await, (200, 10));
    assert!(begun.is_gone().await);
    assert!(!draining.is_finished());
    stage.double.gate.0.add_permits(1);
    assert_eq!(busy.answer().await, (200, 10));
    assert!(busy.is_gone().await);
    draining.await.unwrap();
    assert_eq!(stage.registry.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_does_not_wait_for_ever() {
    let stage = Stage::new(Limits::default());
    let mut busy = stage.connect().await;
    busy.ask("wait", 10).await;
    sleep(TICK).await;
    let since = Instant::now();
    stage.registry.drain().await;
    check_elapsed(since, Limits::default().shutdown_deadline);
    assert!(busy.is_gone().await);
}

#[tokio::test(start_paused = true)]
async fn requests_may_come_before_the_answers_are_read() {
    let stage = Stage::new(Limits::default());
    let mut client = stage.connect().await;
    for _ in 0..10 {
        client.ask("any", 20).await;
    }
    for _ in 0..10 {
        assert_eq!(client.answer().await, (200, 20));
    }
    let place = stage.registry.try_enter().unwrap();
    assert_eq!(place.entry.phase(), Phase::Waiting);
}
