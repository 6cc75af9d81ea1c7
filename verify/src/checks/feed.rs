//! `verify feed`: whichever process dies, the feed contains every event in order, and views built from it are exact.
//!
//! | file | contents |
//! |---|---|
//! | `config` | the configuration shared by all processes |
//! | `processes` | starts the processes, kills and restarts them |
//! | `server` | serves the store from a directory |
//! | `write`, `prune` | append to streams, and prune them |
//! | `index` | writes appended events to the feed |
//! | `consume` | consumes the feed: at least once, and exactly once |
//! | `deliveries` | records the deliveries to the group |
//! | `flawed` | the planted bugs |
//! | `entry` | the events, and digests of them |
//! | `journal` | logs of processes that may be killed at any moment |
//! | `audit` | audits everything at the end |

mod audit;
mod config;
mod consume;
mod deliveries;
mod entry;
mod flawed;
mod index;
mod journal;
mod processes;
mod prune;
mod server;
mod write;

use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe::Db;
use floe::db::ConnectOptions;
use floe_store::env::SeededRandom;
use tokio::task::JoinSet;

use super::figures::{Figures, ProgressPrinter, Verdict};
use super::planted::{Bug, until_found};
use super::{Check, CheckRun, Common, join_all};
use crate::{Failure, out};
use audit::AuditReport;
use config::{Files, GROUP, PARTITIONS, VIEW, runtime};
pub(super) use consume::{GroupMemberRole, ViewRole};
use deliveries::Deliveries;
pub(super) use index::IndexerRole;
use journal::{Run, Tail};
use processes::{Kills, ProcessSet};
use server::ServerProcess;
pub(super) use server::ServerRole;
pub(super) use write::WriterRole;

pub(super) const CHECK: Check = Check {
    name: "feed",
    proves: "the feed contains every event in order, whichever process dies, and views built from it are exact",
    how: "A process serves a durable store. Other processes append to thousands of streams, index the events under one\n\
          name and under several, and consume the feed, at least once and exactly once; responses get lost, change\n\
          records are delivered twice and late. All but the writers are killed with SIGKILL and restarted, also the server.\n\
          At the end the rest is indexed and consumed without kills, and everything is audited: each acknowledged event\n\
          is in its stream, once; the feed contains each event once and in order; each was delivered to the group; the\n\
          views equal the digests of the streams.",
    flags: Flags::augment_args,
    planted: &[
        Bug::EarlyCheckpoint,
        Bug::EarlyPosition,
        Bug::SplitView,
        Bug::DroppedCondition,
    ],
    prepare,
};

/// Maximum pause between two kills, in milliseconds.
const PAUSE_MS_MAX: u64 = 200;
/// How often the writers' log is polled.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Maximum number of runs of the check until a planted bug shows.
const PLANTED_RUNS_MAX: u64 = 30;
/// Without an append for this long, the run counts as stalled.
const STALL_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    events: u64,
    kills: u64,
    streams: u64,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of events to append [default: 200000; quick: 15000]
    #[arg(long, value_name = "N")]
    events: Option<u64>,

    /// Number of kills during the run [default: 200; quick: 30]
    #[arg(long, value_name = "N")]
    kills: Option<u64>,

    /// Number of streams of each kind [default: 3000; quick: 1000]
    #[arg(long, value_name = "N")]
    streams: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        events: flags.events.unwrap_or(common.pick(15_000, 200_000)),
        kills: flags.kills.unwrap_or(common.pick(30, 200)),
        streams: flags.streams.unwrap_or(common.pick(1_000, 3_000)).max(1),
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    until_found(plan.planted, plan.seed, PLANTED_RUNS_MAX, |seed| {
        run_once(Plan { seed, ..plan })
    })
}

fn run_once(plan: Plan) -> Result<Verdict, Failure> {
    let (folder, started) = (tempfile::tempdir()?, Instant::now());
    let files = Files(folder.path().to_owned());
    let mut progress = ProgressPrinter::new(CHECK.name);
    let server = ServerProcess::start(&files, plan.planted)?;
    let url = format!("http://{}", server.address());
    runtime()?.block_on(async {
        let db = Db::connect(ConnectOptions::local(url)).await?;
        config::make_tables(&db).await
    })?;
    let kills = runtime()?.block_on(run_processes(plan, &files, server, &mut progress))?;
    let lived = started.elapsed();
    out::note(&format!(
        "{}: all events are written; processing the rest without kills",
        CHECK.name
    ));
    let findings = runtime()?.block_on(async {
        let db = Db::open(files.data())?;
        let failed = process_remaining(&db, &files, plan).await;
        let mut findings = audit::audit(&db, &files).await?;
        if let Err(Failure::Usage(why) | Failure::Broken(why)) = failed {
            findings.broken(format!("without kills: {why}"));
        }
        Ok::<_, Failure>(findings)
    })?;
    Ok(verdict(plan, kills, &findings, [lived, started.elapsed()]))
}

/// Runs all processes, and kills some of them, until all events are written.
async fn run_processes(
    plan: Plan,
    files: &Files,
    server: ServerProcess,
    progress: &mut ProgressPrinter,
) -> Result<Kills, Failure> {
    let mut processes = ProcessSet::start(plan, files, server)?;
    let random = SeededRandom::new(plan.seed ^ 1);
    let mut written = Tail::new(files.written());
    let (mut acked, mut last_ack, mut next_kill) = (0, Instant::now(), Instant::now());
    loop {
        let lines = written.read()?;
        let runs = lines.iter().filter_map(|line| line.strip_prefix("acked "));
        let new = runs
            .filter_map(Run::parse)
            .map(|run| run.numbers.len() as u64);
        let new: u64 = new.sum();
        if new > 0 {
            (acked, last_ack) = (acked + new, Instant::now());
        }
        let (kills, is_writing) = (processes.kills.total(), processes.is_writing()?);
        if kills >= plan.kills && !is_writing {
            return Ok(processes.end());
        }
        // Three quarters of the kills are spread over the writes; the rest follow while consumers catch up.
        let is_due = !is_writing || acked * plan.kills * 3 / 4 >= kills * plan.events;
        if kills < plan.kills && is_due && Instant::now() >= next_kill {
            processes.kill_one()?;
            next_kill = Instant::now() + Duration::from_millis(random.below(PAUSE_MS_MAX));
        }
        if acked < plan.events && last_ack.elapsed() > STALL_MAX {
            return Err(Failure::Broken(format!(
                "no event was appended for too long: acked={acked}"
            )));
        }
        progress.tick(|| format!("acked={acked} of={} kills={kills}", plan.events));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Indexes and consumes everything left, while no other process runs.
async fn process_remaining(db: &Db, files: &Files, plan: Plan) -> Result<(), Failure> {
    let store = config::store(db);
    match plan.planted {
        Some(Bug::EarlyPosition) => flawed::index(&store, files).await?,
        _ => {
            let options = config::indexer_options(index::name(0));
            store.indexer(options)?.run_until_caught_up().await?;
        }
    }
    let mut partitions = JoinSet::new();
    for partition in PARTITIONS.all() {
        let deliveries = Deliveries::new(files, [partition])?;
        let group = config::consumer(&store, GROUP, partition);
        let view = config::consumer(&store, VIEW, partition);
        partitions.spawn(async move {
            consume::deliver(&group, &deliveries).await?;
            view.run_exactly_once(consume::update_view).await
        });
    }
    join_all(partitions).await
}

fn verdict(plan: Plan, kills: Kills, found: &AuditReport, seconds: [Duration; 2]) -> Verdict {
    if plan.planted.is_none() {
        found.notes.iter().for_each(|note| out::note(note));
    }
    let [lived, all] = seconds;
    let figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("events", found.events)
        .put("streams", found.streams)
        .put("partitions", PARTITIONS.count())
        .put("epochs", found.epochs)
        .put("kills", kills.total())
        .put("kills_indexers", kills.indexers)
        .put("kills_members", kills.members)
        .put("kills_views", kills.views)
        .put("kills_servers", kills.servers)
        .put("acked", found.acked)
        .put("unknown", found.unknown)
        .put("refused", found.refused)
        .put("pruned", found.pruned)
        .put("repeats", found.repeated_records)
        .put("late", found.late_records)
        .put("deliveries", found.deliveries)
        .put("duplicates", found.duplicates)
        .put("lost", found.lost)
        .put("doubled", found.doubled)
        .put("out_of_order", found.out_of_order)
        .put("skipped", found.skipped)
        .put("view_mismatches", found.view_mismatches)
        .put("broken", found.broken)
        .put("lived_seconds", lived.as_secs())
        .put("seconds", all.as_secs());
    let is_clean = found.is_clean() && found.acked >= plan.events && kills.total() >= plan.kills;
    let shown = plan.planted.map(|bug| match bug {
        Bug::EarlyCheckpoint => found.lost > 0,
        Bug::EarlyPosition => found.skipped > 0,
        Bug::SplitView => found.view_mismatches > 0,
        _ => !found.is_clean(),
    });
    Verdict::new(figures, is_clean, shown)
}
