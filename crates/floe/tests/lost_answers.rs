//! Commits whose answers are lost, before and after they were applied: nothing is applied twice, and where
//! it can be known, everything is applied.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use floe::db::Timer;
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_local::LocalEngine;
use floe_store::{BoxFuture, Capabilities, Engine, Env};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::record::RecordingEngine;
use support::{Player, player};

const TASKS: i64 = 8;
const INCREMENTS: i64 = 250;

/// Lets others run instead of letting time pass.
struct NoTime;

impl Timer for NoTime {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }
}

struct World {
    /// Loses a fifth of all answers.
    db: Db,
    /// Loses none.
    honest: Db,
}

async fn world(capabilities: Option<Capabilities>) -> World {
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    let honest = Db::with_engine(engine.clone());
    honest.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    for id in ["a", "b"] {
        let create = async |tx: &Tx| tx.create(player(id, 0)).map(drop);
        honest.transact(create).await.unwrap();
    }
    let own = capabilities.unwrap_or_else(|| engine.capabilities());
    let claiming = Arc::new(RecordingEngine::new(engine).claiming(own));
    let faults = Faults::seeded(7).lost_before(0.1).lost_after(0.1);
    let losing = Arc::new(FaultEngine::new(claiming, faults));
    World {
        db: Db::with_parts(losing, Env::system(), Arc::new(NoTime)),
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

/// How an increment is made: with a lock or without, on one item or on two.
async fn increment(tx: &Tx, n: i64, both: bool) -> Result<(), Error> {
    for id in ["a", "b"].into_iter().take(1 + usize::from(both)) {
        let mut player = tx.get::<Player>(id).await?.unwrap();
        match n % 2 {
            0 => player.level += 1,
            _ => player.level.increment_by(1)?,
        }
    }
    Ok(())
}

/// Makes all increments from all tasks. Tells how many succeeded and of how many the outcome is unknown.
async fn make_all(world: &World, exactly_once: bool, both: bool) -> (i64, i64) {
    let (done, unknown) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..TASKS {
        let (db, done, unknown) = (world.db.clone(), done.clone(), unknown.clone());
        tasks.push(tokio::spawn(async move {
            for n in 0..INCREMENTS {
                let options = db.tx().retries(100_000);
                let options = match exactly_once {
                    true => options.exactly_once(),
                    false => options,
                };
                match options.run(async |tx| increment(tx, n, both).await).await {
                    Ok(()) => done.fetch_add(1, Ordering::Relaxed),
                    Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                        unknown.fetch_add(1, Ordering::Relaxed)
                    }
                    Err(error) => panic!("{error:?}"),
                };
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    (
        done.load(Ordering::Relaxed),
        unknown.load(Ordering::Relaxed),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_once_is_never_unknown_on_an_engine_without_tokens() {
    let world = world(Some(Capabilities::dynamodb())).await;
    assert_eq!(make_all(&world, true, false).await, (TASKS * INCREMENTS, 0));
    assert_eq!(levels(&world.honest).await, (TASKS * INCREMENTS, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_items_are_never_unknown_and_never_half_done() {
    let world = world(Some(Capabilities::dynamodb())).await;
    assert_eq!(make_all(&world, false, true).await, (TASKS * INCREMENTS, 0));
    let all = TASKS * INCREMENTS;
    assert_eq!(levels(&world.honest).await, (all, all));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_engine_is_never_unknown() {
    let world = world(None).await;
    assert_eq!(
        make_all(&world, false, false).await,
        (TASKS * INCREMENTS, 0)
    );
    assert_eq!(levels(&world.honest).await, (TASKS * INCREMENTS, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_exactly_once_nothing_is_applied_twice() {
    let world = world(Some(Capabilities::dynamodb())).await;
    let (done, unknown) = make_all(&world, false, false).await;
    assert_eq!(done + unknown, TASKS * INCREMENTS);
    let (level, _) = levels(&world.honest).await;
    assert!(
        (done..=done + unknown).contains(&level),
        "done={done} unknown={unknown} level={level}"
    );
}

/// Somebody else who writes while the transaction waits to send again.
struct Meanwhile(Db);

impl Timer for Meanwhile {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let db = self.0.clone();
            let write = async move {
                let body = async |tx: &Tx| increment(tx, 0, false).await;
                db.transact(body).await
            };
            tokio::spawn(write).await.unwrap().unwrap();
        })
    }
}

#[tokio::test]
async fn a_write_sent_again_after_somebody_else_is_unknown() {
    let honest = world(None).await.honest;
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
    let add = async |tx: &Tx| increment(tx, 1, false).await;
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
