//! Lists that several tasks change at once, on an engine that lies like the cloud: linked at any place, moved, reordered,
//! replaced and unlinked. Whoever was faster, nothing is lost and nothing is there twice.

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

/// What a task knows of the objects that it has linked, each of which is linked once.
#[derive(Default)]
struct Known {
    /// By object: the list, and whether it is there; `None` if nobody knows.
    objects: BTreeMap<String, (usize, Option<bool>)>,
    /// Those that were appended to the list that only grows, in their order.
    appended: Vec<(String, bool)>,
    /// How often each kind of change was made.
    made: BTreeMap<&'static str, u64>,
}

struct Player {
    db: Db,
    graph: Graph<'static>,
    dice: SeededRandom,
    task: u64,
    known: Known,
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

impl Player {
    /// Most calls are let through, some are dropped in the middle.
    fn polls(&self) -> u64 {
        match self.dice.below(8) {
            0 => 1 + self.dice.below(30),
            _ => u64::MAX,
        }
    }

    /// Tells what became of a call; `None` if nobody knows.
    fn judge(&mut self, what: &'static str, answer: Option<Result<()>>) -> Option<bool> {
        let is_done = match answer? {
            Ok(()) => true,
            Err(error) => {
                // Somebody else was faster each time, or the list has other objects by now.
                let kind = error.kind();
                let is_expected =
                    matches!(kind, ErrorKind::TransactionFailed | ErrorKind::InvalidUse);
                assert!(is_expected, "{what}: {error}");
                false
            }
        };
        *self.known.made.entry(what).or_default() += u64::from(is_done);
        Some(is_done)
    }

    async fn play(mut self) -> Known {
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
        self.known
    }

    async fn link(&mut self, round: u64, list: usize) {
        let id = format!("{}-{round}", self.task);
        let node = Node::new("thing", id.as_str());
        while self.graph.create(&node).await.is_err() {}
        let (polls, place) = (self.polls(), self.dice.below(8) as usize);
        let edges = self.graph.related_by(&subject(list), "likes");
        let linked = interrupt(edges.link_at(place, &object(&id)), polls).await;
        let is_there = self.judge("link_at", linked);
        self.known.objects.insert(id, (list, is_there));
    }

    async fn unlink(&mut self) {
        let mut own = self.known.objects.iter();
        let Some((id, (list, _))) = own.find(|(_, (_, is_there))| *is_there == Some(true)) else {
            return;
        };
        let (id, list, polls) = (id.clone(), *list, self.polls());
        let edges = self.graph.related_by(&subject(list), "likes");
        let unlinked = async { edges.unlink(&object(&id)).await.map(drop) };
        let unlinked = interrupt(unlinked, polls).await;
        let is_there = self.judge("unlink", unlinked).map(|is_done| !is_done);
        self.known.objects.insert(id, (list, is_there));
    }

    async fn move_one(&mut self, list: usize) {
        let (from, to) = (self.dice.below(6) as usize, self.dice.below(6) as usize);
        let polls = self.polls();
        let edges = self.graph.related_by(&subject(list), "likes");
        let moved = interrupt(edges.move_to(from, to), polls).await;
        self.judge("move_to", moved);
    }

    async fn reorder(&mut self, list: usize) {
        let edges = self.graph.related_by(&subject(list), "likes");
        let Ok(found) = edges.keys().await else {
            return;
        };
        let objects = found.into_iter().map(|edge| edge.object).collect();
        let (objects, polls) = (shuffled(objects, &self.dice), self.polls());
        let ordered = interrupt(edges.reorder(objects), polls).await;
        self.judge("reorder", ordered);
    }

    /// Replaces a list by the same in another order, on the condition that it is as it was read.
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
        self.judge("replace", replaced);
    }

    /// Appends to a list that is changed in no other way.
    async fn append(&mut self, round: u64) {
        let id = format!("{}+{round}", self.task);
        let node = Node::new("thing", id.as_str());
        while self.graph.create(&node).await.is_err() {}
        let polls = self.polls();
        let edges = self.graph.related_by(&subject(0), "follows");
        let linked = interrupt(edges.link(&object(&id)), polls).await;
        match self.judge("append", linked) {
            Some(false) => {}
            is_there => self.known.appended.push((id, is_there.is_some())),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_several_change_lose_and_double_nothing() {
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
                let player = Player {
                    db: db.clone(),
                    graph: graph.clone(),
                    dice: SeededRandom::new(seed * 1000 + task),
                    task,
                    known: Known::default(),
                };
                tokio::spawn(player.play())
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.push(task.await.unwrap());
        }
        engine.pause();
        assert_eq!(graph.check().await.unwrap().differences, [], "seed={seed}");
        judge(&graph, &all, seed).await;
        assert!(engine.faults().len() > 20, "{}", engine.faults().len());
    }
}

async fn judge(graph: &Graph<'_>, all: &[Known], seed: u64) {
    for list in 0..LISTS.len() {
        let edges = graph
            .related_by(&subject(list), "likes")
            .keys()
            .await
            .unwrap();
        assert!(edges.is_sorted_by(|one, other| one.index < other.index));
        let found: Vec<&str> = edges.iter().map(|edge| edge.object.id()).collect();
        let once: BTreeSet<&str> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "seed={seed} twice: {found:?}");
        let known = all.iter().flat_map(|known| &known.objects);
        for (id, (_, is_there)) in known.filter(|(_, (of, _))| *of == list) {
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
    for known in all {
        // Each task's own, in its order.
        let own = known.appended.iter();
        let own: Vec<&str> = own
            .filter(|(id, is_sure)| *is_sure || found.contains(&id.as_str()))
            .map(|(id, _)| id.as_str())
            .collect();
        let place = |id: &&str| found.iter().position(|other| other == id);
        let places: Vec<_> = own.iter().map(place).collect();
        assert!(places.iter().all(Option::is_some), "seed={seed} {own:?}");
        assert!(places.is_sorted(), "seed={seed} {own:?} {found:?}");
    }
    for what in [
        "link_at", "unlink", "move_to", "reorder", "replace", "append",
    ] {
        let made: u64 = all.iter().filter_map(|known| known.made.get(what)).sum();
        assert!(made > 0, "seed={seed} nobody made any: {what}");
    }
}
