//! Shared models, changes and notes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use floe::changes::{Change, ChangeConsumer, Changed, Failure, Inserted, Router, consumer};
use floe::{Db, Error, Model, Tx};
use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use floe_store::table::StreamView;
use floe_store::{Item, Timestamp};

#[derive(Clone, Debug, PartialEq, Model)]
#[model(table = "players", stream)]
pub(crate) struct Player {
    #[model(key)]
    pub name: String,
    pub level: i64,
}

pub(crate) fn player(name: &str, level: i64) -> Player {
    Player {
        name: name.to_owned(),
        level,
    }
}

/// Records the calls of handlers, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.lock().push(note.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the change record with this number, from one value of a model to another.
pub(crate) fn record<M: Model>(number: u64, old: Option<&M>, new: Option<&M>) -> ChangeRecord {
    let image = |value: Option<&M>| value.map(|value| value.to_item().unwrap());
    let some = old.or(new).unwrap();
    let keys = some.key_of().unwrap().encoded().to_item();
    record_of(number, keys, image(old), image(new))
}

pub(crate) fn record_of(
    number: u64,
    keys: Item,
    old_image: Option<Item>,
    new_image: Option<Item>,
) -> ChangeRecord {
    ChangeRecord {
        event_id: format!("event-{number}"),
        kind: ChangeKind::of(old_image.as_ref(), new_image.as_ref()).unwrap(),
        size_bytes: ChangeRecord::bytes(&keys, old_image.as_ref(), new_image.as_ref()),
        keys,
        old_image,
        new_image,
        sequence: format!("{number:021}"),
        view: StreamView::NewAndOldImages,
        created: Timestamp::from_millis(1_735_689_600_000),
        identity: None,
    }
}

/// Marks a removal as an expiry.
pub(crate) fn expired(mut record: ChangeRecord) -> ChangeRecord {
    record.identity = Some(ServiceIdentity::Expiry);
    record
}

pub(crate) fn players(records: impl IntoIterator<Item = ChangeRecord>) -> Vec<Change> {
    let records = records.into_iter();
    records
        .map(|record| Change::new("players", record))
        .collect()
}

/// Creates the tables of players and of consumers.
pub(crate) async fn prepare(db: &Db) {
    db.ensure_tables(&[Player::SCHEMA]).await.unwrap();
    db.ensure_tables(&consumer::SCHEMAS).await.unwrap();
}

/// Raises the level of a player by one, or creates the player with level 1.
pub(crate) async fn play(db: &Db, name: &str) {
    let body = async |tx: &Tx| {
        let mut player = tx.get_or_create(player(name, 0)).await?;
        player.level += 1;
        Ok::<_, Error>(())
    };
    db.transact(body).await.unwrap();
}

/// The levels of each player that handlers received. Repeated levels are counted; a skipped level fails the test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    seen: Arc<Mutex<BTreeMap<String, i64>>>,
    repeated: Arc<Mutex<u64>>,
}

impl Levels {
    pub(crate) fn reached(&self, name: &str, level: i64) {
        let mut seen = self.seen.lock().unwrap();
        let last = seen.entry(name.to_owned()).or_default();
        assert!(level <= *last + 1, "{name}: {level} after {last}");
        if level == *last + 1 {
            *last = level;
        } else {
            *self.repeated.lock().unwrap() += 1;
        }
    }

    pub(crate) fn all(&self) -> BTreeMap<String, i64> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn repeated(&self) -> u64 {
        *self.repeated.lock().unwrap()
    }
}

/// A router that notes the levels of players, after `before` has succeeded.
pub(crate) fn noting<F>(
    levels: &Levels,
    before: impl Fn(String, i64) -> F + Clone + Send + Sync + 'static,
) -> Router
where
    F: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let note = {
        let levels = levels.clone();
        move |name: String, level: i64| {
            let (levels, before) = (levels.clone(), before(name.clone(), level));
            async move {
                before.await?;
                levels.reached(&name, level);
                Ok(())
            }
        }
    };
    let inserted = note.clone();
    Router::new()
        .on_inserted::<Player>(move |a: Inserted<Player>| inserted(a.value.name, a.value.level))
        .on_changed::<Player>(move |a: Changed<Player>| note(a.new.name, a.new.level))
}

pub(crate) fn consumer(db: &Db, router: Router) -> ChangeConsumer {
    ChangeConsumer::new(db, "levels", router)
}
