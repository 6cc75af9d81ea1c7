//! The ways to do harm.

use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::http::{Connection, call, head};
use super::honest::TABLE;

/// A way to do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    /// Headers that come byte by byte.
    SlowHeaders,
    /// Bodies that come byte by byte, half of them after a good beginning.
    SlowBodies,
    /// Bodies as large as may be and larger, sent in large pieces.
    HugeBodies,
    /// JSON that is nested deeply.
    DeepJson,
    /// Connections that say nothing, half of them after an answer.
    Idle,
    /// Large answers that nobody reads.
    NeverRead,
}

impl Harm {
    pub(super) const ALL: [Self; 6] = [
        Self::SlowHeaders,
        Self::SlowBodies,
        Self::HugeBodies,
        Self::DeepJson,
        Self::Idle,
        Self::NeverRead,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SlowHeaders => "slow_headers",
            Self::SlowBodies => "slow_bodies",
            Self::HugeBodies => "huge_bodies",
            Self::DeepJson => "deep_json",
            Self::Idle => "idle",
            Self::NeverRead => "never_read",
        }
    }
}

impl FromStr for Harm {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let harm = Self::ALL.into_iter().find(|harm| harm.name() == name);
        harm.ok_or("no such kind of attack")
    }
}

/// The largest body that is taken, and one that is not.
const BODY_BYTES_MAX: usize = 16 << 20;
const BODY_BYTES_TOO_MANY: usize = 20 << 20;

/// How fast those who are slow are, and how fast those who send a lot.
const DRIP: Duration = Duration::from_millis(200);
const PIECE: usize = 64 << 10;
const PIECES: Duration = Duration::from_millis(50);

/// Many connections that do harm.
#[derive(Debug)]
pub(super) struct Attack {
    tasks: JoinSet<()>,
    tally: Arc<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    opened: AtomicU64,
    cut: AtomicU64,
}

impl Attack {
    /// Opens so many connections, of the kinds in turn.
    pub(super) fn start(address: SocketAddr, harms: &[Harm], connections: usize) -> Self {
        let tally = Arc::new(Tally::default());
        let mut tasks = JoinSet::new();
        for (number, harm) in harms.iter().cycle().take(connections).enumerate() {
            let (harm, tally) = (*harm, Arc::clone(&tally));
            let turn = number / harms.len().max(1);
            tasks.spawn(async move { harm_again(address, harm, turn, &tally).await });
        }
        Self { tasks, tally }
    }

    /// Ends it: how many connections were opened, and how many of them the server has cut off.
    pub(super) async fn stop(mut self) -> (u64, u64) {
        self.tasks.shutdown().await;
        let Tally { opened, cut } = &*self.tally;
        (opened.load(Ordering::Relaxed), cut.load(Ordering::Relaxed))
    }
}

/// Does harm, and again whenever the server has had enough.
async fn harm_again(address: SocketAddr, harm: Harm, number: usize, tally: &Tally) {
    loop {
        if let Ok(connection) = Connection::open(address).await {
            tally.opened.fetch_add(1, Ordering::Relaxed);
            if do_harm(connection, harm, number).await.is_err() {
                tally.cut.fetch_add(1, Ordering::Relaxed);
            }
        }
        sleep(DRIP).await;
    }
}

/// Does harm on a connection, until the server has had enough.
async fn do_harm(mut connection: Connection, harm: Harm, number: usize) -> io::Result<()> {
    match harm {
        Harm::SlowHeaders => {
            let head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".as_bytes();
            drip(&mut connection, head).await
        }
        Harm::SlowBodies => {
            let begun = if number.is_multiple_of(2) {
                2 * PIECE
            } else {
                0
            };
            let text = head("PutItem", BODY_BYTES_MAX) + &" ".repeat(begun);
            connection.send(text.as_bytes()).await?;
            drip(&mut connection, b" ").await
        }
        Harm::HugeBodies => {
            let is_too_huge = number.is_multiple_of(4);
            let length = if is_too_huge {
                BODY_BYTES_TOO_MANY
            } else {
                BODY_BYTES_MAX
            };
            send_huge(&mut connection, length).await
        }
        Harm::DeepJson => send_deep(&mut connection).await,
        Harm::Idle => {
            if number.is_multiple_of(2) {
                connection.ask(call("ListTables", "{}").as_bytes()).await?;
            }
            connection.wait_closed().await
        }
        Harm::NeverRead => {
            let scan = call("Scan", &format!(r#"{{"TableName":"{TABLE}"}}"#));
            connection.send(scan.repeat(3).as_bytes()).await?;
            connection.wait_unread().await
        }
    }
}

/// Sends something, and then a byte now and then.
async fn drip(connection: &mut Connection, beginning: &[u8]) -> io::Result<()> {
    connection.send(beginning).await?;
    loop {
        sleep(DRIP).await;
        connection.send(b"x").await?;
    }
}

async fn send_huge(connection: &mut Connection, length: usize) -> io::Result<()> {
    connection.send(head("PutItem", length).as_bytes()).await?;
    static WHITE: [u8; PIECE] = [b' '; PIECE];
    let mut left = length;
    while left > 0 {
        let part = WHITE.get(..left.min(PIECE)).unwrap_or_default();
        connection.send(part).await?;
        left -= part.len();
        sleep(PIECES).await;
    }
    connection.answer().await.map(drop)
}

/// Calls whose bodies are nested deeply, one as an item and one as nothing.
fn deep_calls() -> [String; 2] {
    const LEVELS: usize = 10_000;
    let nested = r#"{"M":{"a":"#.repeat(LEVELS) + r#"{"S":"x"}"# + &"}}".repeat(LEVELS);
    let body = format!(r#"{{"TableName":"{TABLE}","Item":{{"p":{{"S":"x"}},"d":{nested}}}}}"#);
    [call("PutItem", &body), call("PutItem", &"[".repeat(LEVELS))]
}

async fn send_deep(connection: &mut Connection) -> io::Result<()> {
    static CALLS: LazyLock<[String; 2]> = LazyLock::new(deep_calls);
    loop {
        for call in &*CALLS {
            connection.ask(call.as_bytes()).await?;
            sleep(Duration::from_secs(1)).await;
        }
    }
}
