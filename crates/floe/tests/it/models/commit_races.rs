//! Each row of the commit table under a race: between the body and its commit, another writer changes the same item.
//! The body must run again if the outcome depends on that change, and otherwise must not; the effects of both are
//! stored.
//!
//! Every row runs as a plain write, with another item, and as a transaction of one item, on an engine with idempotency
//! tokens and on one without.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::no_time::NoTime;
use super::stage;
use floe::model::Expiry;
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_store::expr::{Path, Update};
use floe_store::op::{GetItem, UpdateItem};
use floe_store::{BoxFuture, Capabilities, Engine, Env, Item};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

// The model: a field of each kind that the table refers to.

#[derive(Clone, Debug, PartialEq, Model)]
struct Card {
    #[model(key)]
    id: String,
    #[model(default)]
    level: i64,
    #[model(default)]
    wins: i64,
    note: Option<String>,
    #[model(serde, default)]
    deck: Deck,
    #[model(expires)]
    expires: Option<Expiry>,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Deck {
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Slot {
    tags: BTreeMap<String, Vec<i64>>,
}

fn deck(fire: &[i64], ice: &[i64]) -> Deck {
    let slot = |tag: &str, numbers: &[i64]| Slot {
        tags: [(tag.to_owned(), numbers.to_vec())].into(),
    };
    let slots = vec![slot("fire", fire), slot("ice", ice)];
    Deck { slots }
}

/// Returns the numbers of a nested value of a deck.
fn numbers<'d>(deck: &'d mut Deck, slot: usize, tag: &str) -> &'d mut Vec<i64> {
    deck.slots[slot].tags.get_mut(tag).unwrap()
}

fn note(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// The stored item before the race.
fn card() -> Card {
    Card {
        id: "x".to_owned(),
        level: 1,
        wins: 1,
        note: note("old"),
        deck: deck(&[1, 2], &[1, 2]),
        expires: None,
    }
}

/// The item that the other writer creates.
fn theirs() -> Card {
    let level = 50;
    Card { level, ..card() }
}

/// The item that the body creates.
fn ours() -> Card {
    let (level, note) = (7, None);
    Card {
        level,
        note,
        ..card()
    }
}

/// The stored item before the race, expired at the time of the transaction.
fn expired() -> Card {
    let expires = Some(Expiry::after(TestEnv::START, Duration::from_secs(60)));
    Card { expires, ..card() }
}

fn future() -> Option<Expiry> {
    Some(Expiry::after(TestEnv::START, Duration::from_secs(6000)))
}

// The races.

/// What another writer does to the item between the body and its commit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Race {
    /// Nothing.
    Nothing,
    /// Adds 10 to the level.
    Level,
    /// Adds 10 to the wins.
    Wins,
    /// Sets the note.
    Note,
    /// Adds a number inside the deck.
    Deck,
    /// Adds an attribute that is not part of the model.
    Foreign,
    /// Deletes the item, expired or not.
    Delete,
    /// Creates the item if it is missing or expired.
    Create,
    /// Deletes the item and creates another with the same key.
    Replace,
    /// Extends the expiry of an expired item.
    Renew,
}

impl Race {
    async fn run(self, world: &World) {
        let change = |update: Update| {
            let key = Card::key("x").unwrap().encoded().to_item();
            world
                .engine
                .write_item(UpdateItem::new("Card", key, update).into())
        };
        match self {
            Self::Nothing => {}
            Self::Level => world.change(|card| *card.level += 10).await,
            Self::Wins => world.change(|card| *card.wins += 10).await,
            Self::Note => world.change(|card| *card.note = note("new")).await,
            Self::Deck => {
                let push = |card: &mut CardRow<'_>| numbers(&mut card.deck, 1, "ice").push(9);
                world.change(push).await;
            }
            Self::Foreign => {
                let update = Update::new().set(Path::attribute("foreign"), 1);
                change(update).await.unwrap();
            }
            Self::Delete => world.delete().await,
            Self::Create => world.create(&theirs()).await,
            Self::Replace => {
                world.delete().await;
                world.create(&theirs()).await;
            }
            Self::Renew => {
                let moment = future().unwrap().as_secs();
                let update = Update::new().set(Path::attribute("expires"), moment);
                change(update).await.unwrap();
            }
        }
    }
}

// The world.

struct World {
    db: Db,
    /// The other writers.
    other: Db,
    engine: Arc<dyn Engine>,
    recording: Arc<RecordingEngine>,
}

impl World {
    /// Creates a table with the card, if given, and another card `w`. The time is after that of [`expired`].
    async fn new(capabilities: Capabilities, start: Option<&Card>) -> Arc<Self> {
        let test = TestEnv::seeded(1);
        let engine = stage::engine_at(test.env.clone());
        let recording = Arc::new(RecordingEngine::new(engine.clone()).claiming(capabilities));
        let db = |engine: Arc<dyn Engine>, seed| {
            let env = Env::manual(test.clock.clone(), seed);
            Db::with_parts(engine, env, Arc::new(NoTime))
        };
        let world = Self {
            db: db(recording.clone(), 2),
            other: db(engine.clone(), 3),
            engine,
            recording,
        };
        world.other.ensure_tables(&[Card::SCHEMA]).await.unwrap();
        let id = "w".to_owned();
        let witness = Card { id, ..card() };
        for card in start.into_iter().chain([&witness]) {
            world.create(card).await;
        }
        test.advance(Duration::from_secs(120));
        Arc::new(world)
    }

    async fn create(&self, card: &Card) {
        let create = async |tx: &Tx| tx.create(card.clone()).map(drop);
        self.other.transact(create).await.unwrap();
    }

    async fn delete(&self) {
        let delete = async |tx: &Tx| tx.delete_key::<Card>("x");
        self.other.transact(delete).await.unwrap();
    }

    async fn change(&self, change: fn(&mut CardRow<'_>)) {
        let body = async |tx: &Tx| {
            change(&mut tx.get::<Card>("x").await?.unwrap());
            Ok::<_, Error>(())
        };
        self.other.transact(body).await.unwrap();
    }

    /// Returns the stored item, expired or not, without its stamp.
    async fn stored(&self, id: &str) -> Option<Item> {
        let key = Card::key(id).unwrap().encoded().to_item();
        let output = self.engine.get_item(GetItem::new("Card", key)).await;
        let mut item = output.unwrap().item?;
        item.remove("_tx");
        Some(item)
    }
}

/// A body that uses the item `x`. It returns the level that it read: 0 if it did not read, -1 if the item is missing.
type Body = for<'t> fn(&'t Tx) -> BoxFuture<'t, Result<i64, Error>>;

/// Reads the item `x` and calls `act` with its row if it exists.
async fn with_row(
    tx: &Tx,
    act: impl FnOnce(CardRow<'_>) -> Result<i64, Error>,
) -> Result<i64, Error> {
    tx.get::<Card>("x").await?.map_or(Ok(-1), act)
}

/// How the transaction is run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// The commit contains only the item.
    Alone,
    /// The commit contains another item, so it is a transaction.
    Beside,
    /// The commit contains only the item, and its outcome is always known: without tokens, a transaction of one item.
    Once,
    /// Reads are checked although nothing is written.
    Verified,
}

/// The modes for bodies that write.
const WRITES: &[Mode] = &[Mode::Alone, Mode::Beside, Mode::Once];
/// The modes for bodies whose reads are checked.
const READS: &[Mode] = &[Mode::Beside, Mode::Verified];

/// The expected outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Committed after this many attempts, the last of which read this level.
    Ran(u32, i64),
    /// Failed because the item exists, without another attempt.
    Exists,
    /// Every attempt conflicted.
    Lost,
}

use End::{Exists, Lost, Ran};

/// Attempts of a transaction that always conflicts.
const RUNS_MAX: u32 = 4;

/// Runs one row of the table under each race, in each mode, on each kind of engine.
async fn check(
    row: &str,
    modes: &[Mode],
    start: Option<Card>,
    body: Body,
    races: &[(Race, End, Option<Item>)],
) {
    let engines = [
        ("tokens", Capabilities::all()),
        ("no tokens", Capabilities::dynamodb()),
    ];
    for (engine, capabilities) in engines {
        for mode in modes {
            for (race, end, stored) in races {
                let world = World::new(capabilities.clone(), start.as_ref()).await;
                let place = format!("{row}: {race:?}, {mode:?}, {engine}");
                let (actual, runs) = run(&world, *mode, body, *race).await;
                let actual = match actual {
                    Ok(saw) => Ran(runs, saw),
                    Err(error) => match (error.kind(), runs) {
                        (ErrorKind::AlreadyExists, 1) => Exists,
                        (ErrorKind::TransactionFailed, RUNS_MAX) => Lost,
                        _ => panic!("{place}: runs={runs} {error:?}"),
                    },
                };
                let sent = world.recording.take().join("\n  ");
                assert_eq!(actual, *end, "{place}\n  {sent}");
                let mut stored = stored.clone();
                if *race == Race::Foreign {
                    // Attributes that are not part of the model are kept.
                    stored = stored.map(|item| item.with("foreign", 1));
                }
                let item = world.stored("x").await;
                assert_eq!(item, stored, "{place}\n  {sent}");
                check_witness(&world, *mode, actual, &place).await;
            }
        }
    }
}

/// Runs the body with the race in its first attempt.
async fn run(world: &Arc<World>, mode: Mode, body: Body, race: Race) -> (Result<i64, Error>, u32) {
    let runs = AtomicU32::new(0);
    let whole = async |tx: &Tx| {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        let saw = body(tx).await?;
        if mode == Mode::Beside {
            let new = Card::patch().wins(100 + saw);
            tx.create_or_put::<Card>("w", Card::patch(), new)?;
        }
        if run == 0 {
            let world = Arc::clone(world);
            let other = tokio::spawn(async move { race.run(&world).await });
            other.await.unwrap();
        }
        Ok::<_, Error>(saw)
    };
    let options = match mode {
        Mode::Alone | Mode::Beside => world.db.tx(),
        Mode::Once => world.db.tx().exactly_once(),
        Mode::Verified => world.db.tx().verified(),
    };
    (options.run(whole).await, runs.into_inner())
}

/// Checks that the other item contains the level that the last attempt read, or is unchanged.
async fn check_witness(world: &World, mode: Mode, end: End, place: &str) {
    let wins = match (mode, end) {
        (Mode::Beside, Ran(_, saw)) => 100 + saw,
        _ => 1,
    };
    let witness = world.stored("w").await.unwrap();
    assert_eq!(Card::from_item(&witness).unwrap().wins, wins, "{place}");
}

/// A table: the change of the other writer, the outcome of the transaction, the stored item.
macro_rules! races {
    ($($race:ident => $end:expr, $stored:ident $({ $($field:ident: $value:expr),+ })?;)+) => {
        &[$((Race::$race, $end, stored!($stored $($($field: $value,)+)?)),)+]
    };
}

macro_rules! stored {
    (nothing) => {
        None
    };
    (level_alone) => {
        Some(Item::new().with("_id", "x").with("level", 2))
    };
    ($start:ident $($field:ident: $value:expr,)*) => {{
        let card = $start();
        $(let card = Card { $field: $value, ..card };)*
        Some(card.to_item().unwrap())
    }};
}

// The rows.

#[tokio::test]
async fn found_and_some_fields_read() {
    let body: Body = |tx| Box::pin(with_row(tx, |card| Ok(*card.level)));
    let races = races! {
        Nothing => Ran(1, 1),  card;
        Level   => Ran(2, 11), card { level: 11 };
        Wins    => Ran(1, 1),  card { wins: 11 };
        Deck    => Ran(1, 1),  card { deck: deck(&[1, 2], &[1, 2, 9]) };
        Foreign => Ran(1, 1),  card;
        Delete  => Ran(2, -1), nothing;
        Replace => Ran(2, 50), theirs;
    };
    check("some fields read", READS, Some(card()), body, races).await;
}

#[tokio::test]
async fn found_and_nothing_read() {
    let body: Body = |tx| Box::pin(with_row(tx, |_| Ok(0)));
    let races = races! {
        Nothing => Ran(1, 0),  card;
        Level   => Ran(1, 0),  card { level: 11 };
        Replace => Ran(1, 0),  theirs;
        Delete  => Ran(2, -1), nothing;
    };
    check("nothing read", READS, Some(card()), body, races).await;
}

#[tokio::test]
async fn missing_or_expired() {
    let body: Body = |tx| Box::pin(with_row(tx, |card| Ok(*card.level)));
    let races = races! {
        Nothing => Ran(1, -1), nothing;
        Create  => Ran(2, 50), theirs;
    };
    check("missing", READS, None, body, races).await;
    let races = races! {
        Nothing => Ran(1, -1), expired;
        Foreign => Ran(1, -1), expired;
        Delete  => Ran(1, -1), nothing;
        Create  => Ran(2, 50), theirs;
        Renew   => Ran(2, 1),  card { expires: future() };
    };
    check("expired", READS, Some(expired()), body, races).await;
}

#[tokio::test]
async fn fetched_or_created() {
    let body: Body = |tx| {
        Box::pin(async {
            let mut card = tx.get_or_create(ours()).await?;
            let saw = *card.level;
            card.level += 100;
            Ok(saw)
        })
    };
    let races = races! {
        Nothing => Ran(1, 7),  ours { level: 107 };
        Create  => Ran(2, 50), theirs { level: 150 };
    };
    check("get or create, missing", WRITES, None, body, races).await;
    let races = races! {
        Nothing => Ran(1, 7),  ours { level: 107 };
        Delete  => Ran(1, 7),  ours { level: 107 };
        Create  => Ran(2, 50), theirs { level: 150 };
        Renew   => Ran(2, 1),  card { level: 101, expires: future() };
    };
    check(
        "get or create, expired",
        WRITES,
        Some(expired()),
        body,
        races,
    )
    .await;
    let races = races! {
        Nothing => Ran(1, 1),  card { level: 101 };
        Level   => Ran(2, 11), card { level: 111 };
        Wins    => Ran(1, 1),  card { level: 101, wins: 11 };
        Delete  => Ran(2, 7),  ours { level: 107 };
    };
    check("get or create, found", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn field_set() {
    let body: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            card.level.set(7)?;
            Ok(0)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 0),  card { level: 7 };
        Level   => Ran(2, 0),  card { level: 7 };
        Wins    => Ran(1, 0),  card { level: 7, wins: 11 };
        Foreign => Ran(1, 0),  card { level: 7 };
        Delete  => Ran(2, -1), nothing;
        Replace => Ran(2, 0),  theirs { level: 7 };
    };
    check("set", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn field_read_and_another_set() {
    let body: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            let level = *card.level;
            card.note.set(Some(format!("level {level}")))?;
            Ok(level)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 1),  card { note: note("level 1") };
        Level   => Ran(2, 11), card { note: note("level 11"), level: 11 };
        Note    => Ran(2, 1),  card { note: note("level 1") };
        Wins    => Ran(1, 1),  card { note: note("level 1"), wins: 11 };
        Delete  => Ran(2, -1), nothing;
    };
    check("read and another set", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn field_incremented_with_a_lock() {
    let body: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            card.level += 1;
            Ok(0)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 0),  card { level: 2 };
        Level   => Ran(2, 0),  card { level: 12 };
        Wins    => Ran(1, 0),  card { level: 2, wins: 11 };
        Delete  => Ran(2, -1), nothing;
        Replace => Ran(2, 0),  theirs { level: 51 };
    };
    check("+=", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn field_incremented_without_a_lock() {
    let unread: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            card.level.increment_by(5)?;
            Ok(0)
        }))
    };
    let read: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            let saw = *card.level;
            card.level.increment_by(5)?;
            Ok(saw)
        }))
    };
    for (body, saw) in [(unread, 0), (read, 1)] {
        let races = races! {
            Nothing => Ran(1, saw), card { level: 6 };
            Level   => Ran(1, saw), card { level: 16 };
            Wins    => Ran(1, saw), card { level: 6, wins: 11 };
            Replace => Ran(1, saw), theirs { level: 55 };
            Delete  => Ran(2, -1),  nothing;
        };
        let row = format!("increment_by, having seen {saw}");
        check(&row, WRITES, Some(card()), body, races).await;
    }
}

#[tokio::test]
async fn field_overwritten() {
    let body: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            card.level.overwrite(7)?;
            Ok(0)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 0),  card { level: 7 };
        Level   => Ran(1, 0),  card { level: 7 };
        Wins    => Ran(1, 0),  card { level: 7, wins: 11 };
        Replace => Ran(1, 0),  theirs { level: 7 };
        Delete  => Ran(2, -1), nothing;
    };
    check("overwrite", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn field_set_to_none() {
    let body: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            card.note.set(None)?;
            Ok(0)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 0),  card { note: None };
        Note    => Ran(2, 0),  card { note: None };
        Wins    => Ran(1, 0),  card { note: None, wins: 11 };
        Delete  => Ran(2, -1), nothing;
    };
    check("set to None", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn field_set_from_none() {
    let body: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            let longer = card.note.clone().unwrap_or_default() + "!";
            card.note.set(Some(longer))?;
            Ok(0)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 0), ours { note: note("!") };
        Note    => Ran(2, 0), ours { note: note("new!") };
        Wins    => Ran(1, 0), ours { note: note("!"), wins: 11 };
    };
    check("set from None", WRITES, Some(ours()), body, races).await;
}

#[tokio::test]
async fn nested_value_changed() {
    let body: Body = |tx| {
        Box::pin(with_row(tx, |mut card| {
            numbers(&mut card.deck, 0, "fire")[1] = 8;
            Ok(0)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 0),  card { deck: deck(&[1, 8], &[1, 2]) };
        Deck    => Ran(2, 0),  card { deck: deck(&[1, 8], &[1, 2, 9]) };
        Wins    => Ran(1, 0),  card { deck: deck(&[1, 8], &[1, 2]), wins: 11 };
        Delete  => Ran(2, -1), nothing;
    };
    check("changed inside", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn created() {
    let body: Body = |tx| {
        Box::pin(async {
            tx.create(ours())?.wins += 1;
            Ok(0)
        })
    };
    let races = races! {
        Nothing => Ran(1, 0), ours { wins: 2 };
        Create  => Exists,    theirs;
    };
    check("create", WRITES, None, body, races).await;
    let races = races! {
        Nothing => Ran(1, 0), ours { wins: 2 };
        Delete  => Ran(1, 0), ours { wins: 2 };
        Create  => Exists,    theirs;
        Renew   => Exists,    card { expires: future() };
    };
    check("create over expired", WRITES, Some(expired()), body, races).await;
    let races = races! {
        Nothing => Exists,    card;
        Wins    => Exists,    card { wins: 11 };
        Delete  => Ran(1, 0), ours { wins: 2 };
    };
    check("create, there", WRITES, Some(card()), body, races).await;
}

#[tokio::test]
async fn updated_without_a_read() {
    let body: Body = |tx| {
        Box::pin(async {
            let expected = Card::patch().level(1).note(note("old"));
            tx.update::<Card>("x", expected, Card::patch().level(2).note(None))?;
            Ok(0)
        })
    };
    let races = races! {
        Nothing => Ran(1, 0), card { level: 2, note: None };
        Wins    => Ran(1, 0), card { level: 2, note: None, wins: 11 };
        Foreign => Ran(1, 0), card { level: 2, note: None };
        Level   => Lost,      card { level: 11 };
        Note    => Lost,      card { note: note("new") };
        Delete  => Lost,      nothing;
        Replace => Lost,      theirs;
    };
    check("update", WRITES, Some(card()), body, races).await;
    let races = races! {
        Nothing => Lost, nothing;
        Create  => Lost, theirs;
    };
    check("update, missing", WRITES, None, body, races).await;
    let races = races! {
        Nothing => Lost,      expired;
        Renew   => Ran(1, 0), card { level: 2, note: None, expires: future() };
    };
    check("update, expired", WRITES, Some(expired()), body, races).await;
}

#[tokio::test]
async fn created_or_put_without_a_read() {
    let body: Body = |tx| {
        Box::pin(async {
            let new = Card::patch().level(2).note(None);
            tx.create_or_put::<Card>("x", Card::patch().level(1), new)?;
            Ok(0)
        })
    };
    let races = races! {
        Nothing => Ran(1, 0), level_alone;
        Create  => Lost,      theirs;
    };
    check("create or put, missing", WRITES, None, body, races).await;
    let races = races! {
        Nothing => Ran(1, 0), card { level: 2, note: None };
        Wins    => Ran(1, 0), card { level: 2, note: None, wins: 11 };
        Foreign => Ran(1, 0), card { level: 2, note: None };
        Level   => Lost,      card { level: 11 };
        Delete  => Ran(1, 0), level_alone;
        Replace => Lost,      theirs;
    };
    check("create or put, there", WRITES, Some(card()), body, races).await;
    // Nothing of what has expired stays.
    let races = races! {
        Nothing => Ran(1, 0), level_alone;
        Delete  => Ran(1, 0), level_alone;
        Create  => Lost,      theirs;
    };
    check(
        "create or put, expired",
        WRITES,
        Some(expired()),
        body,
        races,
    )
    .await;
}

#[tokio::test]
async fn created_or_put_without_a_condition() {
    let body: Body = |tx| {
        Box::pin(async {
            tx.create_or_put::<Card>("x", Card::patch(), Card::patch().level(2))?;
            Ok(0)
        })
    };
    let races = races! {
        Nothing => Ran(1, 0), level_alone;
        Create  => Ran(1, 0), theirs { level: 2 };
    };
    check("put, missing", WRITES, None, body, races).await;
    let races = races! {
        Level   => Ran(1, 0), card { level: 2 };
        Wins    => Ran(1, 0), card { level: 2, wins: 11 };
        Delete  => Ran(1, 0), level_alone;
    };
    check("put, there", WRITES, Some(card()), body, races).await;
    let races = races! {
        Nothing => Ran(1, 0), level_alone;
        Delete  => Ran(1, 0), level_alone;
        Create  => Ran(1, 0), theirs { level: 2 };
        Renew   => Ran(1, 0), card { level: 2, expires: future() };
    };
    check("put, expired", WRITES, Some(expired()), body, races).await;
}

#[tokio::test]
async fn deleted_by_key() {
    let body: Body = |tx| {
        Box::pin(async {
            tx.delete_key::<Card>("x")?;
            Ok(0)
        })
    };
    let races = races! {
        Nothing => Ran(1, 0), nothing;
        Level   => Ran(1, 0), nothing;
        Delete  => Ran(1, 0), nothing;
        Replace => Ran(1, 0), nothing;
    };
    check("delete by key", WRITES, Some(card()), body, races).await;
    let races = races! {
        Nothing => Ran(1, 0), nothing;
        Create  => Ran(1, 0), nothing;
    };
    check("delete by key, missing", WRITES, None, body, races).await;
}

#[tokio::test]
async fn deleted_by_row() {
    let read: Body = |tx| {
        Box::pin(with_row(tx, |card| {
            let saw = *card.level;
            tx.delete(card);
            Ok(saw)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 1),  nothing;
        Level   => Ran(2, 11), nothing;
        Wins    => Ran(1, 1),  nothing;
        Replace => Ran(2, 50), nothing;
        Delete  => Ran(2, -1), nothing;
    };
    check("delete by row", WRITES, Some(card()), read, races).await;
    let unread: Body = |tx| {
        Box::pin(with_row(tx, |card| {
            tx.delete(card);
            Ok(0)
        }))
    };
    let races = races! {
        Nothing => Ran(1, 0),  nothing;
        Level   => Ran(1, 0),  nothing;
        Replace => Ran(1, 0),  nothing;
        Delete  => Ran(2, -1), nothing;
    };
    check(
        "delete by row, nothing read",
        WRITES,
        Some(card()),
        unread,
        races,
    )
    .await;
}

// The error when every attempt has conflicted.

/// The changes of the other writer in every attempt.
type OtherWriter = for<'t> fn(&'t Tx) -> BoxFuture<'t, Result<(), Error>>;

/// Runs a body that conflicts every time. The error must contain the facts, and nothing about items without conflict.
async fn check_error(
    retries: u32,
    body: Body,
    other_writer: OtherWriter,
    facts: &[&str],
    absent: &[&str],
) {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let world = World::new(capabilities, Some(&card())).await;
        for id in ["y", "z"] {
            let id = id.to_owned();
            world.create(&Card { id, ..card() }).await;
        }
        let runs = AtomicU32::new(0);
        let whole = async |tx: &Tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            let saw = body(tx).await?;
            let other = world.other.clone();
            let race = async move { other.transact(async |tx| other_writer(tx).await).await };
            tokio::spawn(race).await.unwrap()?;
            Ok::<_, Error>(saw)
        };
        let options = world.db.tx().retries(retries).label("race");
        let error = options.run(whole).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TransactionFailed, "{error}");
        assert_eq!(runs.into_inner(), retries + 1);
        let (text, attempts) = (error.to_string(), format!("attempts={}", retries + 1));
        for fact in facts.iter().chain([&attempts.as_str(), &"label=race"]) {
            assert!(text.contains(fact), "{fact}: {text}");
        }
        for fact in absent {
            assert!(!text.contains(fact), "{fact}: {text}");
        }
    }
}

/// Adds to the level of a card, with a lock.
async fn level_up(tx: &Tx, id: &str) -> Result<(), Error> {
    if let Some(mut card) = tx.get::<Card>(id).await? {
        card.level += 1;
    }
    Ok(())
}

#[tokio::test]
async fn error_contains_the_conflicting_item_and_field() {
    let body: Body = |tx| Box::pin(async { level_up(tx, "x").await.map(|()| 0) });
    let other_writer: OtherWriter = |tx| {
        Box::pin(async {
            let mut card = tx.get::<Card>("x").await?.unwrap();
            card.level += 1;
            card.wins += 1;
            Ok(())
        })
    };
    for retries in [0, 2] {
        let facts = ["model=Card", "key=\"x\"", "fields=level "];
        check_error(retries, body, other_writer, &facts, &["wins"]).await;
    }
}

#[tokio::test]
async fn error_contains_every_conflicting_item() {
    let body: Body = |tx| {
        Box::pin(async {
            assert!(tx.get::<Card>("missing").await?.is_none());
            for id in ["x", "z"] {
                level_up(tx, id).await?;
            }
            let mut card = tx.get::<Card>("y").await?.unwrap();
            let wins = *card.wins;
            card.note.set(Some(wins.to_string()))?;
            drop(tx.get::<Card>("w").await?);
            Ok(wins)
        })
    };
    let other_writer: OtherWriter = |tx| {
        Box::pin(async {
            level_up(tx, "x").await?;
            let mut card = tx.get::<Card>("y").await?.unwrap();
            card.wins += 1;
            card.note.set(Some("theirs".to_owned()))?;
            tx.delete_key::<Card>("w")?;
            let id = "missing".to_owned();
            tx.create(Card { id, ..theirs() }).map(drop)
        })
    };
    let facts = [
        "key=\"x\" fields=level",
        "key=\"y\" fields=wins,note",
        "key=\"w\"",
        "key=\"missing\"",
    ];
    check_error(0, body, other_writer, &facts, &["key=\"z\""]).await;
}

#[tokio::test]
async fn error_reports_a_deleted_item() {
    let body: Body = |tx| Box::pin(async { level_up(tx, "x").await.map(|()| 0) });
    let other_writer: OtherWriter = |tx| Box::pin(async { tx.delete_key::<Card>("x") });
    let facts = ["another writer created or deleted the item", "key=\"x\""];
    check_error(0, body, other_writer, &facts, &["fields="]).await;
}
