//! The kinds of attack.

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

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttackKind {
    /// Headers sent byte by byte.
    SlowHeaders,
    /// Bodies sent byte by byte, half of them after a large first part.
    SlowBodies,
    /// Bodies of the maximum size and larger, sent in large pieces.
    HugeBodies,
    /// Deeply nested JSON.
    DeepJson,
    /// Connections that send nothing, half of them after a response.
    Idle,
    /// Large responses that are never read.
    NeverRead,
}

impl AttackKind {
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

impl FromStr for AttackKind {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or("unknown kind of attack")
    }
}

/// The largest accepted body, and a larger one.
const BODY_BYTES_MAX: usize = 16 << 20;
const BODY_BYTES_TOO_MANY: usize = 20 << 20;

/// The pace of slow connections, and of those that send much.
const DRIP: Duration = Duration::from_millis(200);
const PIECE: usize = 64 << 10;
const PIECES: Duration = Duration::from_millis(50);

/// The hostile connections.
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
    /// Opens this many connections, alternating between the kinds.
    pub(super) fn start(address: SocketAddr, kinds: &[AttackKind], connections: usize) -> Self {
        let tally = Arc::new(Tally::default());
        let mut tasks = JoinSet::new();
        for (number, kind) in kinds.iter().cycle().take(connections).enumerate() {
            let (kind, tally) = (*kind, Arc::clone(&tally));
            let turn = number / kinds.len().max(1);
            tasks.spawn(async move { attack_repeatedly(address, kind, turn, &tally).await });
        }
        Self { tasks, tally }
    }

    /// Ends the attack. Returns how many connections were opened, and how many of them the server closed.
    pub(super) async fn stop(mut self) -> (u64, u64) {
        self.tasks.shutdown().await;
        let Tally { opened, cut } = &*self.tally;
        (opened.load(Ordering::Relaxed), cut.load(Ordering::Relaxed))
    }
}

/// Attacks, again after each time that the server closes the connection.
async fn attack_repeatedly(address: SocketAddr, kind: AttackKind, number: usize, tally: &Tally) {
    loop {
        if let Ok(connection) = Connection::open(address).await {
            tally.opened.fetch_add(1, Ordering::Relaxed);
            if attack_once(connection, kind, number).await.is_err() {
                tally.cut.fetch_add(1, Ordering::Relaxed);
            }
        }
        sleep(DRIP).await;
    }
}

/// Attacks on one connection until the server closes it.
async fn attack_once(
    mut connection: Connection,
    kind: AttackKind,
    number: usize,
) -> io::Result<()> {
    match kind {
        AttackKind::SlowHeaders => {
            let head = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".as_bytes();
            drip(&mut connection, head).await
        }
        AttackKind::SlowBodies => {
            let begun = if number.is_multiple_of(2) {
                2 * PIECE
            } else {
                0
            };
            let text = head("PutItem", BODY_BYTES_MAX) + &" ".repeat(begun);
            connection.send(text.as_bytes()).await?;
            drip(&mut connection, b" ").await
        }
        AttackKind::HugeBodies => {
            let is_too_huge = number.is_multiple_of(4);
            let length = if is_too_huge {
                BODY_BYTES_TOO_MANY
            } else {
                BODY_BYTES_MAX
            };
            send_huge(&mut connection, length).await
        }
        AttackKind::DeepJson => send_deep(&mut connection).await,
        AttackKind::Idle => {
            if number.is_multiple_of(2) {
                connection
                    .request_status(call("ListTables", "{}").as_bytes())
                    .await?;
            }
            connection.wait_closed().await
        }
        AttackKind::NeverRead => {
            let scan = call("Scan", &format!(r#"{{"TableName":"{TABLE}"}}"#));
            connection.send(scan.repeat(3).as_bytes()).await?;
            connection.wait_unread().await
        }
    }
}

/// Sends the beginning, and then single bytes.
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
    connection.read_status().await.map(drop)
}

/// Requests with deeply nested bodies: one with an item, one that is not even valid JSON.
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
            connection.request_status(call.as_bytes()).await?;
            sleep(Duration::from_secs(1)).await;
        }
    }
}
