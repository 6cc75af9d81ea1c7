//! Commits whose requests or responses are lost: nothing is applied twice, and everything is applied whose outcome can
//! be determined.

use std::sync::Arc;
use std::time::Duration;

use super::ledger::{Ledger, Notes, Stamps};
use super::no_time::NoTime;
use super::stage;
use super::support::{Player, player};
use floe::db::{Timer, TokioTimer};
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::{BoxFuture, Capabilities, Engine, Env};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::record::RecordingEngine;

const TASKS: i64 = 8;

struct World {
    /// Loses a fifth of all requests and responses.
    losing: Arc<dyn Engine>,
    timer: Arc<dyn Timer>,
    /// Records the applied commits.
    applied: Arc<Ledger>,
    /// A database without faults.
    honest: Db,
}

async fn world(capabilities: Capabilities, timer: Arc<dyn Timer>) -> World {
    let engine = stage::engine();
    let honest = Db::with_engine(engine.clone());
    honest.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    for id in ["a", "b"] {
        let create = async |tx: &Tx| tx.create(player(id, 0)).map(drop);
        honest.transact(create).await.unwrap();
    }
    let applied = Arc::new(Ledger::new(engine, Notes::Applied).claiming(capabilities));
    let faults = Faults::seeded(7).lost_before(0.1).lost_after(0.1);
    World {
        losing: Arc::new(FaultEngine::new(applied.clone(), faults)),
        timer,
        applied,
        honest,
    }
}

async fn levels(db: &Db) -> (i64, i64) {
    let body = async |tx: &Tx| {
        let keys = (Player::key("a")?, Player::key("b")?);
        let (a, b) = tx.get_many(keys).await?;
        Ok::<_, Error>((*a.unwrap().level, *b.unwrap().level))
    };
    db.transact(body).await.unwrap()
}

/// How the level is incremented.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// With `+= 1`, which locks the field.
    Locked,
    /// With `increment_by`, which does not lock it.
    Added,
}

/// The increments of a run: how, on one item or two, and how many in total.
#[derive(Clone, Copy, Debug)]
struct Case {
    way: Way,
    both: bool,
    exactly_once: bool,
    count: i64,
}

async fn increment(tx: &Tx, way: Way, both: bool) -> Result<(), Error> {
    for id in ["a", "b"].into_iter().take(1 + usize::from(both)) {
        let mut player = tx.get::<Player>(id).await?.unwrap();
        match way {
            Way::Locked => player.level += 1,
            Way::Added => player.level.increment_by(1)?,
        }
    }
    Ok(())
}

/// The result of a call.
struct Call {
    is_unknown: bool,
    /// The stamps of all commits that it sent.
    sent: Stamps,
}

/// Runs increments one after another, and returns their results.
async fn make(engine: Arc<dyn Engine>, timer: Arc<dyn Timer>, case: Case) -> Vec<Call> {
    let sent = Arc::new(Ledger::new(engine, Notes::Sent));
    let db = Db::with_parts(sent.clone(), Env::system(), timer);
    let mut calls = Vec::new();
    for _ in 0..case.count / TASKS {
        let options = db.tx().retries(100_000);
        let options = if case.exactly_once {
            options.exactly_once()
        } else {
            options
        };
        let body = async |tx: &Tx| increment(tx, case.way, case.both).await;
        let is_unknown = match options.run(body).await {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => true,
            Err(error) => panic!("{error:?}"),
        };
        calls.push(Call {
            is_unknown,
            sent: sent.take(),
        });
    }
    calls
}

/// Runs all increments in several tasks.
async fn make_all(world: &World, case: Case) -> Vec<Call> {
    let World { losing, timer, .. } = world;
    let tasks = (0..TASKS).map(|_| tokio::spawn(make(losing.clone(), timer.clone(), case)));
    let mut calls = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        calls.extend(task.await.unwrap());
    }
    assert_eq!(calls.len(), usize::try_from(case.count).unwrap());
    calls
}

/// Runs all increments and checks the applied commits: at most one of each call, exactly one of each successful call,
/// each applied once, and no others. Returns the number of calls with unknown outcome, and how many of those were
/// applied.
async fn check(world: World, case: Case) -> (i64, i64) {
    let calls = make_all(&world, case).await;
    let mut applied = world.applied.take();
    if !case.exactly_once && !case.both && !world.losing.capabilities().write_tokens {
        // Nothing below would prevent a repeated write from being applied twice.
        let twice = applied.values().filter(|times| **times > 1).count();
        assert_eq!(twice, 0, "{case:?}");
    }
    let (mut done, mut unknown, mut unknown_applied) = (0, 0, 0);
    for call in &calls {
        let of_call = call
            .sent
            .keys()
            .filter(|stamp| applied.remove(*stamp).is_some());
        match (call.is_unknown, of_call.count()) {
            (false, 1) => done += 1,
            (true, 0) => unknown += 1,
            (true, 1) => {
                unknown += 1;
                unknown_applied += 1;
            }
            (is_unknown, times) => panic!("{case:?} is_unknown={is_unknown} applied={times}"),
        }
    }
    assert!(
        applied.is_empty(),
        "{case:?} commits of no call: {applied:?}"
    );
    let expected = done + unknown_applied;
    let expected = (expected, if case.both { expected } else { 0 });
    assert_eq!(levels(&world.honest).await, expected, "{case:?}");
    (unknown, unknown_applied)
}

/// The cases, each with an equal share of the increments.
fn cases(exactly_once: bool, count: i64) -> impl Iterator<Item = Case> {
    let ways = [
        (Way::Locked, false),
        (Way::Locked, true),
        (Way::Added, false),
        (Way::Added, true),
    ];
    ways.into_iter().map(move |(way, both)| Case {
        way,
        both,
        exactly_once,
        count: count / 4,
    })
}

/// Creates a world with the capabilities of DynamoDB. Paused time advances when all tasks wait.
async fn remote() -> World {
    world(Capabilities::dynamodb(), Arc::new(TokioTimer)).await
}

#[tokio::test(start_paused = true)]
async fn exactly_once_calls_succeed_and_are_applied_once() {
    for case in cases(true, stage::INCREMENTS) {
        let unknown = check(remote().await, case).await;
        assert_eq!(unknown, (0, 0), "{case:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_exactly_once_nothing_is_applied_twice() {
    for case in cases(false, stage::INCREMENTS) {
        let (unknown, applied) = check(remote().await, case).await;
        match case.both {
            // Two items are a transaction, whose outcome its token determines.
            true => assert_eq!(unknown, 0, "{case:?}"),
            // The run is meaningful only if some requests were lost before they were applied and some after. A short
            // run may have neither.
            false if case.count >= 10_000 => {
                assert!(0 < applied && applied < unknown, "{case:?}");
            }
            false => assert!(applied <= unknown, "{case:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_engine_has_no_unknown_outcomes() {
    if !stage::engine().capabilities().write_tokens {
        return;
    }
    for case in cases(false, 8_000) {
        let embedded = world(Capabilities::all(), Arc::new(NoTime)).await;
        let unknown = check(embedded, case).await;
        assert_eq!(unknown, (0, 0), "{case:?}");
    }
}

/// A timer in whose pauses another writer changes the item.
struct Meanwhile(Db);

impl Timer for Meanwhile {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let db = self.0.clone();
            let write = async move {
                let body = async |tx: &Tx| increment(tx, Way::Locked, false).await;
                db.transact(body).await
            };
            tokio::spawn(write).await.unwrap().unwrap();
        })
    }
}

#[tokio::test]
async fn write_repeated_after_another_writer_is_unknown() {
    let honest = remote().await.honest;
    let engine = honest.engine().clone();
    let claiming = RecordingEngine::new(engine).claiming(Capabilities::dynamodb());
    let losing = Arc::new(FaultEngine::new(Arc::new(claiming), Faults::seeded(1)));
    let timer = Arc::new(Meanwhile(honest.clone()));
    let db = Db::with_parts(losing.clone(), Env::system(), timer);
    // The write is lost, and the item does not contain it, so it is sent again. Meanwhile another writer changed the
    // item, so the lost write may have been applied late and overwritten.
    losing
        .script(Operation::WriteItem, FaultKind::LostBefore)
        .unwrap();
    let add = async |tx: &Tx| increment(tx, Way::Added, false).await;
    let error = db.transact(add).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(
        error.to_string().contains("model=Player key=\"a\""),
        "{error}"
    );
    assert_eq!(levels(&honest).await, (1, 0));
    // Lost after it was applied: the stamp shows it.
    losing
        .script(Operation::WriteItem, FaultKind::LostAfter)
        .unwrap();
    db.transact(add).await.unwrap();
    assert_eq!(levels(&honest).await, (2, 0));
}

/// Throttling after a lost response does not reveal the outcome of the lost write: another attempt could apply it
/// twice.
#[tokio::test(start_paused = true)]
async fn throttling_after_a_lost_response_does_not_repeat_the_body() {
    for capabilities in [stage::engine().capabilities(), Capabilities::dynamodb()] {
        for (both, operation) in [
            (false, Operation::WriteItem),
            (true, Operation::TransactWriteItems),
        ] {
            for lost in [FaultKind::LostBefore, FaultKind::LostAfter] {
                let honest = remote().await.honest;
                let engine = honest.engine().clone();
                let claiming = RecordingEngine::new(engine).claiming(capabilities.clone());
                let losing = Arc::new(FaultEngine::new(Arc::new(claiming), Faults::seeded(1)));
                let db = Db::with_engine(losing.clone());
                for fault in [lost, FaultKind::Throttle, FaultKind::Conflict] {
                    losing.script(operation, fault).unwrap();
                }
                let runs = std::sync::atomic::AtomicU32::new(0);
                let body = async |tx: &Tx| {
                    runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    increment(tx, Way::Added, both).await
                };
                db.transact(body).await.unwrap();
                let expected = (1, i64::from(both));
                assert_eq!(levels(&honest).await, expected, "{lost:?} both={both}");
                assert_eq!(runs.into_inner(), 1, "{lost:?} both={both}");
            }
        }
    }
}
