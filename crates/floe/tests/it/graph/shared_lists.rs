//! Concurrent changes of lists by several tasks, on an engine with faults: edges are inserted, moved, reordered,
//! replaced and unlinked. No edge may be lost or duplicated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use floe::graph::{EntityKey, Graph, Node};
use floe::{Db, ErrorKind, Result};
use floe_local::LocalEngine;
use floe_store::Env;
use floe_store::env::SeededRandom;
use floe_testkit::fault::FaultEngine;

use super::model::schema;
use super::no_time::NoTime;
use super::properties::faults;
use super::slow::{Slow, interrupt};

const TASKS: u64 = 6;
const ROUNDS: u64 = 40;
const LISTS: [&str; 2] = ["x", "y"];

/// The effects of a task. It links each object once.
#[derive(Default)]
struct Effects {
    /// Key: object. Value: its list, and whether it is linked; `None` if unknown.
    objects: BTreeMap<String, (usize, Option<bool>)>,
    /// The objects appended to the append-only list, in order, and whether the append is certain.
    appended: Vec<(String, bool)>,
    /// Number of successful changes of each kind.
    made: BTreeMap<&'static str, u64>,
}

struct ListTask {
    db: Db,
    graph: Graph<'static>,
    dice: SeededRandom,
    task: u64,
    effects: Effects,
}

fn subject(list: usize) -> EntityKey {
    EntityKey::new("thing", LISTS[list])
}

fn object(id: &str) -> EntityKey {
    EntityKey::new("thing", id)
}

fn shuffled<T>(mut items: Vec<T>, dice: &SeededRandom) -> Vec<T> {
    for at in (1..items.len()).rev() {
        items.swap(at, dice.below(at as u64 + 1) as usize);
    }
    items
}

impl ListTask {
    /// The number of polls until a call is dropped. Most calls run to the end.
    fn polls(&self) -> u64 {
        match self.dice.below(8) {
            0 => 1 + self.dice.below(30),
            _ => u64::MAX,
        }
    }

    /// Returns whether a call succeeded; `None` if it was dropped.
    fn record_result(&mut self, change: &'static str, result: Option<Result<()>>) -> Option<bool> {
        let is_done = match result? {
            Ok(()) => true,
            Err(error) => {
                // Too many conflicts, or other tasks have changed the objects of the list.
                let kind = error.kind();
                let is_expected =
                    matches!(kind, ErrorKind::TransactionFailed | ErrorKind::InvalidUse);
                assert!(is_expected, "{change}: {error}");
                false
            }
        };
        *self.effects.made.entry(change).or_default() += u64::from(is_done);
        Some(is_done)
    }

    async fn run(mut self) -> Effects {
        for round in 0..ROUNDS {
            let list = self.dice.below(2) as usize;
            match self.dice.below(10) {
                0..=3 => self.link(round, list).await,
                4 => self.unlink().await,
                5 => self.move_one(list).await,
                6 | 7 => self.reorder(list).await,
                8 => self.replace(list).await,
                _ => self.append(round).await,
            }
        }
        self.effects
    }

    async fn link(&mut self, round: u64, list: usize) {
        let id = format!("{}-{round}", self.task);
        let node = Node::new("thing", id.as_str());
        while self.graph.create(&node).await.is_err() {}
        let (polls, position) = (self.polls(), self.dice.below(8) as usize);
        let edges = self.graph.related_by(&subject(list), "likes");
        let linked = interrupt(edges.link_at(position, &object(&id)), polls).await;
        let is_there = self.record_result("link_at", linked);
        self.effects.objects.insert(id, (list, is_there));
    }

    async fn unlink(&mut self) {
        let mut own = self.effects.objects.iter();
        let Some((id, (list, _))) = own.find(|(_, (_, is_there))| *is_there == Some(true)) else {
            return;
        };
        let (id, list, polls) = (id.clone(), *list, self.polls());
        let edges = self.graph.related_by(&subject(list), "likes");
        let unlinked = async { edges.unlink(&object(&id)).await.map(drop) };
        let unlinked = interrupt(unlinked, polls).await;
        let is_there = self
            .record_result("unlink", unlinked)
            .map(|is_done| !is_done);
        self.effects.objects.insert(id, (list, is_there));
    }

    async fn move_one(&mut self, list: usize) {
        let (from, to) = (self.dice.below(6) as usize, self.dice.below(6) as usize);
        let polls = self.polls();
        let edges = self.graph.related_by(&subject(list), "likes");
        let moved = interrupt(edges.move_to(from, to), polls).await;
        self.record_result("move_to", moved);
    }

    async fn reorder(&mut self, list: usize) {
        let edges = self.graph.related_by(&subject(list), "likes");
        let Ok(found) = edges.keys().await else {
            return;
        };
        let objects = found.into_iter().map(|edge| edge.object).collect();
        let (objects, polls) = (shuffled(objects, &self.dice), self.polls());
        let ordered = interrupt(edges.reorder(objects), polls).await;
        self.record_result("reorder", ordered);
    }

    /// Replaces a list by the same objects in another order, on the condition that it has not changed since it was
    /// read.
    async fn replace(&mut self, list: usize) {
        let (polls, dice) = (self.polls(), &self.dice);
        let options = self.db.tx().retries(50);
        let replaced = options.run(async |tx: &floe::Tx| {
            let graph = tx.graph("s");
            let edges = graph.related_by(&subject(list), "likes");
            let found = edges.keys().await?;
            let objects = found.into_iter().map(|edge| edge.object).collect();
            edges.replace(shuffled(objects, dice)).await
        });
        let replaced = interrupt(replaced, polls).await;
        self.record_result("replace", replaced);
    }

    /// Appends to a list that has no other changes.
    async fn append(&mut self, round: u64) {
        let id = format!("{}+{round}", self.task);
        let node = Node::new("thing", id.as_str());
        while self.graph.create(&node).await.is_err() {}
        let polls = self.polls();
        let edges = self.graph.related_by(&subject(0), "follows");
        let linked = interrupt(edges.link(&object(&id)), polls).await;
        match self.record_result("append", linked) {
            Some(false) => {}
            is_there => self.effects.appended.push((id, is_there.is_some())),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_list_changes_lose_and_duplicate_nothing() {
    for seed in 0..5 {
        let local: Arc<LocalEngine> = Arc::new(LocalEngine::memory().unwrap());
        let engine = Arc::new(FaultEngine::new(Arc::new(Slow(local)), faults(seed)));
        let db = Db::with_parts(engine.clone(), Env::system(), Arc::new(NoTime));
        let db = db.with_graph(schema());
        engine.pause();
        db.ensure_graph().await.unwrap();
        let graph = db.graph("s");
        for list in LISTS {
            graph.create(&Node::new("thing", list)).await.unwrap();
        }
        engine.resume();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let task = ListTask {
                    db: db.clone(),
                    graph: graph.clone(),
                    dice: SeededRandom::new(seed * 1000 + task),
                    task,
                    effects: Effects::default(),
                };
                tokio::spawn(task.run())
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await.unwrap());
        }
        engine.pause();
        assert_eq!(graph.check().await.unwrap().differences, [], "seed={seed}");
        check_effects(&graph, &all, seed).await;
        assert!(engine.faults().len() > 20, "{}", engine.faults().len());
    }
}

async fn check_effects(graph: &Graph<'_>, all: &[Effects], seed: u64) {
    for list in 0..LISTS.len() {
        let edges = graph
            .related_by(&subject(list), "likes")
            .keys()
            .await
            .unwrap();
        assert!(edges.is_sorted_by(|one, other| one.index < other.index));
        let found: Vec<&str> = edges.iter().map(|edge| edge.object.id()).collect();
        let once: BTreeSet<&str> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "seed={seed} duplicates: {found:?}");
        let effects = all.iter().flat_map(|effects| &effects.objects);
        for (id, (_, is_there)) in effects.filter(|(_, (of, _))| *of == list) {
            let is_found = once.contains(id.as_str());
            assert!(
                is_there.is_none_or(|is_there| is_there == is_found),
                "seed={seed} id={id}"
            );
        }
    }
    let edges = graph
        .related_by(&subject(0), "follows")
        .keys()
        .await
        .unwrap();
    let found: Vec<&str> = edges.iter().map(|edge| edge.object.id()).collect();
    for effects in all {
        // The appends of each task are in order.
        let own = effects.appended.iter();
        let own: Vec<&str> = own
            .filter(|(id, is_sure)| *is_sure || found.contains(&id.as_str()))
            .map(|(id, _)| id.as_str())
            .collect();
        let position = |id: &&str| found.iter().position(|other| other == id);
        let positions: Vec<_> = own.iter().map(position).collect();
        assert!(positions.iter().all(Option::is_some), "seed={seed} {own:?}");
        assert!(positions.is_sorted(), "seed={seed} {own:?} {found:?}");
    }
    for change in [
        "link_at", "unlink", "move_to", "reorder", "replace", "append",
    ] {
        let made: u64 = all
            .iter()
            .filter_map(|effects| effects.made.get(change))
            .sum();
        assert!(made > 0, "seed={seed} no successful change: {change}");
    }
}
