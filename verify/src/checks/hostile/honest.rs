//! Clients that behave well: they read and write a little, and note how long they wait.
//!
//! They have a thread of their own, so that what is measured is the server and not the attack.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use super::super::http::{Connection, call};
use crate::{Failure, out};

/// The table that all play on.
pub(super) const TABLE: &str = "Hostile";

/// How many there are, and how long each pauses between two requests.
const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(2);

/// One more of them writes large items, at this pace.
const LARGE_BYTES: usize = 300_000;
const LARGE_PAUSE: Duration = Duration::from_millis(100);

/// Who has no answer by then has none.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes the table and what is in it: small items, and enough large ones to fill a page of a scan.
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
        let status = timeout(PATIENCE, connection.ask(call.as_bytes())).await;
        match status {
            Ok(Ok(200)) => {}
            other => {
                let message = format!("the server does not work: {other:?}");
                return Err(Failure::Broken(message));
            }
        }
    }
    Ok(())
}

/// The body of a call that puts an item of about this size.
fn put(key: &str, bytes: usize) -> String {
    let value = "v".repeat(bytes);
    format!(r#"{{"TableName":"{TABLE}","Item":{{"p":{{"S":"{key}"}},"v":{{"S":"{value}"}}}}}}"#)
}

/// How long requests waited for their answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    small: Vec<Duration>,
    large: Vec<Duration>,
    /// Those without an answer, or with one that says no.
    pub(super) unanswered: u64,
}

impl Waits {
    pub(super) fn answered(&self) -> usize {
        self.small.len() + self.large.len()
    }

    /// What 99 of 100 small requests waited at most.
    pub(super) fn p99(&self) -> Duration {
        percentile(&self.small, 99)
    }

    fn add(&mut self, other: Self) {
        self.small.extend(other.small);
        self.large.extend(other.large);
        self.unanswered += other.unanswered;
    }
}

impl fmt::Display for Waits {
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

fn percentile(waits: &[Duration], percent: usize) -> Duration {
    let mut sorted = waits.to_vec();
    sorted.sort_unstable();
    let at = sorted.len() * percent / 100;
    let at = at.min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// The clients, while they run.
#[derive(Debug)]
pub(super) struct Honest {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Waits>,
}

impl Honest {
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
                    // One of them comes anew for every request.
                    let keeps = number > 0;
                    tasks.spawn(play_small(address, keeps, Arc::clone(&stopped)));
                }
                tasks.spawn(play_large(address, Arc::clone(&stopped)));
                let mut all = Waits::default();
                while let Some(waits) = tasks.join_next().await {
                    // One that panicked has answered nothing.
                    all.add(waits.unwrap_or(Waits {
                        unanswered: 1,
                        ..Waits::default()
                    }));
                }
                all
            })
        });
        Ok(Self { stop, thread })
    }

    /// Ends them: how long they waited.
    pub(super) fn stop(self) -> Result<Waits, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let waits = self.thread.join();
        waits.map_err(|_| Failure::broken("a client panicked"))
    }

    pub(super) fn stop_after(self, time: Duration) -> Result<Waits, Failure> {
        std::thread::park_timeout(time);
        self.stop()
    }
}

async fn play_small(address: SocketAddr, keeps: bool, stop: Arc<AtomicBool>) -> Waits {
    let get = format!(r#"{{"TableName":"{TABLE}","Key":{{"p":{{"S":"small"}}}}}}"#);
    let calls = [call("GetItem", &get), call("PutItem", &put("small", 200))];
    let mut client = Client::new(address);
    while !stop.load(Ordering::Relaxed) {
        for call in &calls {
            client.ask(call).await;
            client.connection.take_if(|_| !keeps);
            sleep(PAUSE).await;
        }
    }
    Waits {
        small: client.waits,
        large: Vec::new(),
        unanswered: client.unanswered,
    }
}

async fn play_large(address: SocketAddr, stop: Arc<AtomicBool>) -> Waits {
    let call = call("PutItem", &put("large0", LARGE_BYTES));
    let mut client = Client::new(address);
    while !stop.load(Ordering::Relaxed) {
        client.ask(&call).await;
        sleep(LARGE_PAUSE).await;
    }
    Waits {
        small: Vec::new(),
        large: client.waits,
        unanswered: client.unanswered,
    }
}

/// A client with a connection that it keeps.
struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
    waits: Vec<Duration>,
    unanswered: u64,
}

impl Client {
    const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
            waits: Vec::new(),
            unanswered: 0,
        }
    }

    async fn ask(&mut self, call: &str) {
        let started = Instant::now();
        let connection = self.connection.take();
        let answered = timeout(PATIENCE, ask(self.address, connection, call)).await;
        match answered {
            Ok(Ok((connection, 200))) => {
                self.waits.push(started.elapsed());
                self.connection = Some(connection);
            }
            other => {
                let why = match other {
                    Ok(Ok((_, status))) => format!("status={status}"),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => format!("nothing within {PATIENCE:?}"),
                };
                out::note(&format!("a request was not answered: {why}"));
                self.unanswered += 1;
            }
        }
    }
}

async fn ask(
    address: SocketAddr,
    connection: Option<Connection>,
    call: &str,
) -> std::io::Result<(Connection, u16)> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => Connection::open(address).await?,
    };
    let status = connection.ask(call.as_bytes()).await?;
    Ok((connection, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_hundredth_is_told() {
        let waits: Vec<_> = (0..200).map(Duration::from_millis).collect();
        assert_eq!(percentile(&waits, 50), Duration::from_millis(100));
        assert_eq!(percentile(&waits, 99), Duration::from_millis(198));
        assert_eq!(percentile(&waits[..1], 99), Duration::ZERO);
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }
}
