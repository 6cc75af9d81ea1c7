//! Well-behaved clients: they read and write a little, and measure the latency.
//!
//! They run in their own thread, so that they measure the server and not the attack.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::super::http::{Connection, call};
use crate::{Failure, out};

/// The table that all clients use.
pub(super) const TABLE: &str = "Hostile";

/// Number of clients, and the pause of each between two requests.
const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(2);

/// One further client writes large items, at this pace.
const LARGE_BYTES: usize = 300_000;
const LARGE_PAUSE: Duration = Duration::from_millis(100);

/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Creates the table and its items: a small one, and enough large ones to fill a page of a scan.
pub(super) async fn prepare(address: SocketAddr) -> Result<(), Failure> {
    let table = format!(
        r#"{{"TableName":"{TABLE}","KeySchema":[{{"AttributeName":"p","KeyType":"HASH"}}],
        "AttributeDefinitions":[{{"AttributeName":"p","AttributeType":"S"}}],"BillingMode":"PAY_PER_REQUEST"}}"#
    );
    let mut calls = vec![
        call("CreateTable", &table),
        call("PutItem", &put("small", 200)),
    ];
    calls
        .extend((0..5).map(|number| call("PutItem", &put(&format!("large{number}"), LARGE_BYTES))));
    let mut connection = Connection::open(address).await?;
    for call in calls {
        let status = timeout(TIMEOUT, connection.request_status(call.as_bytes())).await;
        match status {
            Ok(Ok(200)) => {}
            other => {
                let message = format!("the server does not respond correctly: {other:?}");
                return Err(Failure::Broken(message));
            }
        }
    }
    Ok(())
}

/// Returns the body of a PutItem request with an item of about this size.
fn put(key: &str, bytes: usize) -> String {
    let value = "v".repeat(bytes);
    format!(r#"{{"TableName":"{TABLE}","Item":{{"p":{{"S":"{key}"}},"v":{{"S":"{value}"}}}}}}"#)
}

/// The latencies of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Latencies {
    small: Vec<Duration>,
    large: Vec<Duration>,
    /// Requests without a response, or with an error.
    pub(super) unanswered: u64,
}

impl Latencies {
    pub(super) fn answered(&self) -> usize {
        self.small.len() + self.large.len()
    }

    /// The 99th percentile of small requests.
    pub(super) fn p99(&self) -> Duration {
        percentile(&self.small, 99)
    }

    fn add(&mut self, other: Self) {
        self.small.extend(other.small);
        self.large.extend(other.large);
        self.unanswered += other.unanswered;
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answered, {} not, p50 {:?}, p99 {:?}, large p99 {:?}",
            self.answered(),
            self.unanswered,
            percentile(&self.small, 50),
            self.p99(),
            percentile(&self.large, 99),
        )
    }
}

fn percentile(latencies: &[Duration], percent: usize) -> Duration {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let at = sorted.len() * percent / 100;
    let at = at.min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// The running clients.
#[derive(Debug)]
pub(super) struct HonestClients {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Latencies>,
}

impl HonestClients {
    pub(super) fn start(address: SocketAddr) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let mut tasks = tokio::task::JoinSet::new();
                for number in 0..CLIENTS {
                    // One of them opens a new connection for every request.
                    let keeps = number > 0;
                    tasks.spawn(send_small_requests(address, keeps, Arc::clone(&stopped)));
                }
                tasks.spawn(send_large_requests(address, Arc::clone(&stopped)));
                let mut all = Latencies::default();
                while let Some(latencies) = tasks.join_next().await {
                    // A client that panicked counts as one unanswered request.
                    all.add(latencies.unwrap_or(Latencies {
                        unanswered: 1,
                        ..Latencies::default()
                    }));
                }
                all
            })
        });
        Ok(Self { stop, thread })
    }

    /// Stops the clients and returns their latencies.
    pub(super) fn stop(self) -> Result<Latencies, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let latencies = self.thread.join();
        latencies.map_err(|_| Failure::broken("a client panicked"))
    }

    pub(super) fn stop_after(self, time: Duration) -> Result<Latencies, Failure> {
        std::thread::park_timeout(time);
        self.stop()
    }
}

async fn send_small_requests(address: SocketAddr, keeps: bool, stop: Arc<AtomicBool>) -> Latencies {
    let get = format!(r#"{{"TableName":"{TABLE}","Key":{{"p":{{"S":"small"}}}}}}"#);
    let calls = [call("GetItem", &get), call("PutItem", &put("small", 200))];
    let mut client = Client::new(address);
    while !stop.load(Ordering::Relaxed) {
        for call in &calls {
            client.send(call).await;
            client.connection.take_if(|_| !keeps);
            sleep(PAUSE).await;
        }
    }
    Latencies {
        small: client.latencies,
        large: Vec::new(),
        unanswered: client.unanswered,
    }
}

async fn send_large_requests(address: SocketAddr, stop: Arc<AtomicBool>) -> Latencies {
    let call = call("PutItem", &put("large0", LARGE_BYTES));
    let mut client = Client::new(address);
    while !stop.load(Ordering::Relaxed) {
        client.send(&call).await;
        sleep(LARGE_PAUSE).await;
    }
    Latencies {
        small: Vec::new(),
        large: client.latencies,
        unanswered: client.unanswered,
    }
}

/// A client that keeps its connection.
struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
    latencies: Vec<Duration>,
    unanswered: u64,
}

impl Client {
    const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
            latencies: Vec::new(),
            unanswered: 0,
        }
    }

    async fn send(&mut self, call: &str) {
        let started = Instant::now();
        let connection = self.connection.take();
        let result = timeout(TIMEOUT, send_request(self.address, connection, call)).await;
        match result {
            Ok(Ok((connection, 200))) => {
                self.latencies.push(started.elapsed());
                self.connection = Some(connection);
            }
            other => {
                let why = match other {
                    Ok(Ok((_, status))) => format!("status={status}"),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => format!("timeout after {TIMEOUT:?}"),
                };
                out::note(&format!("a request was not answered: {why}"));
                self.unanswered += 1;
            }
        }
    }
}

async fn send_request(
    address: SocketAddr,
    connection: Option<Connection>,
    call: &str,
) -> std::io::Result<(Connection, u16)> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => Connection::open(address).await?,
    };
    let status = connection.request_status(call.as_bytes()).await?;
    Ok((connection, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_excludes_the_slowest_hundredth() {
        let latencies: Vec<_> = (0..200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&latencies, 50), Duration::from_millis(100));
        assert_eq!(percentile(&latencies, 99), Duration::from_millis(198));
        assert_eq!(percentile(&latencies[..1], 99), Duration::ZERO);
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }
}
