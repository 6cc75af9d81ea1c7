//! `verify graph`: the tables of the graph agree and no acknowledged change is lost, whichever process dies.
//!
//! | file | contents |
//! |---|---|
//! | `hub` | deletes a hub with very many edges, in processes that are killed |
//! | `moves` | the random changes |
//! | `worker` | the process that makes them, on an engine that loses responses |

mod hub;
mod moves;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe::Db;
use floe::graph::{Difference, Graph};
use floe_store::Value;
use floe_store::env::SeededRandom;

use super::child::{Child, ChildEvent};
use super::directory::{self, Settings};
use super::figures::{Figures, ProgressPrinter, Verdict};
use super::planted::Bug;
use super::record::Record;
use super::{Check, CheckRun, Common, runtime, test_table};
use crate::{Failure, out};
pub(super) use hub::DeleteHubRole;
use moves::{COUNTERS, HUB_MOVES, Move, SCOPE, THINGS};
pub(super) use worker::WorkerRole;

pub(super) const CHECK: Check = Check {
    name: "graph",
    proves: "the tables of the graph agree and no acknowledged change is lost, under faults and SIGKILL",
    how: "A process changes a graph from several tasks, on an engine that throttles, loses responses and serves \
          stale\nindexes: things are created, updated, linked, reordered and deleted, counters incremented, and hubs \
          with\nhundreds of edges deleted in steps. It is killed at a random moment; then interrupted changes are \
          completed,\nand the three tables are compared with each other and with the acknowledged changes. At the end a \
          hub with\nvery many edges is deleted by processes that are killed; readers must not see it, and none of its \
          edges may remain.",
    flags: Flags::augment_args,
    planted: &[Bug::SplitTransaction, Bug::DroppedCondition, Bug::EarlyAck],
    prepare,
};

/// A process that prints nothing for this long counts as hanging.
const SILENCE_MAX: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    kills: u64,
    moves: u64,
    tasks: u64,
    hub: u64,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of kills [default: 50; quick: 8]
    #[arg(long, value_name = "N")]
    kills: Option<u64>,

    /// Total number of changes [default: 20000; quick: 2400]
    #[arg(long, value_name = "N")]
    moves: Option<u64>,

    /// Concurrent tasks
    #[arg(long, value_name = "N", default_value_t = 8)]
    tasks: u64,

    /// Edges of the hub that is deleted at the end [default: 100000; quick: 2000; 0: none]
    #[arg(long, value_name = "N")]
    hub: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        kills: flags.kills.unwrap_or(common.pick(8, 50)),
        moves: flags.moves.unwrap_or(common.pick(2400, 20_000)),
        tasks: flags.tasks,
        hub: flags.hub.unwrap_or(common.pick(2000, 100_000)),
    };
    Ok(Box::new(move || run(plan)))
}

/// The outcomes of the moves, and the findings.
#[derive(Default)]
struct Run {
    acked: BTreeSet<u64>,
    /// Moves whose outcome is unknown.
    open: BTreeSet<u64>,
    /// The number of the next move.
    next: u64,
    refused: u64,
    kills: u64,
    orphans: u64,
    missing: u64,
    lost: u64,
    unfinished: u64,
    broken: u64,
    hub_edges: u64,
    hub_kills: u64,
    /// Remaining edges of the hub, and differences between the tables.
    hub_left: u64,
    notes: Vec<String>,
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let folder = tempfile::tempdir()?;
    let started = Instant::now();
    let mut progress = ProgressPrinter::new(CHECK.name);
    let random = SeededRandom::new(plan.seed);
    let mut run = Run::default();
    with_db(folder.path(), async |db| {
        prepare_graph(db, plan.moves).await
    })?;
    let each = (plan.moves / plan.kills.max(1)).max(1);
    for cycle in 0..plan.kills {
        run.run_worker(folder.path(), plan, each, &random)?;
        with_db(folder.path(), async |db| {
            run.audit(&db.graph(SCOPE), plan.seed).await
        })?;
        progress.tick(|| format!("cycle={cycle} of={} acked={}", plan.kills, run.acked.len()));
        if run.found() {
            break;
        }
    }
    if plan.hub > 0 && plan.planted.is_none() && !run.found() {
        run.delete_hub(folder.path(), plan)?;
    }
    Ok(run.verdict(plan, started.elapsed()))
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes errors by value"
)]
fn failed(error: floe::Error) -> Failure {
    Failure::broken(error.to_string())
}

/// Runs an operation on the opened directory, and closes it again.
fn with_db(
    folder: &Path,
    work: impl AsyncFnOnce(&Db) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let opened = directory::open(folder, Settings::default())?;
    let db = Db::with_engine(opened.engine()).with_graph(moves::schema());
    runtime()?.block_on(work(&db))?;
    drop(db);
    Ok(opened.close()?)
}

async fn prepare_graph(db: &Db, moves: u64) -> Result<(), Failure> {
    db.ensure_graph().await.map_err(failed)?;
    let graph = db.graph(SCOPE);
    for id in 0..THINGS {
        graph.create(&moves::thing(id)).await.map_err(failed)?;
    }
    for counter in 0..COUNTERS {
        let counter = floe::graph::Node::new("counter", counter).with("value", 0);
        graph.create(&counter).await.map_err(failed)?;
    }
    // A process may make more moves than its share.
    for hub in 0..=2 * moves / HUB_MOVES {
        let hub = floe::graph::Node::new("hub", hub);
        graph.create(&hub).await.map_err(failed)?;
    }
    Ok(())
}

impl Run {
    /// Lets a process make about this many moves and kills it.
    fn run_worker(
        &mut self,
        folder: &Path,
        plan: Plan,
        moves: u64,
        random: &SeededRandom,
    ) -> Result<(), Failure> {
        let worker = worker::WorkerSpec {
            folder,
            seed: plan.seed,
            first: self.next,
            moves: moves * 2,
            tasks: plan.tasks,
            planted: plan.planted.filter(|bug| *bug != Bug::EarlyAck),
        };
        let child = Child::start(worker.command()?)?;
        let mut left = moves / 2 + random.below(moves + 1);
        let is_early_ack = plan.planted == Some(Bug::EarlyAck);
        let mut has_ended = false;
        while left > 0 && !has_ended {
            match child.receive(Instant::now() + SILENCE_MAX) {
                ChildEvent::Record(record) => {
                    left -= u64::from(matches!(record, Record::Acked(_) | Record::Refused(_)));
                    has_ended = record == Record::Done;
                    self.record(record, is_early_ack);
                }
                ChildEvent::Timeout => return Err(Failure::broken("the graph process hangs")),
                ChildEvent::Closed => has_ended = true,
            }
        }
        let (remaining, exit) = child.kill()?;
        self.kills += 1;
        remaining
            .into_iter()
            .for_each(|record| self.record(record, is_early_ack));
        if exit.panicked() || (has_ended && !exit.stderr.is_empty()) {
            self.note(format!("the process failed: {}", exit.stderr));
            self.broken += 1;
        }
        Ok(())
    }

    fn record(&mut self, record: Record, is_early_ack: bool) {
        if let Record::Intent(operation) = &record {
            self.next = self.next.max(operation.stamp + 1);
        }
        match record {
            Record::Intent(operation) if is_early_ack => drop(self.acked.insert(operation.stamp)),
            Record::Intent(operation) => drop(self.open.insert(operation.stamp)),
            Record::Acked(number) => {
                self.open.remove(&number);
                self.acked.insert(number);
            }
            Record::Refused(number) => {
                self.open.remove(&number);
                self.refused += 1;
            }
            Record::Broken(what) => {
                self.broken += 1;
                self.note(what);
            }
            _ => {}
        }
    }

    fn note(&mut self, what: String) {
        if self.notes.len() < 20 {
            self.notes.push(what);
        }
    }

    /// Completes interrupted changes, and audits the graph.
    async fn audit(&mut self, graph: &Graph<'static>, seed: u64) -> Result<(), Failure> {
        let resumed = graph.resume(|_| {}).await.map_err(failed)?;
        self.unfinished += resumed.entities;
        let report = graph.check().await.map_err(failed)?;
        for difference in report.differences {
            match &difference {
                Difference::MissingEntry { .. }
                | Difference::MissingClaim { .. }
                | Difference::WrongKeys { .. } => self.missing += 1,
                _ => self.orphans += 1,
            }
            self.note(difference.to_string());
        }
        self.audit_counters(graph, seed).await?;
        self.audit_things(graph, seed).await
    }

    async fn audit_counters(&mut self, graph: &Graph<'static>, seed: u64) -> Result<(), Failure> {
        for counter in 0..COUNTERS {
            let raised = |numbers: &BTreeSet<u64>| {
                let counts = numbers.iter();
                let counts =
                    counts.filter(|number| Move::of(seed, **number) == Move::Increment(counter));
                counts.count() as i64
            };
            let (acked_count, open_count) = (raised(&self.acked), raised(&self.open));
            let node = graph
                .get_node(&("counter", counter))
                .await
                .map_err(failed)?;
            let value = node.as_ref().map_or(0, moves::value);
            if !(acked_count..=acked_count + open_count).contains(&value) {
                self.lost += 1;
                self.note(format!(
                    "a counter is wrong: counter={counter} acked={acked_count} unknown={open_count} value={value}"
                ));
            }
        }
        Ok(())
    }

    /// Created things must exist unless they were deleted, and so must the edges between them.
    async fn audit_things(&mut self, graph: &Graph<'static>, seed: u64) -> Result<(), Failure> {
        let all = graph.all_of("thing").collect().await.map_err(failed)?;
        let alive: BTreeSet<_> = all.iter().map(|node| node.key.clone()).collect();
        let mut deleted: BTreeMap<u64, bool> = BTreeMap::new();
        let (mut created, mut links) = (BTreeSet::new(), Vec::new());
        for (number, is_sure) in numbers(&self.acked, true).chain(numbers(&self.open, false)) {
            match Move::of(seed, number) {
                Move::Create if is_sure => drop(created.insert(THINGS + number)),
                Move::Delete(id) => *deleted.entry(id).or_default() |= is_sure,
                Move::Link(subject, predicate, object) if is_sure => {
                    links.push((number, subject, predicate, object));
                }
                _ => {}
            }
        }
        for id in created {
            let is_alive = alive.contains(&moves::key(id));
            let is_wrong = match deleted.get(&id) {
                None => !is_alive,
                Some(true) => is_alive,
                Some(false) => false,
            };
            if is_wrong {
                self.lost += 1;
                self.note(format!(
                    "a thing is missing, or exists after its deletion: id={id} is_alive={is_alive}"
                ));
            }
        }
        let mut edges = BTreeSet::new();
        for key in &alive {
            let list = graph.related_all(key).keys().await.map_err(failed)?;
            let numbered = list.iter().filter_map(|edge| edge.attributes.get("number"));
            edges.extend(numbered.filter_map(Value::as_s).map(str::to_owned));
        }
        for (number, subject, predicate, object) in links {
            let both = [subject, object].map(moves::key);
            if both.iter().all(|key| alive.contains(key)) && !edges.contains(&number.to_string()) {
                self.lost += 1;
                self.note(format!(
                    "an edge is lost: number={number} predicate={predicate}"
                ));
            }
        }
        Ok(())
    }

    const fn found(&self) -> bool {
        self.orphans + self.missing + self.lost + self.broken > 0
    }

    fn verdict(self, plan: Plan, elapsed: Duration) -> Verdict {
        if plan.planted.is_none() {
            self.notes.iter().for_each(|note| out::note(note));
        }
        let figures = Figures::new(CHECK.name)
            .put("seed", plan.seed)
            .put("kills", self.kills)
            .put("tasks", plan.tasks)
            .put(
                "moves",
                self.acked.len() as u64 + self.refused + self.open.len() as u64,
            )
            .put("acked", self.acked.len())
            .put("refused", self.refused)
            .put("open", self.open.len())
            .put("resumed", self.unfinished)
            .put("orphans", self.orphans)
            .put("missing", self.missing)
            .put("lost", self.lost)
            .put("broken", self.broken)
            .put("hub_edges", self.hub_edges)
            .put("hub_kills", self.hub_kills)
            .put("hub_left", self.hub_left)
            .put("seconds", elapsed.as_secs());
        let found = self.found();
        let is_clean = !found && self.hub_left == 0 && !self.acked.is_empty();
        Verdict::new(figures, is_clean, plan.planted.map(|_| found))
    }
}

fn numbers(of: &BTreeSet<u64>, is_sure: bool) -> impl Iterator<Item = (u64, bool)> {
    of.iter().map(move |number| (*number, is_sure))
}
