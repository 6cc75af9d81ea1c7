//! A hub to which very many edges lead is deleted, by processes that are killed again and again: nothing is left of it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use floe::Db;
use floe::graph::{Graph, Node};
use floe_store::env::SeededRandom;
use floe_testkit::fault::FaultEngine;

use super::super::child::{self, Child, Heard};
use super::super::directory::{self, Settings};
use super::super::figures::Progress;
use super::super::record::{Record, Reporter};
use super::super::runtime;
use super::moves::{SCOPE, schema};
use super::{Plan, Run, SILENCE_MAX, failed, look, player};
use crate::Failure;
use crate::checks::role::Role;

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "graph-hub";
/// How many edges a subject has that leads to the hub.
const EDGES_EACH: u64 = 45;
/// How often the processes are killed, about.
const KILLS: u64 = 20;
/// How many edges go in one step, about.
const STEP_EDGES: u64 = 99;

const HUB: (&str, &str) = ("hub", "wide");

/// Makes the hub.
async fn build(db: &Db, edges: u64, progress: &mut Progress) -> Result<(), Failure> {
    let graph = db.graph(SCOPE);
    graph
        .create(&Node::new(HUB.0, HUB.1))
        .await
        .map_err(failed)?;
    for number in 0..edges.div_ceil(EDGES_EACH) {
        let fan = Node::new("fan", number);
        graph.create(&fan).await.map_err(failed)?;
        let left = (edges - number * EDGES_EACH).min(EDGES_EACH);
        let list = graph.related_by(&fan, "likes");
        let linked = list.append((0..left).map(|_| HUB));
        linked.await.map_err(failed)?;
        progress.tick(|| format!("linked={} of={edges}", number * EDGES_EACH));
    }
    Ok(())
}

impl Run {
    /// Has the hub deleted, kills who does it, and lets others go on until it is done.
    pub(super) fn delete_hub(&mut self, folder: &Path, plan: Plan) -> Result<(), Failure> {
        let mut progress = Progress::new("graph");
        look(folder, async |db| build(db, plan.hub, &mut progress).await)?;
        let random = SeededRandom::new(plan.seed ^ plan.hub);
        let steps = (plan.hub / STEP_EDGES / KILLS).max(1);
        let mut is_done = false;
        while !is_done {
            let child = Child::start(command(folder, random.below(1 << 40))?)?;
            let mut left = 1 + random.below(2 * steps);
            let mut told = 0;
            while left > 0 && !is_done {
                match child.hear(Instant::now() + SILENCE_MAX) {
                    Heard::Record(Record::Acked(edges)) => {
                        (left, told) = (left - 1, edges);
                        progress.tick(|| format!("hub incoming_left={edges} of={}", plan.hub));
                    }
                    Heard::Record(Record::Done) => is_done = true,
                    Heard::Record(Record::Broken(what)) => {
                        self.broken += 1;
                        self.note(what);
                        is_done = true;
                    }
                    Heard::Record(_) => {}
                    Heard::Nothing | Heard::End => {
                        return Err(Failure::broken("the process that deletes has stopped"));
                    }
                }
            }
            let (_, ending) = child.kill()?;
            self.hub_kills += u64::from(!is_done);
            if ending.panicked() {
                self.broken += 1;
                self.note(ending.stderr);
            }
            if told > 0 {
                look(folder, async |db| self.judge_hub(&db.graph(SCOPE)).await)?;
            }
        }
        look(folder, async |db| {
            let graph = db.graph(SCOPE);
            self.hub_edges = plan.hub;
            self.judge_hub(&graph).await?;
            let report = graph.check().await.map_err(failed)?;
            let edges = graph.referrers(&HUB).keys().await.map_err(failed)?;
            self.hub_left = (edges.len() + report.differences.len()) as u64;
            for difference in report.differences {
                self.orphans += 1;
                self.note(difference.to_string());
            }
            Ok(())
        })
    }

    /// What is being deleted is gone for readers, however many of its edges are still there.
    async fn judge_hub(&mut self, graph: &Graph<'static>) -> Result<(), Failure> {
        let hub = graph.get_node(&HUB).await.map_err(failed)?;
        let referrers = graph.referrers(&HUB).page(10, None).await.map_err(failed)?;
        let list = graph.related_by(&("fan", 0), "likes");
        let (keys, objects) = (list.keys().await, list.objects().await);
        let seen = keys.map_err(failed)?.len() + objects.map_err(failed)?.len();
        if hub.is_some() || !referrers.rows.is_empty() || seen > 0 {
            self.broken += 1;
            self.note("readers see what is being deleted".to_owned());
        }
        Ok(())
    }
}

fn command(folder: &Path, seed: u64) -> std::io::Result<Command> {
    let mut command = child::command(ROLE)?;
    command.arg("--folder").arg(folder);
    command.arg("--seed").arg(seed.to_string());
    Ok(command)
}

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Deleting {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
}

impl Role for Deleting {
    const NAME: &str = ROLE;

    /// Runs the role: ends what was begun, deletes the hub, and tells after each step how many edges are left.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self { folder, seed } = self;
        let reporter = Reporter::new(std::io::stdout());
        let opened = directory::open(&folder, Settings::default())?;
        let engine = Arc::new(FaultEngine::new(opened.engine(), player::faults(seed)));
        let db = Db::with_engine(engine).with_graph(schema());
        let graph = db.graph(SCOPE);
        runtime()?.block_on(async {
            let tell = |progress: &floe::graph::Progress| {
                // Whoever listens may be gone.
                drop(reporter.tell(&Record::Acked(progress.incoming_left)));
            };
            // Requests may fail too often to go on; what is left is gone on with.
            while graph.resume(tell).await.is_err() {}
            while graph.delete_with(&HUB, tell).await.is_err() {
                while graph.resume(tell).await.is_err() {}
            }
        });
        reporter.tell(&Record::Done)?;
        // As a process that dies: nothing is closed.
        std::process::exit(0)
    }
}
