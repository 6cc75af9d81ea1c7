//! Commits of items that have expired since they were read, and of items that are deleted and created again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::no_time::NoTime;
use super::stage;
use floe::model::Expiry;
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::op::GetItem;
use floe_store::{Capabilities, Engine, Env};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

#[derive(Clone, Debug, PartialEq, Model)]
struct Session {
    #[model(key)]
    id: String,
    hits: i64,
    #[model(default)]
    views: i64,
    #[model(expires)]
    expires: Option<Expiry>,
}

const LIFE: Duration = Duration::from_secs(60);

fn session(id: &str, hits: i64) -> Session {
    Session {
        id: id.to_owned(),
        hits,
        views: 0,
        expires: Some(Expiry::after(TestEnv::START, LIFE)),
    }
}

struct World {
    db: Db,
    other: Db,
    engine: Arc<dyn Engine>,
    recording: Arc<RecordingEngine>,
    test: TestEnv,
}

async fn world(capabilities: Capabilities) -> World {
    let test = TestEnv::seeded(1);
    let engine = stage::engine_at(test.env.clone());
    let recording = Arc::new(RecordingEngine::new(engine.clone()).claiming(capabilities));
    let db = |engine: Arc<dyn Engine>, seed| {
        let env = Env::manual(test.clock.clone(), seed);
        Db::with_parts(engine, env, Arc::new(NoTime))
    };
    let (db, other) = (db(recording.clone(), 2), db(engine.clone(), 3));
    other.ensure_tables(&[Session::SCHEMA]).await.unwrap();
    for id in ["a", "b"] {
        let create = async |tx: &Tx| tx.create(session(id, 1)).map(drop);
        other.transact(create).await.unwrap();
    }
    World {
        db,
        other,
        engine,
        recording,
        test,
    }
}

impl World {
    async fn hits(&self, id: &str) -> Option<i64> {
        let body =
            async |tx: &Tx| Ok::<_, Error>(tx.get::<Session>(id).await?.map(|row| *row.hits));
        self.other.transact(body).await.unwrap()
    }

    /// The stored value, expired or not.
    async fn stored(&self, id: &str) -> Option<Session> {
        let key = Session::key(id).unwrap().encoded().to_item();
        let found = self.engine.get_item(GetItem::new("Session", key)).await;
        let item = found.unwrap().item;
        item.map(|item| Session::from_item(&item).unwrap())
    }

    /// Runs the requests of the other writer in a task of their own.
    async fn beside(&self, id: &'static str, hits: Option<i64>) {
        let other = self.other.clone();
        let done = tokio::spawn(async move {
            let body = async |tx: &Tx| {
                let mut row = tx.get::<Session>(id).await?.unwrap();
                match hits {
                    Some(hits) => row.hits.set(hits)?,
                    None => tx.delete(row),
                }
                Ok::<_, Error>(())
            };
            other.transact(body).await
        });
        done.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn change_of_an_item_that_expires_before_the_commit_is_not_applied() {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let world = world(capabilities).await;
        let runs = AtomicU32::new(0);
        let body = async |tx: &Tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            let Some(mut row) = tx.get::<Session>("a").await? else {
                return Ok(false);
            };
            row.hits += 1;
            world.test.advance(LIFE);
            Ok::<_, Error>(true)
        };
        let was_there = world.db.transact(body).await.unwrap();
        assert_eq!((was_there, runs.into_inner()), (false, 2));
        assert_eq!(world.stored("a").await.unwrap().hits, 1);
    }
}

#[tokio::test]
async fn expiry_before_the_commit_is_named() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let mut row = tx.get::<Session>("a").await?.unwrap();
        row.hits.increment_by(1)?;
        world.test.advance(LIFE);
        Ok::<_, Error>(())
    };
    let error = world.db.tx().retries(0).run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransactionFailed);
    let text = error.to_string();
    assert!(
        text.contains("the item expired before the commit: model=Session key=\"a\""),
        "{text}"
    );
}

#[tokio::test]
async fn expired_item_that_was_only_read_fails_the_commit_of_another() {
    let world = world(Capabilities::all()).await;
    let keep = async |tx: &Tx| tx.get::<Session>("b").await?.unwrap().expires.set(None);
    world.other.transact(keep).await.unwrap();
    let body = async |tx: &Tx| {
        let hits = *tx.get::<Session>("a").await?.unwrap().hits;
        tx.get::<Session>("b").await?.unwrap().hits.set(hits + 1)?;
        world.test.advance(LIFE);
        Ok::<_, Error>(())
    };
    let error = world.db.tx().retries(0).run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransactionFailed);
    assert!(error.to_string().contains("key=\"a\""), "{error}");
    assert_eq!(world.hits("b").await, Some(1));
}

#[tokio::test]
async fn item_is_deleted_and_created_again() {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let world = world(capabilities).await;
        let body = async |tx: &Tx| {
            let old = tx.get::<Session>("a").await?.unwrap();
            let hits = *old.hits;
            tx.delete(old);
            let mut new = tx.create(Session {
                expires: None,
                ..session("a", hits + 10)
            })?;
            assert!(new.is_new());
            new.views.set(7)
        };
        world.db.transact(body).await.unwrap();
        let expected = Session {
            views: 7,
            expires: None,
            ..session("a", 11)
        };
        assert_eq!(world.stored("a").await, Some(expected));
        let sent = world.recording.take();
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert!(sent[1].starts_with("PutItem"), "{}", sent[1]);
        assert!(sent[1].contains("IF hits = 1"), "{}", sent[1]);
    }
}

#[tokio::test]
async fn recreated_item_depends_on_what_was_read_of_the_old_one() {
    let world = world(Capabilities::all()).await;
    for (theirs, expected, runs_expected) in [(Some(50), Some(60), 2), (None, None, 2)] {
        let runs = AtomicU32::new(0);
        let body = async |tx: &Tx| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            let Some(old) = tx.get::<Session>("a").await? else {
                return Ok(());
            };
            let hits = *old.hits;
            tx.delete(old);
            tx.create(session("a", hits + 10))?;
            if run == 0 {
                world.beside("a", theirs).await;
            }
            Ok::<_, Error>(())
        };
        world.db.transact(body).await.unwrap();
        assert_eq!(world.hits("a").await, expected);
        assert_eq!(runs.into_inner(), runs_expected);
    }
}

#[tokio::test]
async fn recreated_item_can_be_deleted_again() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let old = tx.get::<Session>("a").await?.unwrap();
        assert_eq!(old.hits, 1);
        tx.delete(old);
        let new = tx.create(session("a", 2))?;
        tx.delete(new);
        let newest = tx.create(session("a", 3))?;
        tx.delete(newest);
        Ok::<_, Error>(())
    };
    world.db.transact(body).await.unwrap();
    let sent = world.recording.take();
    assert!(sent[1].starts_with("DeleteItem"), "{sent:?}");
    assert!(sent[1].contains("IF hits = 1"), "{sent:?}");
    assert_eq!(world.stored("a").await, None);
}

#[tokio::test]
async fn new_item_that_is_deleted_can_be_created_again() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let new = tx.create(session("new", 1))?;
        tx.delete(new);
        tx.create(session("new", 2))?;
        assert!(tx.get::<Session>("seen").await?.is_none());
        let seen = tx.create(session("seen", 1))?;
        tx.delete(seen);
        tx.create(session("seen", 2)).map(drop)
    };
    world.db.transact(body).await.unwrap();
    assert_eq!(world.hits("new").await, Some(2));
    assert_eq!(world.hits("seen").await, Some(2));
}

#[tokio::test]
async fn item_deleted_by_key_is_replaced_whatever_is_stored() {
    let world = world(Capabilities::all()).await;
    for id in ["a", "missing"] {
        let body = async |tx: &Tx| {
            tx.delete_key::<Session>(id)?;
            tx.create(session(id, 9)).map(drop)
        };
        world.db.transact(body).await.unwrap();
        assert_eq!(world.hits(id).await, Some(9));
    }
    let sent = world.recording.take();
    assert!(
        sent.iter().all(|sent| sent.starts_with("PutItem")),
        "{sent:?}"
    );
    assert!(sent.iter().all(|sent| !sent.contains(" IF ")), "{sent:?}");
}

#[tokio::test]
async fn create_over_an_item_that_was_read_is_refused() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let _held = tx.get::<Session>("a").await?.unwrap();
        tx.create(session("a", 2)).map(drop)
    };
    let error = world.db.transact(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FetchedTwice);
}
