//! The requests of a transaction for each use of an item in its body, row by row of the commit table.

use std::sync::Arc;

use super::stage;
use super::support::{Player, player};
use floe::{Db, Error, ErrorKind, Tx};
use floe_store::TableDef;
use floe_store::op::CreateTable;
use floe_store::table::KeyKind;
use floe_testkit::record::RecordingEngine;

struct World {
    db: Db,
    /// The same tables without recording, for another writer.
    other: Db,
    recording: Arc<RecordingEngine>,
}

async fn world() -> World {
    let engine = stage::engine();
    let table = TableDef::builder("Player", "_id", KeyKind::S)
        .build()
        .unwrap();
    engine.create_table(CreateTable::from(table)).await.unwrap();
    let recording = Arc::new(RecordingEngine::new(engine.clone()));
    let world = World {
        db: Db::with_engine(recording.clone()),
        other: Db::with_engine(engine),
        recording,
    };
    for id in ["a", "b"] {
        let create = async |tx: &Tx| tx.create(player(id, 1)).map(drop);
        world.other.transact(create).await.unwrap();
    }
    world
}

impl World {
    /// Returns the requests without stamps, which differ each time.
    fn sent(&self) -> Vec<String> {
        let unstamped = |request: String| {
            let mut parts = request.split(r#", _tx = ""#);
            let mut text = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                text.push_str(part.split_once('"').unwrap().1);
            }
            let mut parts = text.split(r#""_tx": ""#);
            let mut text = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                text.push_str(part.split_once(r#"", "#).unwrap().1);
            }
            text
        };
        self.recording.take().into_iter().map(unstamped).collect()
    }
}

const GET_A: &str = r#"GetItem Player {"_id": "a"}"#;

macro_rules! sends {
    ($name:ident, |$tx:ident| $body:block, [$($request:expr),* $(,)?]) => {
        #[tokio::test]
        async fn $name() {
            let world = world().await;
            let body = async |$tx: &Tx| {
                $body
                Ok::<_, Error>(())
            };
            world.db.transact(body).await.unwrap();
            let expected: &[&str] = &[$($request),*];
            assert_eq!(world.sent(), expected);
        }
    };
}

sends!(
    transaction_without_writes_sends_nothing,
    |tx| {
        let a = tx.get::<Player>("a").await?.unwrap();
        assert_eq!(a.level, 1);
    },
    [GET_A]
);

sends!(
    field_set,
    |tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        a.guild.set(Some("bears".to_owned()))?;
    },
    [
        GET_A,
        r#"UpdateItem Player {"_id": "a"} SET guild = "bears" IF attribute_exists(_id) AND attribute_not_exists(guild)"#,
    ]
);

sends!(
    field_read_and_another_set,
    |tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        if a.level == 1 {
            a.guild.set(Some("bears".to_owned()))?;
        }
    },
    [
        GET_A,
        r#"UpdateItem Player {"_id": "a"} SET guild = "bears" IF level = 1 AND attribute_not_exists(guild)"#,
    ]
);

sends!(
    field_incremented_with_a_lock,
    |tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        a.level += 1;
    },
    [
        GET_A,
        r#"UpdateItem Player {"_id": "a"} SET level = 2 IF level = 1"#,
    ]
);

sends!(
    field_incremented_without_a_lock,
    |tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        if a.level < 10 {
            a.level.increment_by(5)?;
            a.level.increment_by(-2)?;
        }
    },
    [
        GET_A,
        r#"UpdateItem Player {"_id": "a"} SET level = level + 3 IF level <= 9223372036854775804"#,
    ]
);

sends!(
    field_overwritten,
    |tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        a.level.overwrite(7)?;
    },
    [
        GET_A,
        r#"UpdateItem Player {"_id": "a"} SET level = 7 IF attribute_exists(_id)"#,
    ]
);

sends!(
    field_peeked,
    |tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        assert_eq!(*a.level.peek(), 1);
        a.guild.set(Some("bears".to_owned()))?;
    },
    [
        GET_A,
        r#"UpdateItem Player {"_id": "a"} SET guild = "bears" IF attribute_exists(_id) AND attribute_not_exists(guild)"#,
    ]
);

sends!(
    field_set_to_its_stored_value,
    |tx| {
        let mut a = tx.get::<Player>("a").await?.unwrap();
        a.level.set(1)?;
    },
    [GET_A]
);

sends!(
    items_read_and_another_written,
    |tx| {
        let a = tx.get::<Player>("a").await?.unwrap();
        let missing = tx.get::<Player>("missing").await?;
        assert!(missing.is_none());
        let mut b = tx.get::<Player>("b").await?.unwrap();
        b.level.set(*a.level + 1)?;
    },
    [
        GET_A,
        r#"GetItem Player {"_id": "missing"}"#,
        r#"GetItem Player {"_id": "b"}"#,
        concat!(
            r#"TransactWriteItems [ConditionCheck Player {"_id": "a"} IF level = 1; "#,
            r#"ConditionCheck Player {"_id": "missing"} IF attribute_not_exists(_id); "#,
            r#"UpdateItem Player {"_id": "b"} SET level = 2 IF level = 1]"#,
        ),
    ]
);

sends!(
    item_fetched_but_not_read_and_another_written,
    |tx| {
        let (a, b) = tokio::try_join!(tx.get::<Player>("a"), tx.get::<Player>("b"))?;
        drop(a);
        b.unwrap().level += 1;
    },
    [
        r#"BatchGetItem Player {"_id": "a"}, Player {"_id": "b"}"#,
        concat!(
            r#"TransactWriteItems [ConditionCheck Player {"_id": "a"} IF attribute_exists(_id); "#,
            r#"UpdateItem Player {"_id": "b"} SET level = 2 IF level = 1]"#,
        ),
    ]
);

sends!(
    item_created,
    |tx| {
        tx.create(player("new", 3))?;
    },
    [r#"PutItem Player {"_id": "new", "level": 3} IF attribute_not_exists(_id)"#]
);

sends!(
    item_fetched_or_created,
    |tx| {
        let mut new = tx.get_or_create(player("new", 3)).await?;
        assert!(new.is_new());
        new.level += 1;
        let a = tx.get_or_create(player("a", 3)).await?;
        assert!(!a.is_new());
    },
    [
        r#"GetItem Player {"_id": "new"}"#,
        GET_A,
        concat!(
            r#"TransactWriteItems [PutItem Player {"_id": "new", "level": 4} IF attribute_not_exists(_id); "#,
            r#"ConditionCheck Player {"_id": "a"} IF attribute_exists(_id)]"#,
        ),
    ]
);

sends!(
    item_changed_without_a_read,
    |tx| {
        tx.update::<Player>(
            "a",
            Player::patch().level(1).guild(None),
            Player::patch().level(2),
        )?;
    },
    [
        r#"UpdateItem Player {"_id": "a"} SET level = 2 IF level = 1 AND attribute_not_exists(guild)"#,
    ]
);

sends!(
    item_created_or_put_without_a_read,
    |tx| {
        tx.create_or_put::<Player>(
            "a",
            Player::patch().level(1),
            Player::patch().level(2).guild(None),
        )?;
    },
    [
        r#"UpdateItem Player {"_id": "a"} SET level = 2 REMOVE guild IF attribute_not_exists(_id) OR level = 1"#,
    ]
);

sends!(
    item_deleted_by_key,
    |tx| {
        tx.delete_key::<Player>("a")?;
    },
    [r#"DeleteItem Player {"_id": "a"}"#]
);

sends!(
    item_deleted_by_row,
    |tx| {
        let a = tx.get::<Player>("a").await?.unwrap();
        assert_eq!(a.level, 1);
        tx.delete(a);
    },
    [GET_A, r#"DeleteItem Player {"_id": "a"} IF level = 1"#,]
);

#[tokio::test]
async fn hundred_concurrent_gets_are_one_request() {
    let world = world().await;
    let body = async |tx: &Tx| {
        let names: Vec<String> = (0..100).map(|n| format!("p{n}")).collect();
        let gets = names.iter().map(|name| tx.get::<Player>(name.as_str()));
        let mut gets: Vec<_> = gets.map(Box::pin).collect();
        let mut found = 0;
        std::future::poll_fn(|context| {
            gets.retain_mut(|get| match get.as_mut().poll(context) {
                std::task::Poll::Ready(row) => {
                    found += usize::from(row.unwrap().is_none());
                    false
                }
                std::task::Poll::Pending => true,
            });
            if gets.is_empty() {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
        assert_eq!(found, 100);
        Ok::<_, Error>(())
    };
    world.db.transact(body).await.unwrap();
    let sent = world.sent();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].starts_with("BatchGetItem"));
}

#[tokio::test]
async fn conflict_on_a_checked_read_repeats_the_body() {
    let world = world().await;
    let runs = std::sync::atomic::AtomicU32::new(0);
    let body = async |tx: &Tx| {
        let run = runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let a = tx.get::<Player>("a").await?.unwrap();
        let mut b = tx.get::<Player>("b").await?.unwrap();
        b.level.set(*a.level * 10)?;
        drop((a, b));
        if run == 0 {
            let other = world.other.clone();
            tokio::spawn(async move {
                let change = async |tx: &Tx| {
                    tx.get::<Player>("a").await?.unwrap().level += 1;
                    Ok::<_, Error>(())
                };
                other.transact(change).await
            })
            .await
            .unwrap()?;
        }
        Ok::<_, Error>(())
    };
    world.db.tx().initial_backoff_ms(0).run(body).await.unwrap();
    assert_eq!(runs.into_inner(), 2);
    let level = async |tx: &Tx| Ok::<_, Error>(*tx.get::<Player>("b").await?.unwrap().level);
    assert_eq!(world.other.transact(level).await.unwrap(), 20);
}

#[tokio::test]
async fn nested_transaction_is_rejected_unless_detached() {
    let world = world().await;
    let nested = async |_: &Tx| {
        let inner = async |tx: &Tx| tx.create(player("inner", 1)).map(drop);
        world.db.transact(inner).await
    };
    let error = world.db.transact(nested).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    let detached = async |_: &Tx| {
        let inner = async |tx: &Tx| tx.create(player("inner", 1)).map(drop);
        world.db.tx().detached().run(inner).await
    };
    world.db.transact(detached).await.unwrap();
}
