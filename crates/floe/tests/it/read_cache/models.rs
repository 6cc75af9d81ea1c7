//! The read cache in transactions on models.

use super::no_time::NoTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::cache::CacheOptions;
use floe::{Db, Error, Model, Tx};
use floe_local::LocalEngine;
use floe_store::{Capabilities, Engine, Env};
use floe_testkit::record::RecordingEngine;

use super::support::{Player, player};

struct World {
    /// The database with a cache.
    db: Db,
    /// A database on the same store without a cache, as in another process.
    other: Db,
    recording: Arc<RecordingEngine>,
}

/// Creates a store that accepts tokens only in transactions, like DynamoDB.
async fn world() -> World {
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    let other = Db::with_engine(engine.clone());
    other.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    let recording = RecordingEngine::new(engine).claiming(Capabilities::dynamodb());
    let recording = Arc::new(recording);
    let db = Db::with_parts(recording.clone(), Env::system(), Arc::new(NoTime));
    World {
        db: db.with_read_cache(CacheOptions::new()),
        other,
        recording,
    }
}

async fn create(db: &Db, id: &str, level: i64) {
    let body = async |tx: &Tx| tx.create(player(id, level)).map(drop);
    db.transact(body).await.unwrap();
}

async fn set_level(db: &Db, id: &str, level: i64) {
    let body = async |tx: &Tx| {
        let mut player = tx.get::<Player>(id).await?.unwrap();
        player.level.set(level)
    };
    db.transact(body).await.unwrap();
}

async fn eventual_level(db: &Db, id: &str) -> Option<i64> {
    let body = async |tx: &Tx| {
        let player = tx.eventual().get::<Player>(id).await?;
        Ok::<_, Error>(player.map(|player| *player.level))
    };
    db.transact(body).await.unwrap()
}

#[tokio::test]
async fn eventual_reads_of_models_come_from_memory() {
    let World {
        db,
        other,
        recording,
    } = world().await;
    assert_eq!(other.read_cache(), None);
    create(&other, "a", 1).await;
    assert_eq!(eventual_level(&db, "a").await, Some(1));
    assert_eq!(recording.take().len(), 1);
    assert_eq!(eventual_level(&db, "a").await, Some(1));
    assert!(recording.take().is_empty());
    // Own commits are visible without a request.
    set_level(&db, "a", 2).await;
    create(&db, "b", 5).await;
    recording.take();
    assert_eq!(eventual_level(&db, "a").await, Some(2));
    assert_eq!(eventual_level(&db, "b").await, Some(5));
    assert!(recording.take().is_empty());
    // A consistent read sends a request.
    set_level(&other, "a", 3).await;
    assert_eq!(eventual_level(&db, "a").await, Some(2));
    let body = async |tx: &Tx| {
        let player = tx.get::<Player>("a").await?.unwrap();
        Ok::<_, Error>(*player.level)
    };
    assert_eq!(db.transact(body).await.unwrap(), 3);
    assert_eq!(eventual_level(&db, "a").await, Some(3));
    let delete = async |tx: &Tx| tx.delete_key::<Player>("b");
    db.transact(delete).await.unwrap();
    recording.take();
    assert_eq!(eventual_level(&db, "b").await, None);
    assert!(recording.take().is_empty());
    let stats = db.read_cache().unwrap();
    assert_eq!((stats.hits, stats.misses, stats.items), (6, 1, 2));
}

#[tokio::test]
async fn batch_read_requests_only_uncached_items() {
    let World { db, recording, .. } = world().await;
    for (id, level) in [("a", 1), ("b", 2), ("c", 3)] {
        create(&db, id, level).await;
    }
    recording.take();
    let body = async |tx: &Tx| {
        let keys = ["a", "b", "c", "d"].map(Player::key).into_iter();
        let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
        let players = tx.eventual().get_many(keys).await?;
        let levels = players
            .iter()
            .map(|player| player.as_ref().map(|p| *p.level));
        Ok::<_, Error>(levels.collect::<Vec<_>>())
    };
    for round in 0..2 {
        let levels = db.transact(body).await.unwrap();
        assert_eq!(levels, [Some(1), Some(2), Some(3), None]);
        let expected: &[&str] = match round {
            0 => &[r#"BatchGetItem Player {"_id": "d"}"#],
            _ => &[],
        };
        assert_eq!(recording.take(), expected);
    }
}

/// The cached item is outdated, so the commit conflicts. If the next attempt read the cache again, it would conflict
/// forever.
#[tokio::test]
async fn conflict_with_an_outdated_cached_item_is_resolved_in_the_second_attempt() {
    for reads_two in [false, true] {
        let World { db, other, .. } = world().await;
        create(&db, "a", 1).await;
        create(&db, "b", 1).await;
        assert_eq!(eventual_level(&db, "a").await, Some(1));
        set_level(&other, "a", 10).await;
        let runs = AtomicU32::new(0);
        let body = async |tx: &Tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            let mut a = tx.eventual().get::<Player>("a").await?.unwrap();
            if reads_two {
                // `a` is only checked, because it is not written.
                let mut b = tx.eventual().get::<Player>("b").await?.unwrap();
                b.level.set(*a.level + 1)?;
            } else {
                a.level += 1;
            }
            Ok::<_, Error>(())
        };
        db.transact(body).await.unwrap();
        assert_eq!(runs.into_inner(), 2);
        let written = if reads_two { "b" } else { "a" };
        assert_eq!(eventual_level(&db, written).await, Some(11));
        assert_eq!(eventual_level(&other, written).await, Some(11));
    }
}

#[tokio::test]
async fn commits_with_tokens_update_the_cache() {
    let engine = Arc::new(LocalEngine::memory().unwrap());
    let db = Db::with_engine(engine).with_read_cache(CacheOptions::new());
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    assert_eq!(eventual_level(&db, "a").await, None);
    create(&db, "a", 1).await;
    assert_eq!(eventual_level(&db, "a").await, Some(1));
    for level in 2..5 {
        let body = async |tx: &Tx| {
            let keys = (Player::key("a")?, Player::key("b")?);
            let (a, _) = tx.eventual().get_many(keys).await?;
            a.unwrap().level.set(level)
        };
        db.transact(body).await.unwrap();
        assert_eq!(eventual_level(&db, "a").await, Some(level));
    }
    let copy = db.clone();
    set_level(&copy, "a", 9).await;
    assert_eq!(eventual_level(&db, "a").await, Some(9));
}
