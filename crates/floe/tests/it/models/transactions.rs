//! Basic use of a model: create, read, update, and rejected values.

use super::stage;
use super::support::{Player, player};
use floe::{Db, Error, ErrorKind, Tx};
use floe_store::TableDef;
use floe_store::op::CreateTable;
use floe_store::table::KeyKind;

async fn db() -> Db {
    let engine = stage::engine();
    let table = TableDef::builder("Player", "_id", KeyKind::S)
        .build()
        .unwrap();
    engine.create_table(CreateTable::from(table)).await.unwrap();
    Db::with_engine(engine)
}

#[tokio::test]
async fn row_is_created_read_and_changed() {
    let db = db().await;
    db.transact(async |tx| {
        let mut player = tx.create(player("a", 10))?;
        player.level += 1;
        Ok::<_, Error>(())
    })
    .await
    .unwrap();
    let level = db
        .transact(async |tx| {
            let mut player = tx.get::<Player>("a").await?.unwrap();
            assert_eq!(player.id, "a");
            if player.level > 10 {
                player.level += 1;
                player.guild.set(Some("bears".to_owned()))?;
            }
            Ok::<_, Error>(*player.level)
        })
        .await
        .unwrap();
    assert_eq!(level, 12);
    let guild = db
        .transact(async |tx| {
            let player = tx.get::<Player>("a").await?.unwrap();
            Ok::<_, Error>(player.guild.clone())
        })
        .await
        .unwrap();
    assert_eq!(guild.as_deref(), Some("bears"));
}

#[tokio::test]
async fn invalid_change_is_rejected_and_nothing_is_written() {
    let db = db().await;
    let refused = db
        .transact(async |tx| tx.create(player("a", -1)).map(drop))
        .await;
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidField);
    assert_eq!(
        error.to_string(),
        "the value is below the minimum: value=-1 min=0 model=Player field=level"
    );
    db.transact(async |tx| tx.create(player("a", 1)).map(drop))
        .await
        .unwrap();
    let set = async |tx: &Tx| {
        let mut player = tx.get::<Player>("a").await?.unwrap();
        assert!(player.level.set(-5).is_err());
        assert_eq!(player.level, 1);
        *player.level = -5;
        Ok::<_, Error>(())
    };
    assert_eq!(
        db.transact(set).await.unwrap_err().kind(),
        ErrorKind::InvalidField
    );
    let again = db
        .transact(async |tx| tx.create(player("a", 1)).map(drop))
        .await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
    let twice = async |tx: &Tx| {
        let _first = tx.get::<Player>("a").await?;
        tx.get::<Player>("a").await.map(drop)
    };
    assert_eq!(
        db.transact(twice).await.unwrap_err().kind(),
        ErrorKind::FetchedTwice
    );
}

#[tokio::test]
async fn increments_from_many_tasks_are_all_counted() {
    let db = db().await;
    db.transact(async |tx| tx.create(player("a", 0)).map(drop))
        .await
        .unwrap();
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let db = db.clone();
        tasks.push(tokio::spawn(async move {
            for n in 0..25 {
                db.tx()
                    .retries(1000)
                    .initial_backoff_ms(1)
                    .max_backoff_ms(2)
                    .run(async |tx| {
                        let mut player = tx.get::<Player>("a").await?.unwrap();
                        match n % 2 {
                            0 => player.level += 1,
                            _ => player.level.increment_by(1)?,
                        }
                        Ok::<_, Error>(())
                    })
                    .await
                    .unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let level = async |tx: &Tx| Ok::<_, Error>(*tx.get::<Player>("a").await?.unwrap().level);
    assert_eq!(db.transact(level).await.unwrap(), 200);
}
