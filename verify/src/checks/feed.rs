//! `verify feed`: whoever dies, the feed tells every event, in order, and views built from it are exact.
//!
//! | file | what it holds |
//! |---|---|
//! | `setting` | what all processes agree on |
//! | `cast` | the processes: who there is, who is killed |
//! | `server` | serves the store from a directory |
//! | `write`, `prune` | append to streams, and prune them |
//! | `index` | bring what was appended to the feed |
//! | `consume` | are told of it: at least once, and exactly once |
//! | `deliveries` | what they are told, written down |
//! | `careless` | the planted bugs |
//! | `entry` | the events, and what they come to |
//! | `journal` | what processes write down that may be killed at any moment |
//! | `audit` | looks over everything in the end |

mod audit;
mod careless;
mod cast;
mod consume;
mod deliveries;
mod entry;
mod index;
mod journal;
mod prune;
mod server;
mod setting;
mod write;

use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe::Db;
use floe::db::ConnectOptions;
use floe_store::env::SeededRandom;
use tokio::task::JoinSet;

use super::figures::{Figures, Progress, Verdict};
use super::planted::{Bug, until_found};
use super::{Check, Common, Work, join_all};
use crate::{Failure, out};
use audit::Findings;
use cast::{Cast, Kills};
pub(super) use consume::{Member, View};
use deliveries::Deliveries;
pub(super) use index::Indexing;
use journal::{Run, Tail};
use server::Served;
pub(super) use server::Serving;
use setting::{Files, GROUP, PARTITIONS, VIEW, runtime};
pub(super) use write::Writing;

pub(super) const CHECK: Check = Check {
    name: "feed",
    proves: "the feed tells every event in order whoever dies, and views built from it are exact",
    how: "A process serves a durable store. Others append to thousands of streams, index what was appended, under\n\
          one name and under several, and consume the feed, at least once and exactly once; answers get lost, change\n\
          records come again and late. All but the writers are killed with SIGKILL and started again, the server too.\n\
          In the end the rest is indexed and consumed in quiet, and everything is looked over: each acknowledged event\n\
          is in its stream, once; the feed tells each once and in order; each came to the group; the views are what\n\
          the streams come to.",
    flags: Flags::augment_args,
    planted: &[
        Bug::EarlyCheckpoint,
        Bug::EarlyPosition,
        Bug::SplitView,
        Bug::DroppedCondition,
    ],
    prepare,
};

/// A killed process is followed by the next after a pause of at most so many milliseconds at least.
const PAUSE_MS_MAX: u64 = 200;
/// How often it looks what was written meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often the check runs with a planted bug until it shows.
const PLANTED_RUNS_MAX: u64 = 30;
/// Nothing is appended for so long only if nothing goes on any more.
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
    /// Events to append [default: 200000; quick: 15000]
    #[arg(long, value_name = "N")]
    events: Option<u64>,

    /// Processes to kill meanwhile [default: 200; quick: 30]
    #[arg(long, value_name = "N")]
    kills: Option<u64>,

    /// How many streams of each kind [default: 3000; quick: 1000]
    #[arg(long, value_name = "N")]
    streams: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
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
    let mut progress = Progress::new(CHECK.name);
    let server = Served::start(&files, plan.planted)?;
    let url = format!("http://{}", server.address());
    runtime()?.block_on(async {
        let db = Db::connect(ConnectOptions::local(url)).await?;
        setting::make_tables(&db).await
    })?;
    let kills = runtime()?.block_on(play(plan, &files, server, &mut progress))?;
    let lived = started.elapsed();
    out::note(&format!(
        "{}: all is written; the rest in quiet",
        CHECK.name
    ));
    let findings = runtime()?.block_on(async {
        let db = Db::open(files.data())?;
        let failed = settle(&db, &files, plan).await;
        let mut findings = audit::audit(&db, &files).await?;
        if let Err(Failure::Usage(why) | Failure::Broken(why)) = failed {
            findings.broken(format!("in quiet: {why}"));
        }
        Ok::<_, Failure>(findings)
    })?;
    Ok(verdict(plan, kills, &findings, [lived, started.elapsed()]))
}

/// Lets all processes work, and kills them, until all is written.
async fn play(
    plan: Plan,
    files: &Files,
    server: Served,
    progress: &mut Progress,
) -> Result<Kills, Failure> {
    let mut cast = Cast::start(plan, files, server)?;
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
        let (kills, is_writing) = (cast.kills.total(), cast.is_writing()?);
        if kills >= plan.kills && !is_writing {
            return Ok(cast.end());
        }
        // Most are spread over the events. The others come when all is written and is still being read.
        let is_due = !is_writing || acked * plan.kills * 3 / 4 >= kills * plan.events;
        if kills < plan.kills && is_due && Instant::now() >= next_kill {
            cast.kill_one()?;
            next_kill = Instant::now() + Duration::from_millis(random.below(PAUSE_MS_MAX));
        }
        if acked < plan.events && last_ack.elapsed() > STALL_MAX {
            return Err(Failure::Broken(format!(
                "nothing is appended: acked={acked}"
            )));
        }
        progress.tick(|| format!("acked={acked} of={} kills={kills}", plan.events));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Brings everything to the feed and to all consumers, while nobody else does anything.
async fn settle(db: &Db, files: &Files, plan: Plan) -> Result<(), Failure> {
    let store = setting::store(db);
    match plan.planted {
        Some(Bug::EarlyPosition) => careless::index(&store, files).await?,
        _ => {
            let options = setting::indexer_options(index::name(0));
            store.indexer(options)?.run_until_caught_up().await?;
        }
    }
    let mut partitions = JoinSet::new();
    for partition in PARTITIONS.all() {
        let deliveries = Deliveries::new(files, [partition])?;
        let group = setting::consumer(&store, GROUP, partition);
        let view = setting::consumer(&store, VIEW, partition);
        partitions.spawn(async move {
            consume::deliver(&group, &deliveries).await?;
            view.run_exactly_once(consume::fold).await
        });
    }
    join_all(partitions).await
}

fn verdict(plan: Plan, kills: Kills, found: &Findings, seconds: [Duration; 2]) -> Verdict {
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
