//! The earlier of the two documents: its sections, where they differ from the later one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_testkit::record::RecordingEngine;

use super::super::stage;
use super::{Currency, Result, Weapon, db};

#[derive(Clone, Debug, PartialEq, Model)]
struct Player {
    #[model(key)]
    id: String,
    guild: Option<String>,
    #[model(default)]
    smr: BTreeMap<String, i64>,
    #[model(default = 0)]
    level: i64,
}

fn player(id: &str, level: i64) -> Player {
    Player {
        id: id.to_owned(),
        guild: None,
        smr: BTreeMap::new(),
        level,
    }
}

async fn with_player(id: &str, level: i64) -> Db {
    let db = db(&[Player::SCHEMA]).await;
    db.transact(async |tx| tx.create(player(id, level)).map(drop))
        .await
        .unwrap();
    db
}

async fn read(db: &Db, id: &str) -> Player {
    let all = db.scan::<Player>().all().await.unwrap();
    all.into_iter().find(|player| player.id == id).unwrap()
}

/// Runs two bodies that both read the player before either writes.
#[tokio::test]
async fn automatic_optimistic_locking() {
    let db = with_player("1", 11).await;
    let both = tokio::sync::Barrier::new(2);
    let (first, second) = (AtomicU32::new(0), AtomicU32::new(0));
    let request1 = async |tx: &Tx| {
        let mut player = tx.get::<Player>("1").await?.unwrap();
        let levels_up = if player.guild.is_some() { 2 } else { 1 };
        if first.fetch_add(1, Ordering::Relaxed) == 0 {
            both.wait().await;
        }
        player.level += levels_up;
        Ok::<_, Error>(())
    };
    let request2 = async |tx: &Tx| {
        let mut player = tx.get::<Player>("1").await?.unwrap();
        assert!(player.level > 10, "too low to join a guild");
        if second.fetch_add(1, Ordering::Relaxed) == 0 {
            both.wait().await;
        }
        player.guild.set(Some("my guild".to_owned()))
    };
    let options = || db.tx().initial_backoff_ms(1);
    let (one, other) = tokio::join!(options().run(request1), options().run(request2));
    one.unwrap();
    other.unwrap();
    // One of them ran again and saw the change of the other; neither change is lost.
    assert_eq!(first.into_inner() + second.into_inner(), 3);
    let player = read(&db, "1").await;
    assert_eq!(player.guild.as_deref(), Some("my guild"));
    assert!([12, 13].contains(&player.level));
}

/// Two transactions over two items, in this order: get, get, write, write.
#[tokio::test]
async fn transactions() {
    let db = with_player("a", 1).await;
    db.transact(async |tx| tx.create(player("b", 1)).map(drop))
        .await
        .unwrap();
    let both = tokio::sync::Barrier::new(2);
    let runs = AtomicU32::new(0);
    let give = async |from: &str, to: &str| {
        let first = AtomicU32::new(0);
        let body = async |tx: &Tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            let (mut from, mut to) = {
                let keys = (Player::key(from)?, Player::key(to)?);
                let (from, to) = tx.get_many(keys).await?;
                (from.unwrap(), to.unwrap())
            };
            if first.fetch_add(1, Ordering::Relaxed) == 0 {
                both.wait().await;
            }
            from.level -= 1;
            to.level += 1;
            Ok::<_, Error>(())
        };
        db.tx().initial_backoff_ms(1).run(body).await
    };
    let (one, other) = tokio::join!(give("a", "b"), give("b", "a"));
    one.unwrap();
    other.unwrap();
    assert_eq!(runs.into_inner(), 3);
    assert_eq!(
        (read(&db, "a").await.level, read(&db, "b").await.level),
        (1, 1)
    );
}

#[tokio::test]
async fn start_a_transaction() {
    let db = db(&[]).await;
    let value = db.transact(async |_: &Tx| Ok::<_, Error>(123)).await;
    assert_eq!(value.unwrap(), 123);
}

#[tokio::test]
async fn define_a_model() {
    let db = db(&[Player::SCHEMA]).await;
    let create = async |tx: &Tx| tx.create(Player::from_key("id")?).map(drop);
    db.transact(create).await.unwrap();
    assert_eq!(read(&db, "id").await, player("id", 0));
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Fields {
    #[model(key)]
    id: String,
    #[model(sort_key)]
    range: String,
    number: f64,
    boolean: bool,
    array: Vec<i64>,
    #[model(default)]
    object: Option<BTreeMap<String, String>>,
    #[model(read_only)]
    immutable: i64,
}

#[tokio::test]
async fn fields() {
    let db = db(&[Fields::SCHEMA]).await;
    let value = Fields {
        id: "id".to_owned(),
        range: "range".to_owned(),
        number: 1.5,
        boolean: true,
        array: vec![1, 2],
        object: None,
        immutable: 7,
    };
    db.transact(async |tx| tx.create(value.clone()).map(drop))
        .await
        .unwrap();
    let found = db.query::<Fields>(|f| f.id.eq("id").and(f.range.eq("range")));
    assert_eq!(found.first().await.unwrap(), Some(value));
    let change = async |tx: &Tx| {
        let mut row = tx.get::<Fields>(("id", "range")).await?.unwrap();
        row.immutable.set(8)
    };
    let error = db.transact(change).await.unwrap_err();
    assert_eq!(error.field(), Some("immutable"));
}

#[tokio::test]
async fn create_an_item() {
    let db = with_player("id", 1).await;
    let create = async |tx: &Tx| tx.create(player("id", 2)).map(drop);
    let error = db.transact(create).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let get = async |tx: &Tx| Ok::<_, Error>(*tx.get_or_create(player("id", 3)).await?.level);
    assert_eq!(db.transact(get).await.unwrap(), 1);
}

#[derive(Clone, Debug, PartialEq, Model)]
struct Guild {
    #[model(key)]
    gid: String,
    #[model(sort_key)]
    season: i64,
}

#[tokio::test]
async fn get_an_item() {
    let db = db(&[Player::SCHEMA, Guild::SCHEMA]).await;
    let create = async |tx: &Tx| {
        tx.create(player("id", 1))?;
        let gid = "gid".to_owned();
        tx.create(Guild { gid, season: 123 }).map(drop)
    };
    db.transact(create).await.unwrap();
    let by_parts = async |tx: &Tx| {
        assert!(tx.get::<Player>("id").await?.is_some());
        assert!(tx.get::<Guild>(("gid", 123)).await?.is_some());
        Ok::<_, Error>(())
    };
    db.transact(by_parts).await.unwrap();
    let by_key = async |tx: &Tx| Ok::<_, Error>(tx.get(Player::key("id")?).await?.is_some());
    assert!(db.transact(by_key).await.unwrap());
    let many = async |tx: &Tx| {
        let keys = (Player::key("id")?, Guild::key(("gid", 123))?);
        let (player, guild) = tx.get_many(keys).await?;
        Ok::<_, Error>(player.is_some() && guild.is_some())
    };
    assert!(db.transact(many).await.unwrap());
}

#[tokio::test]
async fn updating_an_item() {
    let db = db(&[Player::SCHEMA]).await;
    let create = async |tx: &Tx| {
        let mut p = tx.create(player("id", 1))?;
        p.guild.set(Some("guild".to_owned()))?;
        p.level += 1;
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    let blind = async |tx: &Tx, old: &str, new: &str| {
        let old = Player::patch().guild(Some(old.to_owned()));
        tx.update::<Player>("id", old, Player::patch().guild(Some(new.to_owned())))
    };
    db.transact(async |tx| blind(tx, "guild", "new guild").await)
        .await
        .unwrap();
    let again = db.tx().retries(0);
    let error = again
        .run(async |tx| blind(tx, "guild", "other").await)
        .await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TransactionFailed);
    let without_old =
        async |tx: &Tx| tx.update::<Player>("id", Player::patch(), Player::patch().level(9));
    let error = db.transact(without_old).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    // The expected guild is a condition if the item exists, and ignored if it does not.
    let put = async |tx: &Tx, id: &str| {
        let old = Player::patch().guild(Some("new guild".to_owned()));
        tx.create_or_put::<Player>(id, old, Player::patch().guild(None).level(5))
    };
    db.transact(async |tx| put(tx, "id").await).await.unwrap();
    db.transact(async |tx| put(tx, "another").await)
        .await
        .unwrap();
    assert_eq!(read(&db, "id").await, player("id", 5));
    assert_eq!(read(&db, "another").await, player("another", 5));
}

/// Writes need no call: one changed item is one write, several are one transaction.
#[tokio::test]
async fn write_an_item() {
    let engine = stage::engine();
    let recording = Arc::new(RecordingEngine::new(engine));
    let db = Db::with_engine(recording.clone());
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    let create = async |tx: &Tx, ids: &[&str]| {
        ids.iter()
            .try_for_each(|id| tx.create(player(id, 1)).map(drop))
    };
    recording.take();
    db.transact(async |tx| create(tx, &["a"]).await)
        .await
        .unwrap();
    db.transact(async |tx| create(tx, &["b", "c"]).await)
        .await
        .unwrap();
    let sent = recording.take();
    let operations: Vec<_> = sent
        .iter()
        .filter_map(|request| request.split(' ').next())
        .collect();
    assert_eq!(operations, ["PutItem", "TransactWriteItems"]);
}

#[tokio::test(start_paused = true)]
async fn transaction_retries() {
    let db = db(&[]).await;
    let runs = AtomicU32::new(0);
    let body = async |tx: &Tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(tx.retry(Error::from(floe_store::Error::Throttling(String::new()))))
    };
    let error = db.tx().retries(5).run(body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert_eq!(runs.into_inner(), 6);
}

#[tokio::test]
async fn inconsistent_read() {
    let db = with_player("id", 1).await;
    // Eventual reads are checked too.
    let body = async |tx: &Tx| {
        let mut player = tx.eventual().get::<Player>("id").await?.unwrap();
        player.level += 1;
        Ok::<_, Error>(())
    };
    db.transact(body).await.unwrap();
    assert_eq!(read(&db, "id").await.level, 2);
}

impl PlayerRow<'_> {
    fn rank(&self, ranks: &[&str]) -> String {
        let at = usize::try_from(*self.level).unwrap_or(0);
        ranks.get(at).copied().unwrap_or("unranked").to_owned()
    }
}

/// Structs have no constructors with arguments: methods of a row take what else they need.
#[tokio::test]
async fn constructor_parameters() {
    let db = with_player("id", 1).await;
    let ranks = ["novice", "expert"];
    let body = async |tx: &Tx| Ok::<_, Error>(tx.get::<Player>("id").await?.unwrap().rank(&ranks));
    assert_eq!(db.transact(body).await.unwrap(), "expert");
}

async fn foo(tx: &Tx) -> Result<i64> {
    boo(tx).await
}

async fn boo(tx: &Tx) -> Result<i64> {
    let mut player = tx.get::<Player>("id").await?.unwrap();
    player.level += 1;
    Ok(*player.level)
}

#[tokio::test]
async fn helpers_in_transactions() {
    let db = with_player("id", 1).await;
    assert_eq!(db.transact(async |tx| foo(tx).await).await.unwrap(), 2);
    assert_eq!(db.transact(foo).await.unwrap(), 3);
}

/// Both kinds of inventory of one player are under one partition key, and each is an item of its own.
#[tokio::test]
async fn composite_ids() {
    let db = db(&[Currency::SCHEMA, Weapon::SCHEMA]).await;
    let create = async |tx: &Tx| {
        for user in ["player1", "player2"] {
            tx.create(Currency::from_key(user)?)?;
            tx.create(Weapon::from_key(user)?)?;
        }
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    let key = Weapon::key("player1").unwrap();
    assert_eq!(key.encoded().to_string(), r#""player1"/"weapon""#);
    let weapons = db
        .query::<Weapon>(|w| w.user_id.eq("player1"))
        .all()
        .await
        .unwrap();
    assert_eq!(weapons.len(), 1);
    assert_eq!(db.scan::<Currency>().all().await.unwrap().len(), 2);
}
