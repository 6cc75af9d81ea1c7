//! The time from the start of a server to its first response, and its memory when idle.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::client::Connection;
use super::data;
use super::plan::Plan;
use super::process::{Server, Side};
use super::request::http;
use crate::Fallible;
use crate::measure::median;

/// The case of the first response.
pub(super) const START_MS: &str = "start_ms";
/// The case of the memory of an idle server.
pub(super) const IDLE_MB: &str = "idle_mb";

/// Maximum time until the first response, on an empty directory.
const FIRST_RESPONSE_MS_MAX: f64 = 100.0;
/// Maximum memory of an idle server.
const IDLE_MB_MAX: f64 = 25.0;

/// The pause before a server counts as idle. Its start-up work is done by then.
const REST: Duration = Duration::from_secs(2);

/// Starts both servers repeatedly. Returns whether the floors were reached.
pub(super) async fn run(plan: &Plan) -> Fallible<bool> {
    let mut starts: [Vec<f64>; 2] = Default::default();
    for _ in 0..plan.starts {
        for (side, starts) in Side::ALL.into_iter().zip(&mut starts) {
            starts.push(Start::new(plan, side).await?.first_response_ms);
        }
    }
    let responses_ok = print(START_MS, starts.map(median), FIRST_RESPONSE_MS_MAX);
    Ok(print(IDLE_MB, idle(plan).await?, IDLE_MB_MAX) & responses_ok)
}

/// The memory of both servers when idle.
async fn idle(plan: &Plan) -> Fallible<[f64; 2]> {
    let [one, other] = Side::ALL.map(|side| Start::new(plan, side));
    let servers = [one.await?, other.await?];
    tokio::time::sleep(REST).await;
    Ok(servers.map(|start| megabytes(start.server.resident_bytes())))
}

fn print(name: &str, [floe, dynoxide]: [f64; 2], max: f64) -> bool {
    let ok = floe < max;
    println!("bench=wire case={name} floe={floe:.1} dynoxide={dynoxide:.1} floor={max} ok={ok}");
    ok
}

/// A server that was started on an empty directory and has responded once.
struct Start {
    server: Server,
    first_response_ms: f64,
    _folder: TempDir,
}

impl Start {
    async fn new(plan: &Plan, side: Side) -> Fallible<Self> {
        let folder = tempfile::tempdir()?;
        let begin = Instant::now();
        let server = plan.start(side, Some(folder.path())).await?;
        let mut connection = Connection::open(server.address).await?;
        let response = connection.call(&http(&data::list())).await?;
        let first_response_ms = begin.elapsed().as_secs_f64() * 1e3;
        if response.status != 200 {
            return Err(format!("the server rejected its first call: side={side:?}").into());
        }
        Ok(Self {
            server,
            first_response_ms,
            _folder: folder,
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a printed number")]
pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
