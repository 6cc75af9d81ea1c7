//! The process that handles expired versions: the sweeper of its engine removes versions, its consumer passes them to
//! the handler, and their tombstones are written, until the process is killed.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use floe::Db;
use floe::changes::{Cause, ChangeConsumer, Expired, HandlerResult, Removed, Router};
use floe_testkit::fault::{FaultEngine, Faults};

use super::audit;
use super::version_set::{Layer, VersionSet, layers};
use crate::Failure;
use crate::checks::directory::{self, Settings};
use crate::checks::planted::Bug;
use crate::checks::record::{Record, Reporter};
use crate::checks::role::Role;
use crate::checks::{child, runtime};

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "expiry";

/// The consumer name of all processes, of which only one runs at a time.
const CONSUMER: &str = "expiry";
/// The lease duration: how soon the next process can replace a killed one.
const LEASE: Duration = Duration::from_millis(200);
/// The pause between polls.
const POLL: Duration = Duration::from_millis(10);
/// The duration of a handler call.
const WORK: Duration = Duration::from_millis(2);
/// Practically unlimited: every retry can succeed.
const ATTEMPTS_MAX: u32 = 1_000_000;
/// Time limit for the work left at the end.
const SETTLE_MAX: Duration = Duration::from_secs(120);

/// Called with the id of a version that has expired.
type OnExpired = Arc<dyn Fn(u64) + Send + Sync>;

/// Returns the command of the process.
pub(super) fn command(folder: &Path, seed: u64, planted: Option<Bug>) -> std::io::Result<Command> {
    let mut command = child::command_on(ROLE, folder, planted)?;
    command.arg("--seed").arg(seed.to_string());
    Ok(command)
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct RouterRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for RouterRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self {
            folder,
            seed,
            planted,
        } = self;
        let reporter = Arc::new(Reporter::new(std::io::stdout()));
        let opened = directory::open(&folder, Settings::default())?;
        let engine = Arc::new(FaultEngine::new(opened.engine(), faults(seed)));
        let db = Db::with_engine(engine);
        let acked = reporter.clone();
        // An error means that the check has ended; this process will soon be killed.
        let on_expired: OnExpired = Arc::new(move |id| drop(acked.report(&Record::Acked(id))));
        let consumer = consumer(&db, router(&db, on_expired, planted));
        if let Err(error) = runtime()?.block_on(consumer.run(pending())) {
            reporter.report(&Record::Broken(error.to_string()))?;
        }
        // Like a process that dies: nothing is closed.
        std::process::exit(0)
    }
}

fn faults(seed: u64) -> Faults {
    Faults::seeded(seed)
        .throttle(0.01)
        .conflict(0.01)
        .lost_before(0.01)
        .lost_after(0.02)
        .partial_batches(0.1)
        .repeated_records(0.1)
        .late_records(0.1)
}

fn consumer(db: &Db, router: Router) -> ChangeConsumer {
    ChangeConsumer::new(db, CONSUMER, router)
        .lease(LEASE)
        .poll(POLL)
        .attempts_max(ATTEMPTS_MAX)
        .backoff(POLL, LEASE)
}

fn router(db: &Db, on_expired: OnExpired, planted: Option<Bug>) -> Router {
    match planted {
        Some(Bug::EarlyTombstone) => early_tombstone(db, on_expired),
        Some(Bug::EarlyCheckpoint) => early_checkpoint(db, on_expired),
        _ => Router::new().on_expired::<Layer>(db, move |expired: Expired<Layer>| {
            let on_expired = on_expired.clone();
            async move {
                tokio::time::sleep(WORK).await;
                on_expired(expired.version.value.id);
                Ok(())
            }
        }),
    }
}

/// The bug: the tombstone is written first, and a process that finds it skips the handler.
fn early_tombstone(db: &Db, on_expired: OnExpired) -> Router {
    let layers = layers(db);
    Router::new().on_removed::<Layer>(Cause::Expired, move |removed: Removed<Layer>| {
        let (layers, on_expired) = (layers.clone(), on_expired.clone());
        async move {
            if layers.write_tombstone(removed.change.item()).await? {
                tokio::time::sleep(WORK).await;
                on_expired(removed.value.id);
            }
            HandlerResult::Ok(())
        }
    })
}

/// The bug: the change counts as handled before the handler has run.
fn early_checkpoint(db: &Db, on_expired: OnExpired) -> Router {
    let layers = layers(db);
    Router::new().on_removed::<Layer>(Cause::Expired, move |removed: Removed<Layer>| {
        let (layers, on_expired) = (layers.clone(), on_expired.clone());
        async move {
            tokio::spawn(async move {
                tokio::time::sleep(WORK).await;
                on_expired(removed.value.id);
                layers.write_tombstone(removed.change.item()).await
            });
            HandlerResult::Ok(())
        }
    })
}

/// Handles the remaining versions without kills, until no version is left to expire. Returns the handled ids.
pub(super) async fn handle_remaining(
    db: &Db,
    version_set: &VersionSet,
    planted: Option<Bug>,
) -> Result<Vec<u64>, Failure> {
    let handled = Arc::new(Mutex::new(Vec::new()));
    let recorded = handled.clone();
    let on_expired: OnExpired = Arc::new(move |id| {
        let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.push(id);
    });
    let consumer = consumer(db, router(db, on_expired, planted));
    let end = Instant::now() + SETTLE_MAX;
    loop {
        // Versions swept before this point are handled by the next run.
        let is_swept = audit::is_swept(db, version_set).await?;
        consumer.run_until_caught_up().await?;
        if is_swept {
            break;
        }
        if Instant::now() > end {
            return Err(Failure::broken(
                "the engine does not remove expired versions",
            ));
        }
        tokio::time::sleep(LEASE).await;
    }
    // Wait for the tasks that the planted bug has spawned.
    tokio::time::sleep(10 * WORK).await;
    let handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(handled.clone())
}
