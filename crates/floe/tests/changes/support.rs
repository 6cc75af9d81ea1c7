//! Models, changes and notes that the tests share.

use std::sync::{Arc, Mutex, PoisonError};

use floe::Model;
use floe::changes::Change;
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

/// What handlers were called for, in their order.
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

/// The record of a change from one value of a model to another, with this number.
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

/// The same, where the item has expired.
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
