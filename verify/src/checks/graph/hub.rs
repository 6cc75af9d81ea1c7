//! Deletes a hub with very many incoming edges, in processes that are killed repeatedly: nothing may remain of it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use floe::Db;
use floe::graph::{Graph, Node};
use floe_store::env::SeededRandom;
use floe_testkit::fault::FaultEngine;

use super::super::child::{self, Child, ChildEvent};
use super::super::directory::{self, Settings};
use super::super::figures::ProgressPrinter;
use super::super::record::{Record, Reporter};
use super::super::runtime;
use super::moves::{SCOPE, schema};
use super::{Plan, Run, SILENCE_MAX, failed, with_db, worker};
use crate::Failure;
use crate::checks::role::Role;

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "graph-hub";
/// Number of edges from each subject to the hub.
const EDGES_EACH: u64 = 45;
/// Approximate number of kills.
const KILLS: u64 = 20;
/// Approximate number of edges deleted per step.
const STEP_EDGES: u64 = 99;

const HUB: (&str, &str) = ("hub", "wide");

/// Creates the hub and its edges.
async fn build(db: &Db, edges: u64, progress: &mut ProgressPrinter) -> Result<(), Failure> {
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
    /// Deletes the hub in processes that are killed, until one completes the deletion.
    pub(super) fn delete_hub(&mut self, folder: &Path, plan: Plan) -> Result<(), Failure> {
        let mut progress = ProgressPrinter::new("graph");
        with_db(folder, async |db| build(db, plan.hub, &mut progress).await)?;
        let random = SeededRandom::new(plan.seed ^ plan.hub);
        let steps = (plan.hub / STEP_EDGES / KILLS).max(1);
        let mut is_done = false;
        while !is_done {
            let child = Child::start(command(folder, random.below(1 << 40))?)?;
            let mut left = 1 + random.below(2 * steps);
            let mut edges_left = 0;
            while left > 0 && !is_done {
                match child.receive(Instant::now() + SILENCE_MAX) {
                    ChildEvent::Record(Record::Acked(edges)) => {
                        (left, edges_left) = (left - 1, edges);
                        progress.tick(|| format!("incoming_left={edges} of={}", plan.hub));
                    }
                    ChildEvent::Record(Record::Done) => is_done = true,
                    ChildEvent::Record(Record::Broken(what)) => {
                        self.broken += 1;
                        self.note(what);
                        is_done = true;
                    }
                    ChildEvent::Record(_) => {}
                    ChildEvent::Timeout | ChildEvent::Closed => {
                        return Err(Failure::broken("the deleting process stopped"));
                    }
                }
            }
            let (_, exit) = child.kill()?;
            self.hub_kills += u64::from(!is_done);
            if exit.panicked() {
                self.broken += 1;
                self.note(exit.stderr);
            }
            if edges_left > 0 {
                with_db(folder, async |db| self.audit_hub(&db.graph(SCOPE)).await)?;
            }
        }
        with_db(folder, async |db| {
            let graph = db.graph(SCOPE);
            self.hub_edges = plan.hub;
            self.audit_hub(&graph).await?;
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

    /// An entity under deletion must be invisible to readers, even while some of its edges remain.
    async fn audit_hub(&mut self, graph: &Graph<'static>) -> Result<(), Failure> {
        let hub = graph.get_node(&HUB).await.map_err(failed)?;
        let referrers = graph.referrers(&HUB).page(10, None).await.map_err(failed)?;
        let list = graph.related_by(&("fan", 0), "likes");
        let (keys, objects) = (list.keys().await, list.objects().await);
        let seen = keys.map_err(failed)?.len() + objects.map_err(failed)?.len();
        if hub.is_some() || !referrers.rows.is_empty() || seen > 0 {
            self.broken += 1;
            self.note("readers see an entity under deletion".to_owned());
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

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct DeleteHubRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
}

impl Role for DeleteHubRole {
    const NAME: &str = ROLE;

    /// Completes interrupted changes, deletes the hub, and reports after each step how many edges are left.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self { folder, seed } = self;
        let reporter = Reporter::new(std::io::stdout());
        let opened = directory::open(&folder, Settings::default())?;
        let engine = Arc::new(FaultEngine::new(opened.engine(), worker::faults(seed)));
        let db = Db::with_engine(engine).with_graph(schema());
        let graph = db.graph(SCOPE);
        runtime()?.block_on(async {
            let report = |progress: &floe::graph::DeletionProgress| {
                // An error means that the check has ended.
                drop(reporter.report(&Record::Acked(progress.incoming_left)));
            };
            // Requests can fail too often in a row; resuming continues the deletion.
            while graph.resume(report).await.is_err() {}
            while graph.delete_with(&HUB, report).await.is_err() {
                while graph.resume(report).await.is_err() {}
            }
        });
        reporter.report(&Record::Done)?;
        // Like a process that dies: nothing is closed.
        std::process::exit(0)
    }
}
