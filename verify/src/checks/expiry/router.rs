//! The process that is told what has expired: the sweeper of its engine removes versions, its consumer hands them to the
//! handler, and their tombstones are written, until it is killed.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use floe::Db;
use floe::changes::{Cause, Consumer, Expired, Handled, Removed, Router};
use floe_testkit::fault::{FaultEngine, Faults};

use super::audit;
use super::shelf::{Layer, Shelf, layers};
use crate::Failure;
use crate::checks::directory::{self, Settings};
use crate::checks::planted::Bug;
use crate::checks::record::{Record, Reporter};
use crate::checks::role::Role;
use crate::checks::{child, runtime};

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "expiry";

/// The consumer of all processes, of which one lives at a time.
const CONSUMER: &str = "expiry";
/// How soon the next process takes the place of one that was killed.
const LEASE: Duration = Duration::from_millis(200);
/// How long a process waits where there is nothing to do.
const POLL: Duration = Duration::from_millis(10);
/// How long the handler takes.
const WORK: Duration = Duration::from_millis(2);
/// Trying again always helps here.
const ATTEMPTS_MAX: u32 = 1_000_000;
/// What is left in the end is done within this time.
const SETTLE_MAX: Duration = Duration::from_secs(120);

/// What is done about a version that has expired.
type Act = Arc<dyn Fn(u64) + Send + Sync>;

/// The process.
pub(super) fn command(folder: &Path, seed: u64, planted: Option<Bug>) -> std::io::Result<Command> {
    let mut command = child::command_on(ROLE, folder, planted)?;
    command.arg("--seed").arg(seed.to_string());
    Ok(command)
}

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Routing {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for Routing {
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
        let told = reporter.clone();
        // If nobody listens any more, the check has ended, and soon this process will.
        let act: Act = Arc::new(move |id| drop(told.tell(&Record::Acked(id))));
        let consumer = consumer(&db, router(&db, act, planted));
        if let Err(error) = runtime()?.block_on(consumer.run(pending())) {
            reporter.tell(&Record::Broken(error.to_string()))?;
        }
        // As a process that dies: nothing is closed.
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

fn consumer(db: &Db, router: Router) -> Consumer {
    Consumer::new(db, CONSUMER, router)
        .lease(LEASE)
        .poll(POLL)
        .attempts_max(ATTEMPTS_MAX)
        .backoff(POLL, LEASE)
}

fn router(db: &Db, act: Act, planted: Option<Bug>) -> Router {
    match planted {
        Some(Bug::EarlyTombstone) => early_tombstone(db, act),
        Some(Bug::EarlyCheckpoint) => early_checkpoint(db, act),
        _ => Router::new().on_expired::<Layer>(db, move |expired: Expired<Layer>| {
            let act = act.clone();
            async move {
                tokio::time::sleep(WORK).await;
                act(expired.version.value.id);
                Ok(())
            }
        }),
    }
}

/// The bug: the tombstone is written first, and who finds it thinks that all is done.
fn early_tombstone(db: &Db, act: Act) -> Router {
    let layers = layers(db);
    Router::new().on_removed::<Layer>(Cause::Expired, move |removed: Removed<Layer>| {
        let (layers, act) = (layers.clone(), act.clone());
        async move {
            if layers.bury(removed.change.item()).await? {
                tokio::time::sleep(WORK).await;
                act(removed.value.id);
            }
            Handled::Ok(())
        }
    })
}

/// The bug: the change counts as handled before it is.
fn early_checkpoint(db: &Db, act: Act) -> Router {
    let layers = layers(db);
    Router::new().on_removed::<Layer>(Cause::Expired, move |removed: Removed<Layer>| {
        let (layers, act) = (layers.clone(), act.clone());
        async move {
            tokio::spawn(async move {
                tokio::time::sleep(WORK).await;
                act(removed.value.id);
                layers.bury(removed.change.item()).await
            });
            Handled::Ok(())
        }
    })
}

/// Does what is left while nobody is killed, until nothing expires any more. Tells what was handled.
pub(super) async fn settle(
    db: &Db,
    shelf: &Shelf,
    planted: Option<Bug>,
) -> Result<Vec<u64>, Failure> {
    let handled = Arc::new(Mutex::new(Vec::new()));
    let noted = handled.clone();
    let act: Act = Arc::new(move |id| {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(id);
    });
    let consumer = consumer(db, router(db, act, planted));
    let end = Instant::now() + SETTLE_MAX;
    loop {
        // What is swept before this look is told by the next run.
        let is_swept = audit::is_swept(db, shelf).await?;
        consumer.run_until_caught_up().await?;
        if is_swept {
            break;
        }
        if Instant::now() > end {
            return Err(Failure::broken("the engine does not remove what expires"));
        }
        tokio::time::sleep(LEASE).await;
    }
    // What the planted bug does on the side ends as well.
    tokio::time::sleep(10 * WORK).await;
    let handled = handled.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(handled.clone())
}
