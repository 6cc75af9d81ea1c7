//! Loops over an engine in memory, which is never waited for, still let other tasks of the thread run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::stage;
use super::support::{Player, player};
use floe::{Db, Error, Model, Tx};

/// Within this time every loop below must have been interrupted. Without a yield none ever is.
const STARVED: Duration = Duration::from_secs(5);

const SOON: Duration = Duration::from_millis(10);

async fn db() -> Db {
    let db = Db::with_engine(stage::engine());
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    for id in ["a", "b", "c"] {
        let create = async |tx: &Tx| tx.create(player(id, 1)).map(drop);
        db.transact(create).await.unwrap();
    }
    db
}

/// Runs the loop until a timeout fires and another task has run on the same thread. The loop ends by itself if it is
/// never interrupted, so that the test fails instead of hanging.
async fn check<F: Future<Output = ()>>(run: impl FnOnce(Deadline) -> F) {
    let has_run = Arc::new(AtomicBool::new(false));
    let other = has_run.clone();
    tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
    let deadline = Deadline(tokio::time::Instant::now() + STARVED);
    let fired = tokio::time::timeout(SOON, run(deadline)).await.is_err();
    assert!(fired, "the timeout did not fire");
    assert!(has_run.load(Ordering::Relaxed), "the other task starved");
}

#[derive(Clone, Copy)]
struct Deadline(tokio::time::Instant);

impl Deadline {
    fn is_over(self) -> bool {
        tokio::time::Instant::now() >= self.0
    }
}

#[tokio::test]
async fn scan_loop_yields() {
    let db = db().await;
    check(async |deadline: Deadline| {
        while !deadline.is_over() {
            assert_eq!(db.scan::<Player>().all().await.unwrap().len(), 3);
        }
    })
    .await;
}

#[tokio::test]
async fn transactions_of_one_write_yield() {
    let db = db().await;
    check(async |deadline: Deadline| {
        while !deadline.is_over() {
            let body = async |tx: &Tx| {
                tx.create_or_put::<Player>("a", Player::patch(), Player::patch().level(2))
            };
            db.transact(body).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn reads_inside_a_body_yield() {
    let db = db().await;
    check(async |deadline: Deadline| {
        let body = async |tx: &Tx| {
            let mut n = 0;
            while !deadline.is_over() {
                assert!(tx.get::<Player>(n.to_string()).await?.is_none());
                n += 1;
            }
            Ok::<_, Error>(())
        };
        db.transact(body).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn queries_inside_a_body_yield() {
    let db = db().await;
    check(async |deadline: Deadline| {
        let body = async |tx: &Tx| {
            while !deadline.is_over() {
                let rows = tx.query::<Player>(|p| p.id.eq("missing"));
                assert!(rows.all().await?.is_empty());
            }
            Ok::<_, Error>(())
        };
        db.transact(body).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn reads_of_the_engine_yield() {
    let engine = stage::engine();
    let db = Db::with_engine(engine.clone());
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    let key = Player::key("a").unwrap().encoded().to_item();
    check(async |deadline: Deadline| {
        while !deadline.is_over() {
            let get = floe_store::op::GetItem::new("Player", key.clone());
            engine.get_item(get).await.unwrap();
        }
    })
    .await;
}
