//! Transactions of models over a faulty network.

use std::collections::BTreeSet;

use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::Env;

use super::*;

/// A counter, and the names of the increments: an increment applied twice changes the count but not the set.
#[derive(Clone, Debug, Default, PartialEq, Model)]
struct Tally {
    #[model(key)]
    id: String,
    count: i64,
    by: BTreeSet<String>,
}

const TASKS: usize = 4;
const EACH: usize = 40;

/// A tenth of all requests is cut before, a tenth after, and some in the middle of the response.
fn cuts() -> Cuts {
    Cuts::seeded(7)
        .rate(Cut::Before, 0.1)
        .rate(Cut::After, 0.1)
        .rate(Cut::Inside, 0.05)
}

struct CounterWorld {
    world: World,
    db: Db,
    direct: Db,
}

async fn counter_world(ids: &[&str]) -> CounterWorld {
    let world = world(cuts()).await;
    let direct = Db::with_engine(world.remote.local.clone());
    direct.ensure_tables(&[Tally::SCHEMA]).await.unwrap();
    for id in ids {
        let id = (*id).to_owned();
        let create = async |tx: &Tx| {
            let id = id.clone();
            tx.create(Tally {
                id,
                ..Tally::default()
            })
            .map(drop)
        };
        direct.transact(create).await.unwrap();
    }
    let engine = Arc::new(world.engine.clone());
    let db = Db::with_parts(engine, Env::system(), world.timer.clone());
    CounterWorld { world, db, direct }
}

async fn tally(db: &Db, id: &str) -> Tally {
    let body = async |tx: &Tx| Ok::<_, Error>(tx.get::<Tally>(id).await?.unwrap().to_model());
    db.transact(body).await.unwrap()
}

/// The increments that were acknowledged, and those with unknown outcome.
#[derive(Default)]
struct Outcomes {
    acknowledged: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// Increments from all tasks, each time with another name.
async fn count(
    counters: &CounterWorld,
    ids: &'static [&'static str],
    exactly_once: bool,
) -> Outcomes {
    let tasks = (0..TASKS).map(|task| {
        let db = counters.db.clone();
        tokio::spawn(async move {
            let mut outcomes = Outcomes::default();
            for n in 0..EACH {
                let name = format!("{task}-{n}");
                let body = async |tx: &Tx| {
                    for id in ids {
                        let mut tally = tx.get::<Tally>(*id).await?.unwrap();
                        tally.count += 1;
                        tally.by.insert(name.clone());
                    }
                    Ok::<_, Error>(())
                };
                let mut options = db.tx().retries(100_000);
                if exactly_once {
                    options = options.exactly_once();
                }
                match options.run(body).await {
                    Ok(()) => outcomes.acknowledged.insert(name),
                    Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                        outcomes.unknown.insert(name)
                    }
                    Err(error) => panic!("{error:?}"),
                };
            }
            outcomes
        })
    });
    let mut all = Outcomes::default();
    for task in tasks.collect::<Vec<_>>() {
        let outcomes = task.await.unwrap();
        all.acknowledged.extend(outcomes.acknowledged);
        all.unknown.extend(outcomes.unknown);
    }
    assert_eq!(all.acknowledged.len() + all.unknown.len(), TASKS * EACH);
    all
}

/// Checks that acknowledged increments are present, all others have an unknown outcome, and none was applied twice.
#[track_caller]
fn check(tally: &Tally, outcomes: &Outcomes) {
    assert!(
        tally.by.is_superset(&outcomes.acknowledged),
        "lost: {:?}",
        outcomes.acknowledged.difference(&tally.by)
    );
    let known =
        |name: &String| outcomes.acknowledged.contains(name) || outcomes.unknown.contains(name);
    assert!(
        tally.by.iter().all(known),
        "an increment that was reported as failed was applied"
    );
    assert_eq!(
        tally.count,
        tally.by.len() as i64,
        "an increment was applied twice"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_over_several_items_are_applied_once() {
    let counters = counter_world(&["a", "b"]).await;
    let outcomes = count(&counters, &["a", "b"], false).await;
    assert_eq!(
        outcomes.unknown,
        BTreeSet::new(),
        "the token settles the outcome"
    );
    for id in ["a", "b"] {
        check(&tally(&counters.direct, id).await, &outcomes);
    }
    assert_all_faults_occurred(&counters);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_once_single_writes_are_applied_once() {
    let counters = counter_world(&["a"]).await;
    let outcomes = count(&counters, &["a"], true).await;
    assert_eq!(outcomes.unknown, BTreeSet::new());
    check(&tally(&counters.direct, "a").await, &outcomes);
    assert_all_faults_occurred(&counters);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_single_writes_are_settled_by_stamp_or_unknown() {
    let counters = counter_world(&["a"]).await;
    let outcomes = count(&counters, &["a"], false).await;
    check(&tally(&counters.direct, "a").await, &outcomes);
    assert_all_faults_occurred(&counters);
}

/// Checks that every kind of fault occurred, without which the run would prove nothing.
#[track_caller]
fn assert_all_faults_occurred(counters: &CounterWorld) {
    let cut_requests = counters.world.proxy.cut_requests();
    for cut in SUDDEN {
        let times = cut_requests
            .iter()
            .filter(|request| request.cut == cut)
            .count();
        assert!(times > 5, "{cut:?} {times}");
    }
}
