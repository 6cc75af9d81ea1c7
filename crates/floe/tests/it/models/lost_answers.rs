//! Commits whose answers are lost, before and after they were applied: nothing is applied twice, and where
//! it can be known, everything is applied.

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
    /// Loses a fifth of all answers.
    losing: Arc<dyn Engine>,
    timer: Arc<dyn Timer>,
    /// What was applied below it.
    applied: Arc<Ledger>,
    /// Loses none.
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

/// How increments are made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// By `+= 1`, which locks the field.
    Locked,
    /// By `increment_by`, which does not.
    Added,
}

/// Which increments are made: how, on one item or on two, and how many by all tasks.
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

/// A call as its caller saw it.
struct Call {
    is_unknown: bool,
    /// The stamps of all commits that it has tried.
    sent: Stamps,
}

/// Makes increments one after the other, and tells of each what became of it.
async fn make(engine: Arc<dyn Engine>, timer: Arc<dyn Timer>, case: Case) -> Vec<Call> {
    let sent = Arc::new(Ledger::new(engine, Notes::Sent));
    let db = Db::with_parts(sent.clone(), Env::system(), timer);
    let mut calls = Vec::new();
    for _ in 0..case.count / TASKS {
        let options = db.tx().retries(100_000);
        let options = match case.exactly_once {
            true => options.exactly_once(),
            false => options,
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

/// Makes all increments from all tasks.
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

/// Makes all increments and holds them against what was applied: of each call at most one commit, of each
/// that succeeded exactly one, each once, and nothing else. Tells how many calls are unknown, and how many of
/// those were applied.
async fn check(world: World, case: Case) -> (i64, i64) {
    let calls = make_all(&world, case).await;
    let mut applied = world.applied.take();
    if !case.exactly_once && !case.both && !world.losing.capabilities().write_tokens {
        // Nothing below keeps a write that is sent again from being applied again.
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
    assert!(applied.is_empty(), "{case:?} of nobody: {applied:?}");
    let expected = done + unknown_applied;
    let expected = (expected, if case.both { expected } else { 0 });
    assert_eq!(levels(&world.honest).await, expected, "{case:?}");
    (unknown, unknown_applied)
}

/// The ways to make increments, with an equal share each.
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

/// An engine as DynamoDB is. Time passes whenever all tasks wait, so that pauses cost none.
async fn remote() -> World {
    world(Capabilities::dynamodb(), Arc::new(TokioTimer)).await
}

#[tokio::test(start_paused = true)]
async fn exactly_once_every_call_succeeds_and_is_applied_once() {
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
            // Two items go as a transaction, whose token tells.
            true => assert_eq!(unknown, 0, "{case:?}"),
            // Else the run would show nothing: some were lost before they were applied and some after. A short
            // run may have no such luck.
            false if case.count >= 10_000 => {
                assert!(0 < applied && applied < unknown, "{case:?}");
            }
            false => assert!(applied <= unknown, "{case:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_engine_is_never_unknown() {
    if !stage::engine().capabilities().write_tokens {
        return;
    }
    for case in cases(false, 8_000) {
        let embedded = world(Capabilities::all(), Arc::new(NoTime)).await;
        let unknown = check(embedded, case).await;
        assert_eq!(unknown, (0, 0), "{case:?}");
    }
}

/// Somebody else who writes while the transaction waits to send again.
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
async fn a_write_sent_again_after_somebody_else_is_unknown() {
    let honest = remote().await.honest;
    let engine = honest.engine().clone();
    let claiming = RecordingEngine::new(engine).claiming(Capabilities::dynamodb());
    let losing = Arc::new(FaultEngine::new(Arc::new(claiming), Faults::seeded(1)));
    let timer = Arc::new(Meanwhile(honest.clone()));
    let db = Db::with_parts(losing.clone(), Env::system(), timer);
    // Lost, and not there when the item is looked at: it is sent again. By then another has written, so that
    // the lost one may have come late and been written over.
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
    // Lost after it was applied: the stamp tells.
    losing
        .script(Operation::WriteItem, FaultKind::LostAfter)
        .unwrap();
    db.transact(add).await.unwrap();
    assert_eq!(levels(&honest).await, (2, 0));
}

/// After an answer was lost, a store that is busy says nothing of the lost write: running the body again
/// could apply it twice.
#[tokio::test(start_paused = true)]
async fn a_busy_store_after_a_lost_answer_does_not_make_the_body_run_again() {
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
