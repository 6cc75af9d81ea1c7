//! Rows beyond a plain get: items that are read again, created after a read, or too large, engines with fewer
//! capabilities, and errors.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use super::gate::{Gate, Side};
use super::stage;
use super::support::{Player, player};
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::{Capabilities, Engine};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::record::RecordingEngine;

struct World {
    db: Db,
    recording: Arc<RecordingEngine>,
}

async fn world(capabilities: Capabilities) -> World {
    let engine = stage::engine();
    let recording = Arc::new(RecordingEngine::new(engine).claiming(capabilities));
    let db = Db::with_engine(recording.clone());
    db.ensure_tables(&[Player::SCHEMA, Document::SCHEMA])
        .await
        .unwrap();
    for id in ["a", "b"] {
        db.transact(async |tx| tx.create(player(id, 1)).map(drop))
            .await
            .unwrap();
    }
    recording.take();
    World { db, recording }
}

async fn level(db: &Db, id: &str) -> Option<i64> {
    db.transact(async |tx| Ok::<_, Error>(tx.get::<Player>(id).await?.map(|row| *row.level)))
        .await
        .unwrap()
}

async fn level_up(tx: &Tx, id: &str) -> Result<i64, Error> {
    let mut player = tx.get::<Player>(id).await?.unwrap();
    player.level += 1;
    Ok(*player.level)
}

#[tokio::test]
async fn cached_rows_show_changes_of_other_helpers() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let levels = (level_up(tx, "a").await?, level_up(tx, "a").await?);
        let keys = [Player::key("a")?, Player::key("b")?, Player::key("a")?];
        let [a, b, again] = tx.get_many(keys).await?;
        assert_eq!(
            (*a.unwrap().level, *b.unwrap().level, *again.unwrap().level),
            (3, 1, 3)
        );
        Ok::<_, Error>(levels)
    };
    assert_eq!(world.db.tx().cache_rows().run(body).await.unwrap(), (2, 3));
    let sent = world.recording.take();
    assert_eq!(sent.len(), 3, "{sent:?}");
    assert!(sent.first().unwrap().starts_with("GetItem"), "{sent:?}");
    assert_eq!(
        sent.get(1).unwrap(),
        r#"TransactGetItems Player {"_id": "b"}"#
    );
    assert_eq!(level(&world.db, "a").await, Some(3));
    let plain = world.db.transact(body).await.unwrap_err();
    assert_eq!(plain.kind(), ErrorKind::FetchedTwice);
}

#[tokio::test]
async fn cached_rows_show_created_and_deleted_items() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        tx.create(player("new", 5))?;
        assert_eq!(level_up(tx, "new").await?, 6);
        let new = tx.get::<Player>("new").await?.unwrap();
        assert!(new.is_new());
        drop(new);
        tx.delete(tx.get::<Player>("a").await?.unwrap());
        assert!(tx.get::<Player>("a").await?.is_none());
        assert!(tx.get::<Player>("missing").await?.is_none());
        assert!(tx.get::<Player>("missing").await?.is_none());
        tx.delete_key::<Player>("b")?;
        // An item that is written without a read is unknown.
        assert_eq!(
            tx.get::<Player>("b").await.map(drop).unwrap_err().kind(),
            ErrorKind::FetchedTwice
        );
        Ok::<_, Error>(())
    };
    world.db.tx().cache_rows().run(body).await.unwrap();
    let levels = [
        level(&world.db, "new").await,
        level(&world.db, "a").await,
        level(&world.db, "b").await,
    ];
    assert_eq!(levels, [Some(6), None, None]);
}

#[tokio::test]
async fn concurrent_reads_of_cached_rows_are_one_request() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let (one, other) = tokio::try_join!(tx.get::<Player>("a"), tx.get::<Player>("a"))?;
        let (mut one, other) = (one.unwrap(), other.unwrap());
        one.level += 1;
        Ok::<_, Error>(*other.level)
    };
    assert_eq!(world.db.tx().cache_rows().run(body).await.unwrap(), 1);
    assert_eq!(world.recording.take().len(), 2);
    // Two live rows cannot both change the item: one change would be lost.
    let both = async |tx: &Tx| {
        let (one, other) = tokio::try_join!(tx.get::<Player>("a"), tx.get::<Player>("a"))?;
        let (mut one, mut other) = (one.unwrap(), other.unwrap());
        one.level += 1;
        other.level += 1;
        Ok::<_, Error>(())
    };
    let error = world.db.tx().cache_rows().run(both).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(level(&world.db, "a").await, Some(2));
}

#[tokio::test]
async fn missing_item_can_be_created_after_a_read() {
    let world = world(Capabilities::all()).await;
    let runs = AtomicU32::new(0);
    let body = async |tx: &Tx| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        if let Some(mut found) = tx.get::<Player>("new").await? {
            found.level += 1;
            return Ok(());
        }
        tx.create(player("new", 1))?;
        if run == 0 {
            let db = world.db.clone();
            let race = async move {
                db.transact(async |tx| tx.create(player("new", 10)).map(drop))
                    .await
            };
            tokio::spawn(race).await.unwrap()?;
        }
        Ok::<_, Error>(())
    };
    // Another writer created the item. The body has read it, so it runs again.
    world.db.tx().initial_backoff_ms(0).run(body).await.unwrap();
    assert_eq!(runs.into_inner(), 2);
    assert_eq!(level(&world.db, "new").await, Some(11));
}

#[tokio::test]
async fn dropped_read_can_be_repeated() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let mut first = Box::pin(tx.get::<Player>("a"));
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(first.as_mut().poll(context).is_ready())
        });
        assert!(!polled.await);
        drop(first);
        level_up(tx, "a").await
    };
    assert_eq!(world.db.transact(body).await.unwrap(), 2);
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Document {
    #[model(key)]
    id: i64,
    text: String,
    more: Option<String>,
}

fn document(id: i64, kilobytes: usize) -> Document {
    Document {
        id,
        text: "x".repeat(1024 * kilobytes),
        more: None,
    }
}

#[tokio::test]
async fn oversized_commits_are_rejected_before_they_are_sent() {
    let world = world(Capabilities::all()).await;
    let create = async |tx: &Tx| {
        tx.create(document(1, 300))?;
        tx.create(document(2, 1)).map(drop)
    };
    world.db.transact(create).await.unwrap();
    world.recording.take();
    let refused = async |error: Error| {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        let sent = world.recording.take();
        assert!(
            sent.iter().all(|request| request.starts_with("GetItem")),
            "{sent:?}"
        );
        error
    };
    let grown = async |tx: &Tx| {
        let mut document = tx.get::<Document>(1).await?.unwrap();
        document.more.set(Some("y".repeat(110 * 1024)))
    };
    let error = refused(world.db.transact(grown).await.unwrap_err()).await;
    assert_eq!(error.items().len(), 1);
    assert_eq!(error.items().first().unwrap().model, "Document");
    let new = async |tx: &Tx| tx.create(document(3, 401)).map(drop);
    refused(world.db.transact(new).await.unwrap_err()).await;
    let blind = async |tx: &Tx| {
        let old = Document::patch().more(None);
        tx.update::<Document>(1, old, Document::patch().more(Some("z".repeat(410_000))))
    };
    refused(world.db.transact(blind).await.unwrap_err()).await;
    let together =
        async |tx: &Tx| (10..24).try_for_each(|id| tx.create(document(id, 300)).map(drop));
    refused(world.db.transact(together).await.unwrap_err()).await;
    let many = async |tx: &Tx| (0..101).try_for_each(|id| tx.create(document(id, 0)).map(drop));
    let error = refused(world.db.transact(many).await.unwrap_err()).await;
    assert!(error.to_string().contains("items=101 max=100"), "{error}");
    let keys: Vec<_> = (0..101).map(|id| Document::key(id).unwrap()).collect();
    let read = async |tx: &Tx| tx.get_many(keys.clone()).await.map(drop);
    refused(world.db.transact(read).await.unwrap_err()).await;
    // A shorter value of a field makes room.
    let replaced = async |tx: &Tx| {
        let mut document = tx.get::<Document>(1).await?.unwrap();
        document.text.set(String::new())?;
        document.more.set(Some("y".repeat(390 * 1024)))
    };
    world.db.transact(replaced).await.unwrap();
}

#[tokio::test]
async fn unsupported_commits_are_rejected_before_they_are_sent() {
    let mut capabilities = Capabilities::dynamodb();
    capabilities.transactions = false;
    let world = world(capabilities).await;
    let one = async |tx: &Tx| level_up(tx, "a").await;
    assert_eq!(world.db.transact(one).await.unwrap(), 2);
    world.recording.take();
    let two = async |tx: &Tx| {
        tx.create(player("x", 1))?;
        tx.create(player("y", 1)).map(drop)
    };
    let error = world.db.transact(two).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let once = async |tx: &Tx| tx.create(player("x", 1)).map(drop);
    let error = world.db.tx().exactly_once().run(once).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let snapshot = async |tx: &Tx| {
        tx.get_many((Player::key("a")?, Player::key("b")?))
            .await
            .map(drop)
    };
    let error = world.db.transact(snapshot).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(world.recording.take().is_empty());
}

#[tokio::test]
async fn errors_contain_items_fields_and_attempts() {
    let world = world(Capabilities::all()).await;
    let body = async |tx: &Tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        let mut b = tx.get::<Player>("b").await?.unwrap();
        a.level += 1;
        b.guild.set(Some("bears".to_owned()))?;
        drop((a, b));
        let db = world.db.clone();
        let race = async move {
            let body = async |tx: &Tx| {
                level_up(tx, "a").await?;
                let mut b = tx.get::<Player>("b").await?.unwrap();
                let next = b.guild.as_deref().map_or(0, str::len) + 1;
                b.guild.set(Some("w".repeat(next)))
            };
            db.transact(body).await
        };
        tokio::spawn(race).await.unwrap()
    };
    let options = world
        .db
        .tx()
        .retries(2)
        .initial_backoff_ms(0)
        .label("party");
    let error = options.run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TransactionFailed);
    assert_eq!(error.attempts(), Some(3));
    let items = error
        .items()
        .iter()
        .map(|item| (item.key.to_string(), item.fields.clone()));
    let expected = [("\"a\"", "level"), ("\"b\"", "guild")];
    let expected = expected.map(|(key, field)| (key.to_owned(), vec![field.to_owned()]));
    assert_eq!(items.collect::<Vec<_>>(), expected);
    assert_eq!(
        error.to_string(),
        "too much contention: another writer changed the item: model=Player key=\"a\" fields=level; \
         another writer changed the item: model=Player key=\"b\" fields=guild attempts=3 label=party"
    );
    let invalid = world
        .db
        .transact(async |tx| tx.create(player("x", -1)).map(drop))
        .await
        .unwrap_err();
    assert_eq!(
        (invalid.kind(), invalid.field()),
        (ErrorKind::InvalidField, Some("level"))
    );
    let exists = world
        .db
        .transact(async |tx| tx.create(player("a", 1)).map(drop))
        .await
        .unwrap_err();
    assert_eq!(
        (exists.kind(), exists.items().len()),
        (ErrorKind::AlreadyExists, 1)
    );
}

#[tokio::test]
async fn unprocessed_keys_are_requested_again() {
    let world = world(Capabilities::all()).await;
    let many =
        async |tx: &Tx| (0..60).try_for_each(|n| tx.create(player(&format!("p{n}"), n)).map(drop));
    world.db.transact(many).await.unwrap();
    let faults = Faults::seeded(3).partial_batches(0.7);
    let engine: Arc<dyn Engine> = Arc::new(FaultEngine::new(world.db.engine().clone(), faults));
    let db = Db::with_engine(engine);
    let sum = async |tx: &Tx| {
        let keys = (0..150)
            .map(|n| Player::key(format!("p{n}")))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = tx.eventual().get_many(keys).await?;
        Ok::<_, Error>(rows.iter().flatten().map(|row| *row.level).sum::<i64>())
    };
    assert_eq!(db.transact(sum).await.unwrap(), (0..60).sum::<i64>());
}

#[tokio::test]
async fn throttled_read_repeats_the_body() {
    let world = world(stage::engine().capabilities()).await;
    let faults = Arc::new(FaultEngine::new(
        world.db.engine().clone(),
        Faults::seeded(3),
    ));
    let db = Db::with_engine(faults.clone());
    faults
        .script(Operation::GetItem, FaultKind::Throttle)
        .unwrap();
    let runs = AtomicU32::new(0);
    let body = async |tx: &Tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        level_up(tx, "a").await
    };
    assert_eq!(db.tx().initial_backoff_ms(0).run(body).await.unwrap(), 2);
    assert_eq!(runs.into_inner(), 2);
    // Without retries, the caller receives the error of the store.
    faults
        .script(Operation::GetItem, FaultKind::Throttle)
        .unwrap();
    let error = db
        .tx()
        .retries(0)
        .run(async |tx| level_up(tx, "a").await)
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.attempts()),
        (ErrorKind::TransactionFailed, Some(1))
    );
    assert!(matches!(
        error.store_error(),
        Some(
            floe_store::Error::ProvisionedThroughputExceeded(_) | floe_store::Error::Throttling(_)
        )
    ));
}

#[tokio::test]
async fn row_returns_its_plain_value() {
    let world = world(Capabilities::dynamodb()).await;
    let body = async |tx: &Tx| {
        let a = tx.get::<Player>("a").await?.unwrap();
        tx.create(player("c", 1))?;
        Ok::<_, Error>(a.to_model())
    };
    assert_eq!(world.db.transact(body).await.unwrap(), player("a", 1));
    // All fields were read, so all are checked.
    let sent = world.recording.take();
    let check = "IF level = 1 AND attribute_not_exists(guild)";
    assert!(sent.get(1).unwrap().contains(check), "{sent:?}");
}

#[tokio::test]
async fn dropped_leader_of_a_batched_read_is_replaced() {
    let world = world(Capabilities::all()).await;
    let gate = Arc::new(Gate::new(world.db.engine().clone()));
    let db = Db::with_engine(gate.clone());
    let body = async |tx: &Tx| {
        let mut held = gate.hold("batch_get_item", Side::Before);
        let mut first = Box::pin(tx.get::<Player>("a"));
        let mut second = Box::pin(tx.get::<Player>("b"));
        let mut third = Box::pin(tx.get::<Player>("missing"));
        // All three are queued; then the first sends the request for all, which is held.
        for _ in 0..2 {
            poll_fn(|context| {
                let pending = [
                    first.as_mut().poll(context).is_pending(),
                    second.as_mut().poll(context).is_pending(),
                    third.as_mut().poll(context).is_pending(),
                ];
                assert_eq!(pending, [true; 3]);
                Poll::Ready(())
            })
            .await;
        }
        held.arrived().await;
        drop(first);
        let (second, third) = tokio::try_join!(second, third)?;
        assert!(third.is_none());
        let again = tx.get::<Player>("a").await?.unwrap();
        Ok::<_, Error>(*second.unwrap().level + *again.level)
    };
    assert_eq!(db.transact(body).await.unwrap(), 2);
    let sent = world.recording.take();
    let expected = [
        r#"BatchGetItem Player {"_id": "a"}, Player {"_id": "b"}, Player {"_id": "missing"}"#,
        r#"BatchGetItem Player {"_id": "b"}, Player {"_id": "missing"}"#,
        r#"GetItem Player {"_id": "a"}"#,
    ];
    assert_eq!(sent, expected);
}
