//! Random changes of the graph on an engine with faults, compared with a reference model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe::graph::{EntityKey, Graph, Node};
use floe::{Db, ErrorKind};
use floe_local::LocalEngine;
use floe_store::env::SeededRandom;
use floe_store::{Env, Value};
use floe_testkit::fault::{FaultEngine, Faults, Lag};

use super::model::{Model, Outcome, PREDICATES, Thing, schema};
use super::no_time::NoTime;
use super::slow::{Slow, interrupt};

pub(crate) fn faults(seed: u64) -> Faults {
    Faults::seeded(seed)
        .throttle(0.02)
        .conflict(0.02)
        .lost_before(0.02)
        .lost_after(0.03)
        .partial_batches(0.2)
        .index_lag(0.3, Lag::Operations(15))
        .stale_reads(0.3, Lag::Operations(15))
}

async fn world(seed: u64) -> (Graph<'static>, Arc<FaultEngine>) {
    let local: Arc<LocalEngine> = Arc::new(LocalEngine::memory().unwrap());
    let engine = Arc::new(FaultEngine::new(Arc::new(Slow(local)), faults(seed)));
    let db = Db::with_parts(engine.clone(), Env::system(), Arc::new(NoTime)).with_graph(schema());
    engine.pause();
    db.ensure_graph().await.unwrap();
    let graph = db.graph("s");
    graph.find_by("by_value").keys().await.unwrap();
    graph.find_by("by_name").keys().await.unwrap();
    engine.resume();
    (graph, engine)
}

fn node(id: &str, thing: &Thing) -> Node {
    let mut node = Node::new("thing", id);
    if let Some(value) = thing.value {
        node = node.with("value", value);
    }
    if let Some(name) = &thing.name {
        node = node.with("name", name.as_str());
    }
    node
}

fn key(id: &str) -> EntityKey {
    EntityKey::new("thing", id)
}

fn kind<T>(result: floe::Result<T>) -> Outcome {
    result.map(drop).map_err(|error| {
        assert_ne!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
        error.kind()
    })
}

struct Dice(SeededRandom);

impl Dice {
    fn below(&self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn id(&self) -> String {
        ["a", "b", "c:d", "e\\", "f", "ß"][self.below(6)].to_owned()
    }

    fn thing(&self) -> Thing {
        Thing {
            value: (self.below(3) > 0).then(|| self.below(9) as i64 - 4),
            name: (self.below(3) == 0).then(|| format!("n{}", self.below(4))),
        }
    }
}

/// Makes one random change in the graph and in the model. Returns both results.
async fn change(dice: &Dice, graph: &Graph<'_>, model: &mut Model) -> (String, Outcome, Outcome) {
    let (id, thing, predicate) = (dice.id(), dice.thing(), PREDICATES[dice.below(4)]);
    let list = graph.related_by(&key(&id), predicate);
    let mut items = model.list(&id, predicate);
    let keys = |ids: &[String]| ids.iter().map(|id| key(id)).collect::<Vec<_>>();
    let kind_of_change = dice.below(15);
    let (real, expected) = match kind_of_change {
        0 => (
            kind(graph.create(&node(&id, &thing)).await),
            model.create(&id, thing),
        ),
        1 => (
            kind(graph.update(&node(&id, &thing)).await),
            model.update(&id, thing),
        ),
        2 => (
            kind(graph.upsert(&node(&id, &thing)).await),
            model.upsert(&id, thing),
        ),
        3 | 4 => (
            kind(graph.set(&node(&id, &thing)).await),
            model.set(&id, thing),
        ),
        5 => (kind(graph.delete(&key(&id)).await), model.delete(&id)),
        6 | 7 => {
            let new: Vec<_> = (0..=dice.below(2)).map(|_| dice.id()).collect();
            items.extend(new.clone());
            (
                kind(list.append(keys(&new)).await),
                model.set_list(&id, predicate, items),
            )
        }
        8 | 9 => {
            let (at, object) = (dice.below(4), dice.id());
            items.insert(at.min(items.len()), object.clone());
            (
                kind(list.link_at(at, &key(&object)).await),
                model.set_list(&id, predicate, items),
            )
        }
        10 => {
            let object = dice.id();
            items.retain(|item| *item != object);
            (
                kind(list.unlink(&key(&object)).await),
                model.set_list(&id, predicate, items),
            )
        }
        11 => {
            let new: Vec<_> = (0..dice.below(5)).map(|_| dice.id()).collect();
            (
                kind(list.replace(keys(&new)).await),
                model.set_list(&id, predicate, new),
            )
        }
        12 => {
            for at in (1..items.len()).rev() {
                items.swap(at, dice.below(at + 1));
            }
            (
                kind(list.reorder(keys(&items)).await),
                model.set_list(&id, predicate, items),
            )
        }
        13 => (
            kind(graph.merge(&node(&id, &thing)).await),
            model.merge(&id, thing),
        ),
        _ => {
            let (from, to) = (dice.below(3), dice.below(3));
            let is_known = model.things.contains_key(&id);
            let expected = if !is_known {
                Err(ErrorKind::NotFound)
            } else if from.max(to) >= items.len() {
                Err(ErrorKind::InvalidUse)
            } else {
                let moved = items.remove(from);
                items.insert(to, moved);
                model.set_list(&id, predicate, items)
            };
            (kind(list.move_to(from, to).await), expected)
        }
    };
    (format!("{kind_of_change} {id} {predicate}"), real, expected)
}

async fn compare(graph: &Graph<'_>, model: &Model) {
    let report = graph.check().await.unwrap();
    assert_eq!(report.differences, []);
    let all = graph.all_of("thing").collect().await.unwrap();
    let found: BTreeMap<_, _> = all
        .iter()
        .map(|node| {
            let thing = Thing {
                value: node
                    .get("value")
                    .map(|value| value.as_n().unwrap().to_i64().unwrap()),
                name: node.get("name").map(|name| name.as_s().unwrap().to_owned()),
            };
            (node.key.id().to_owned(), thing)
        })
        .collect();
    assert_eq!(found, model.things);
    for id in model.things.keys() {
        for predicate in PREDICATES {
            let edges = graph.related_by(&key(id), predicate).keys().await.unwrap();
            assert_eq!(
                super::support::ids(&edges),
                model.list(id, predicate),
                "{id} {predicate}"
            );
        }
    }
    let even = graph
        .find_by("by_value")
        .eq(&floe::graph::IndexKey::text("even"));
    let even: BTreeSet<_> = even
        .load()
        .await
        .unwrap()
        .iter()
        .map(|n| n.key.id().to_owned())
        .collect();
    let expected = model
        .things
        .iter()
        .filter(|(_, thing)| thing.value.is_some_and(|value| value % 2 == 0));
    assert_eq!(even, expected.map(|(id, _)| id.clone()).collect());
}

#[tokio::test]
async fn single_writer_gets_the_results_of_the_model() {
    for seed in 0..6 {
        let (graph, engine) = world(seed).await;
        let dice = Dice(SeededRandom::new(seed));
        let mut model = Model::default();
        let mut results = BTreeMap::new();
        for step in 0..250 {
            let (change_text, real, expected) = change(&dice, &graph, &mut model).await;
            assert_eq!(real, expected, "seed={seed} step={step} {change_text}");
            *results.entry(format!("{real:?}")).or_insert(0) += 1;
            if step % 50 == 49 {
                engine.pause();
                compare(&graph, &model).await;
                engine.resume();
            }
        }
        assert!(results.len() >= 5, "{results:?}");
        assert!(engine.faults().len() > 20, "{}", engine.faults().len());
    }
}

/// The effects of several tasks, as far as their results show.
#[derive(Default)]
struct Effects {
    /// Created entities.
    created: BTreeSet<String>,
    /// Deleted entities, and whether the deletion is certain.
    deleted: BTreeMap<String, bool>,
    /// Linked edges by the number in their attributes: subject, predicate, object, and whether the link is certain.
    linked: BTreeMap<u64, (String, &'static str, String, bool)>,
}

/// Runs a task that owns its subjects and links them to any entities. Ids are never reused, so that the expected final
/// state does not depend on the order of the tasks.
async fn run(task: u64, seed: u64, graph: Graph<'static>, numbers: Arc<AtomicU64>) -> Effects {
    let dice = Dice(SeededRandom::new(seed * 1000 + task));
    let mut effects = Effects::default();
    let (mut own, mut all) = (Vec::<String>::new(), Vec::<String>::new());
    for _ in 0..60 {
        let number = numbers.fetch_add(1, Ordering::SeqCst);
        // Mostly entities of other tasks, some of them deleted.
        all.push((number % 40).to_string());
        let any = all[dice.below(all.len())].clone();
        let polls = if dice.below(8) == 0 {
            1 + dice.below(30) as u64
        } else {
            u64::MAX
        };
        let mine = (!own.is_empty()).then(|| own[dice.below(own.len().max(1))].clone());
        match (dice.below(10), mine) {
            (0..=2, _) | (_, None) => {
                let id = number.to_string();
                let new = Node::new("thing", id.as_str()).with("value", number);
                if let Some(created) = interrupt(graph.create(&new), polls).await {
                    created.unwrap();
                    effects.created.insert(id.clone());
                    own.push(id);
                }
            }
            (3, Some(id)) => {
                let deleted = interrupt(graph.delete(&key(&id)), polls).await;
                match deleted.map(kind) {
                    Some(Ok(())) => drop(effects.deleted.insert(id, true)),
                    None => drop(effects.deleted.entry(id).or_insert(false)),
                    Some(Err(ErrorKind::Restricted | ErrorKind::TransactionFailed)) => {}
                    Some(Err(kind)) => panic!("{kind:?}"),
                }
            }
            (4, Some(_)) => {
                let counter = key("counter");
                let counter = graph.modify_node(&counter, |node| {
                    let value = node
                        .get("value")
                        .and_then(Value::as_n)
                        .unwrap()
                        .to_i64()
                        .unwrap();
                    node.with("value", value + 1)
                });
                match interrupt(counter, polls).await.map(kind) {
                    Some(Ok(())) => drop(
                        effects
                            .linked
                            .insert(number, (String::new(), "count", String::new(), true)),
                    ),
                    None => drop(
                        effects
                            .linked
                            .insert(number, (String::new(), "count", String::new(), false)),
                    ),
                    Some(Err(ErrorKind::TransactionFailed)) => {}
                    Some(Err(kind)) => panic!("{kind:?}"),
                }
            }
            (_, Some(id)) => {
                let predicate = PREDICATES[dice.below(3)];
                let list = graph.related_by(&key(&id), predicate);
                let attributes = serde_json::json!({"number": number});
                let linked = interrupt(list.link_with(&key(&any), &attributes), polls).await;
                match linked.map(kind) {
                    Some(Ok(())) => drop(effects.linked.insert(number, (id, predicate, any, true))),
                    None => drop(effects.linked.insert(number, (id, predicate, any, false))),
                    Some(Err(ErrorKind::NotFound | ErrorKind::TransactionFailed)) => {}
                    Some(Err(kind)) => panic!("{kind:?}"),
                }
            }
        }
    }
    effects
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_leave_the_reported_effects() {
    for seed in 0..4 {
        let (graph, engine) = world(seed).await;
        graph
            .create(&Node::new("thing", "counter").with("value", 0))
            .await
            .unwrap();
        let numbers = Arc::new(AtomicU64::new(0));
        let tasks: Vec<_> = (0..6)
            .map(|task| tokio::spawn(run(task, seed, graph.clone(), numbers.clone())))
            .collect();
        let mut effects = Effects::default();
        for task in tasks {
            let own = task.await.unwrap();
            effects.created.extend(own.created);
            effects.deleted.extend(own.deleted);
            effects.linked.extend(own.linked);
        }
        engine.pause();
        graph.resume(|_| {}).await.unwrap();
        let report = graph.check().await.unwrap();
        assert_eq!(report.differences, [], "seed={seed}");
        check_effects(&graph, &effects, seed).await;
        assert!(engine.faults().len() > 20, "{}", engine.faults().len());
    }
}

async fn check_effects(graph: &Graph<'_>, effects: &Effects, seed: u64) {
    let all = graph.all_of("thing").collect().await.unwrap();
    let alive: BTreeSet<String> = all.iter().map(|node| node.key.id().to_owned()).collect();
    let count = |sure: bool| {
        let counted = effects.linked.values().filter(|linked| linked.1 == "count");
        counted.filter(|linked| linked.3 || !sure).count() as i64
    };
    let counter = graph.get_node(&key("counter")).await.unwrap().unwrap();
    let value = counter
        .get("value")
        .unwrap()
        .as_n()
        .unwrap()
        .to_i64()
        .unwrap();
    assert!((count(true)..=count(false)).contains(&value), "{value}");
    // Entities deleted by cascade: subjects that follow a deleted object.
    let follows = |subject: &str| {
        let mut edges = effects
            .linked
            .values()
            .filter(|linked| linked.1 == "follows");
        edges.any(|linked| linked.0 == subject && !alive.contains(&linked.2))
    };
    for id in &effects.created {
        match effects.deleted.get(id) {
            Some(true) => assert!(!alive.contains(id), "seed={seed} id={id} was deleted"),
            None if !alive.contains(id) => assert!(follows(id), "seed={seed} id={id} is lost"),
            _ => {}
        }
    }
    for (number, (subject, predicate, object, sure)) in &effects.linked {
        if *predicate == "count" {
            continue;
        }
        let edges = graph
            .related_by(&key(subject), *predicate)
            .keys()
            .await
            .unwrap();
        let is_there = edges
            .iter()
            .any(|edge| edge.attributes.get("number") == Some(&Value::from(*number)));
        let may_be = alive.contains(subject) && alive.contains(object);
        assert!(
            !is_there || may_be,
            "seed={seed} edge {number} has a missing end"
        );
        assert!(
            is_there || !may_be || !sure,
            "seed={seed} edge {number} is lost"
        );
    }
}
