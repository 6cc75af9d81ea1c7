//! Transactions of the patterns over a network that breaks.

use std::collections::BTreeSet;

use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::Env;

use super::*;

/// A count, and who has counted: the count tells twice what the set tells once.
#[derive(Clone, Debug, Default, PartialEq, Model)]
struct Tally {
    #[model(key)]
    id: String,
    count: i64,
    by: BTreeSet<String>,
}

const TASKS: usize = 4;
const EACH: usize = 40;

/// A tenth of all requests is cut before and a tenth after, some in the middle of the answer.
fn cuts() -> Cuts {
    Cuts::seeded(7)
        .rate(Cut::Before, 0.1)
        .rate(Cut::After, 0.1)
        .rate(Cut::Inside, 0.05)
}

struct Counting {
    world: World,
    db: Db,
    honest: Db,
}

async fn counting(ids: &[&str]) -> Counting {
    let world = world(cuts()).await;
    let honest = Db::with_engine(world.remote.local.clone());
    honest.ensure_tables(&[Tally::SCHEMA]).await.unwrap();
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
        honest.transact(create).await.unwrap();
    }
    let engine = Arc::new(world.engine.clone());
    let db = Db::with_parts(engine, Env::system(), world.timer.clone());
    Counting { world, db, honest }
}

async fn tally(db: &Db, id: &str) -> Tally {
    let body = async |tx: &Tx| Ok::<_, Error>(tx.get::<Tally>(id).await?.unwrap().to_model());
    db.transact(body).await.unwrap()
}

/// Who was told that they have counted, and who that nobody knows.
#[derive(Default)]
struct Told {
    done: BTreeSet<String>,
    unknown: BTreeSet<String>,
}

/// Counts from all tasks, each time under another name.
async fn count(counting: &Counting, ids: &'static [&'static str], exactly_once: bool) -> Told {
    let tasks = (0..TASKS).map(|task| {
        let db = counting.db.clone();
        tokio::spawn(async move {
            let mut told = Told::default();
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
                    Ok(()) => told.done.insert(name),
                    Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                        told.unknown.insert(name)
                    }
                    Err(error) => panic!("{error:?}"),
                };
            }
            told
        })
    });
    let mut all = Told::default();
    for task in tasks.collect::<Vec<_>>() {
        let told = task.await.unwrap();
        all.done.extend(told.done);
        all.unknown.extend(told.unknown);
    }
    assert_eq!(all.done.len() + all.unknown.len(), TASKS * EACH);
    all
}

/// Nobody who was told so is missing, nobody is there who was not, and nobody has counted twice.
#[track_caller]
fn check(tally: &Tally, told: &Told) {
    assert!(
        tally.by.is_superset(&told.done),
        "lost: {:?}",
        told.done.difference(&tally.by)
    );
    let known = |name: &String| told.done.contains(name) || told.unknown.contains(name);
    assert!(
        tally.by.iter().all(known),
        "somebody was told that they did not count"
    );
    assert_eq!(
        tally.count,
        tally.by.len() as i64,
        "somebody has counted twice"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn transactions_over_several_items_are_applied_exactly_once() {
    let counting = counting(&["a", "b"]).await;
    let told = count(&counting, &["a", "b"], false).await;
    assert_eq!(told.unknown, BTreeSet::new(), "the token tells");
    for id in ["a", "b"] {
        check(&tally(&counting.honest, id).await, &told);
    }
    struck_everywhere(&counting);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_writes_that_are_to_be_applied_exactly_once_are() {
    let counting = counting(&["a"]).await;
    let told = count(&counting, &["a"], true).await;
    assert_eq!(told.unknown, BTreeSet::new());
    check(&tally(&counting.honest, "a").await, &told);
    struck_everywhere(&counting);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_single_writes_are_settled_by_the_stamp_or_told_as_unknown() {
    let counting = counting(&["a"]).await;
    let told = count(&counting, &["a"], false).await;
    check(&tally(&counting.honest, "a").await, &told);
    struck_everywhere(&counting);
}

/// Else the run would show nothing.
#[track_caller]
fn struck_everywhere(counting: &Counting) {
    let strikes = counting.world.proxy.strikes();
    for cut in SUDDEN {
        let times = strikes.iter().filter(|strike| strike.cut == cut).count();
        assert!(times > 5, "{cut:?} {times}");
    }
}
