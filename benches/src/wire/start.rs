//! How long a server takes from its start to its first answer, and what it holds in memory then.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::client::Connection;
use super::data;
use super::plan::Plan;
use super::process::{Server, Side};
use super::request::http;
use crate::Fallible;
use crate::measure::median;

/// The case of the first answer.
pub(super) const START_MS: &str = "start_ms";
/// The case of the memory of an idle server.
pub(super) const IDLE_MB: &str = "idle_mb";

/// The longest that the first answer may take, on an empty directory.
const FIRST_ANSWER_MS_MAX: f64 = 100.0;
/// The most that an idle server may hold.
const IDLE_MB_MAX: f64 = 25.0;

/// How long a server is left alone before it counts as idle: it has done by then what it does on its own.
const REST: Duration = Duration::from_secs(2);

/// Starts both servers some times; true if the floors were reached.
pub(super) async fn run(plan: &Plan) -> Fallible<bool> {
    let mut starts: [Vec<f64>; 2] = Default::default();
    for _ in 0..plan.starts {
        for (side, starts) in Side::ALL.into_iter().zip(&mut starts) {
            starts.push(Start::new(plan, side).await?.first_answer_ms);
        }
    }
    let answers_ok = print(START_MS, starts.map(median), FIRST_ANSWER_MS_MAX);
    Ok(print(IDLE_MB, idle(plan).await?, IDLE_MB_MAX) & answers_ok)
}

/// What both servers hold when they are left alone.
async fn idle(plan: &Plan) -> Fallible<[f64; 2]> {
    let [one, other] = Side::ALL.map(|side| Start::new(plan, side));
    let servers = [one.await?, other.await?];
    tokio::time::sleep(REST).await;
    Ok(servers.map(|start| megabytes(start.server.resident_bytes())))
}

fn print(name: &str, [floe, dynoxide]: [f64; 2], most: f64) -> bool {
    let ok = floe < most;
    println!("bench=wire case={name} floe={floe:.1} dynoxide={dynoxide:.1} floor={most} ok={ok}");
    ok
}

/// A server that was started on an empty directory and has answered once.
struct Start {
    server: Server,
    first_answer_ms: f64,
    _folder: TempDir,
}

impl Start {
    async fn new(plan: &Plan, side: Side) -> Fallible<Self> {
        let folder = tempfile::tempdir()?;
        let begin = Instant::now();
        let server = plan.start(side, Some(folder.path())).await?;
        let mut connection = Connection::open(server.address).await?;
        let answer = connection.call(&http(&data::list())).await?;
        let first_answer_ms = begin.elapsed().as_secs_f64() * 1e3;
        if answer.status != 200 {
            return Err(format!("a server refused its first call: side={side:?}").into());
        }
        Ok(Self {
            server,
            first_answer_ms,
            _folder: folder,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
