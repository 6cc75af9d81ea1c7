//! What a body has read and changed of models.
//!
//! Every item that the body uses has an entry, in the order of first use. A row borrows the transaction and reports its
//! reads and changes when it is dropped, so that after the body everything is recorded here.

mod merge;

use std::collections::HashMap;
use std::sync::Arc;

use floe_store::{Item, Name, Value};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::field::Change;
use super::keys::EncodedKey;
use super::report::{FieldReport, RowReport};
use super::schema::Schema;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;
use crate::tx::session::Session;
use merge::merge;

/// Up to this number of items, a linear search is faster than a map.
const LINEAR_SEARCH_MAX: usize = 8;

/// The reads and changes of models in one attempt.
#[derive(Default)]
pub(crate) struct ModelChanges {
    entries: Vec<Entry>,
    /// The slot of each item, once there are many.
    slots: HashMap<(&'static str, EncodedKey), usize>,
    /// The first incorrect use of rows.
    misuse: Option<Error>,
    /// Notified when a read has ended, for other reads that wait for the same item.
    read_ended: Arc<Notify>,
}

/// An item that the body has used.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) schema: &'static Schema,
    pub(crate) key: EncodedKey,
    pub(crate) origin: Origin,
    /// The reads and changes of its fields, each field once.
    pub(crate) fields: Vec<FieldReport>,
    /// Whether it is to be deleted.
    pub(crate) is_deleted: bool,
    /// How many rows have changed it.
    changes: usize,
    /// How many rows of it are still alive.
    rows: usize,
}

/// How an item came into the transaction.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// It is being read.
    Pending,
    /// Its read failed or was cancelled.
    Abandoned,
    /// It was read and does not exist, or has expired.
    Missing,
    /// It was read.
    Found(Item),
    /// It is created with these attributes, and must not exist.
    Created(Item),
    /// It was read, does not exist, and is created with these attributes.
    CreatedAfterMissing(Item),
    /// It is updated without a read.
    Update(BlindWrite),
    /// It is created or updated without a read.
    Put(BlindWrite),
    /// It is deleted without a read.
    Delete,
    /// It is deleted without a read, and then created with these attributes.
    CreatedAfterDelete(Item),
    /// It was read, is deleted, and is created again.
    Replaced(Box<Replaced>),
}

/// An item that is deleted and created again.
#[derive(Clone, Debug)]
pub(crate) struct Replaced {
    /// The item as it was read.
    pub(crate) read: Item,
    /// The reads and changes of its fields before it was deleted.
    pub(crate) fields: Vec<FieldReport>,
    /// The new item.
    pub(crate) item: Item,
}

/// A write without a read.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlindWrite {
    /// The expected attributes; absent where `None`.
    pub(crate) expected: Vec<(Name, Option<Value>)>,
    /// The attributes to set.
    pub(crate) set: Item,
    /// The attributes to remove.
    pub(crate) remove: Vec<Name>,
}

/// An item as the transaction sees it.
#[derive(Clone, Debug)]
pub(crate) struct ItemState {
    pub(crate) slot: usize,
    /// The item with the changes of the transaction so far; `None` if it does not exist.
    pub(crate) item: Option<Item>,
    /// Whether the transaction creates it.
    pub(crate) is_new: bool,
}

/// An item that the transaction has written.
#[derive(Clone, Debug)]
pub(crate) struct WrittenItem {
    pub(crate) key: EncodedKey,
    /// The item with all changes; `None` if it is not known, because it was written without a read.
    pub(crate) item: Option<Item>,
}

/// The state of an item in the session when a read begins.
pub(crate) enum ReadState<'s> {
    /// It is unknown and must be read into this slot.
    Vacant(Reservation<'s>),
    Known(ItemState),
    /// Another read of it is in progress.
    Pending(OwnedNotified),
}

/// A slot for an item that is being read. Dropping it abandons the read.
pub(crate) struct Reservation<'s> {
    session: &'s Session,
    slot: usize,
    /// From the changes that contain the slot, which are removed from the session when the body ends.
    read_ended: Arc<Notify>,
}

impl Reservation<'_> {
    /// Records the result of the read: `None` if the item does not exist. If another read of the item was faster, returns
    /// the item with the changes since then.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if a field was changed to a value that is not allowed.
    pub(crate) fn fill(self, item: Option<Item>) -> Result<ItemState> {
        let slot = self.slot;
        let read = |changes: &mut ModelChanges| changes.record_read(slot, item);
        self.session.settle(read)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let slot = self.slot;
        self.session
            .settle(|changes: &mut ModelChanges| changes.abandon(slot));
        self.read_ended.notify_waiters();
    }
}

/// The items of models in a session.
#[derive(Clone, Copy)]
pub(crate) struct Items<'s> {
    session: &'s Session,
    /// Whether an item can be fetched more than once.
    pub(crate) caches_rows: bool,
}

impl<'s> Items<'s> {
    pub(crate) fn of(tx: &'s Tx) -> Self {
        Self {
            session: tx.session(),
            caches_rows: tx.caches_rows(),
        }
    }

    /// Reserves a slot for an item to read, or returns the item if it is known. Waits while another read is in progress.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) if it was used before and rows are not cached.
    pub(crate) async fn reserve(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
    ) -> Result<std::result::Result<Reservation<'s>, ItemState>> {
        loop {
            match self.read_state(schema, key)? {
                ReadState::Vacant(reservation) => return Ok(Ok(reservation)),
                ReadState::Known(known) => return Ok(Err(known)),
                ReadState::Pending(read_ended) => read_ended.await,
            }
        }
    }

    /// Records the result of a read that was joined by this one.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    pub(crate) fn record_joined(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        item: Option<Item>,
    ) -> Result<ItemState> {
        self.session.with(|changes: &mut ModelChanges| {
            let found = changes.find(schema.table, key);
            let slot = found.unwrap_or_else(|| changes.push(schema, key, Origin::Pending));
            changes.record_read(slot, item)
        })?
    }

    /// The state of an item that is to be read.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    pub(crate) fn read_state(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
    ) -> Result<ReadState<'s>> {
        let session = self.session;
        session.with(|changes: &mut ModelChanges| {
            let Some(slot) = changes.find(schema.table, key) else {
                let slot = changes.push(schema, key, Origin::Pending);
                return Ok(ReadState::Vacant(Reservation {
                    session,
                    slot,
                    read_ended: changes.read_ended.clone(),
                }));
            };
            let Some(entry) = changes.entries.get(slot).filter(|_| self.caches_rows) else {
                return Err(already_used(schema, key));
            };
            if matches!(entry.origin, Origin::Pending) {
                // Register while the session is locked, so that the end of the read is not missed.
                return Ok(ReadState::Pending(
                    changes.read_ended.clone().notified_owned(),
                ));
            }
            Ok(ReadState::Known(entry.known(slot)?))
        })?
    }

    /// Records an item that was found by a query.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) if it was used before and rows are not cached.
    pub(crate) fn record_found(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        item: &Item,
    ) -> Result<ItemState> {
        match self.read_state(schema, key)? {
            ReadState::Vacant(reservation) => reservation.fill(Some(item.clone())),
            ReadState::Known(known) => Ok(known),
            ReadState::Pending(_) => Err(already_used(schema, key)),
        }
    }

    /// Records an item that is created. The transaction may have used it before if it does not exist, or was deleted.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) if it was used before in another way.
    pub(crate) fn record_new(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        item: Item,
    ) -> Result<usize> {
        self.session.with(|changes: &mut ModelChanges| {
            let Some(slot) = changes.find(schema.table, key) else {
                return Ok(changes.push(schema, key, Origin::Created(item)));
            };
            let entry = changes.entries.get_mut(slot);
            if entry.is_some_and(|entry| entry.create(item)) {
                Ok(slot)
            } else {
                Err(already_used(schema, key))
            }
        })?
    }

    /// Records a blind write.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) if the item was used before.
    pub(crate) fn record_blind(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        origin: Origin,
    ) -> Result<()> {
        self.session.with(|changes: &mut ModelChanges| {
            if changes.find(schema.table, key).is_some() {
                return Err(already_used(schema, key));
            }
            changes.push(schema, key, origin);
            Ok(())
        })?
    }

    /// The items of a table that the transaction has created or changed. Changes count once their row is dropped.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the body has ended, [`InvalidField`](ErrorKind::InvalidField) if a changed
    /// field has a value that is not allowed.
    pub(crate) fn written(&self, table: &str) -> Result<Vec<WrittenItem>> {
        self.session.with(|changes: &mut ModelChanges| {
            let entries = changes.entries.iter();
            let entries = entries.filter(|entry| entry.schema.table == table);
            entries
                .filter_map(|entry| entry.written().transpose())
                .collect()
        })?
    }

    /// Counts a new row, and returns how many changes of the item it contains.
    pub(crate) fn row_created(&self, slot: usize) -> usize {
        self.session.settle(|changes: &mut ModelChanges| {
            changes.entries.get_mut(slot).map_or(0, |entry| {
                entry.rows += 1;
                entry.changes
            })
        })
    }

    /// Records the report of a dropped row, which was created after `seen` changes of the item.
    pub(crate) fn row_dropped(&self, slot: usize, seen: usize, report: RowReport) {
        self.session
            .settle(|changes: &mut ModelChanges| changes.row_dropped(slot, seen, report));
    }
}

impl ModelChanges {
    /// Returns all used items.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if a row is still alive and could still change, or if two rows of an item that
    /// were alive at the same time have both changed it.
    pub(super) fn finish(self) -> Result<Vec<Entry>> {
        if let Some(misuse) = self.misuse {
            return Err(misuse);
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.rows > 0) {
            return Err(Error::invalid_use(format!(
                "a row was still held when the body ended: model={} key={}",
                entry.schema.model, entry.key
            )));
        }
        Ok(self.entries)
    }

    fn row_dropped(&mut self, slot: usize, seen: usize, report: RowReport) {
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        entry.rows -= 1;
        if report.has_changes() {
            if entry.changes != seen {
                let error = concurrent_row_changes(entry);
                self.misuse.get_or_insert(error);
                return;
            }
            entry.changes += 1;
        }
        entry.is_deleted |= report.is_deleted;
        if entry.fields.is_empty() {
            entry.fields = report.fields;
            return;
        }
        for field in report.fields {
            merge(&mut entry.fields, field);
        }
    }

    /// Records what was read, unless another read of the item was faster.
    fn record_read(&mut self, slot: usize, item: Option<Item>) -> Result<ItemState> {
        let Some(entry) = self.entries.get_mut(slot) else {
            let is_new = false;
            return Ok(ItemState { slot, item, is_new });
        };
        if matches!(entry.origin, Origin::Pending) {
            entry.origin = item.clone().map_or(Origin::Missing, Origin::Found);
            let is_new = false;
            return Ok(ItemState { slot, item, is_new });
        }
        entry.known(slot)
    }

    /// Abandons a slot whose read did not complete, so that the item can be read again.
    fn abandon(&mut self, slot: usize) {
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        if matches!(entry.origin, Origin::Pending) {
            entry.origin = Origin::Abandoned;
            self.slots.remove(&entry.table_and_key());
        }
    }

    fn find(&self, table: &'static str, key: &EncodedKey) -> Option<usize> {
        if !self.slots.is_empty() {
            return self.slots.get(&(table, key.clone())).copied();
        }
        let is_it = |entry: &Entry| entry.key == *key && entry.schema.table == table;
        let mut entries = self.entries.iter();
        entries.position(|entry| is_it(entry) && entry.is_known())
    }

    fn push(&mut self, schema: &'static Schema, key: &EncodedKey, origin: Origin) -> usize {
        let slot = self.entries.len();
        self.entries.push(Entry {
            schema,
            key: key.clone(),
            origin,
            fields: Vec::new(),
            is_deleted: false,
            changes: 0,
            rows: 0,
        });
        if self.slots.is_empty() && slot >= LINEAR_SEARCH_MAX {
            let entries = self.entries.iter().enumerate();
            let known = entries.filter(|(_, entry)| entry.is_known());
            self.slots = known
                .map(|(slot, entry)| (entry.table_and_key(), slot))
                .collect();
        } else if !self.slots.is_empty() {
            self.slots.insert((schema.table, key.clone()), slot);
        }
        slot
    }
}

impl Entry {
    fn table_and_key(&self) -> (&'static str, EncodedKey) {
        (self.schema.table, self.key.clone())
    }

    const fn is_known(&self) -> bool {
        !matches!(self.origin, Origin::Abandoned)
    }

    /// Creates the item, if it does not exist for the transaction and no row of it is alive. Returns whether it does so.
    fn create(&mut self, item: Item) -> bool {
        let is_gone = self.is_deleted && self.rows == 0;
        match &mut self.origin {
            Origin::Missing => self.origin = Origin::CreatedAfterMissing(item),
            Origin::Delete => self.origin = Origin::CreatedAfterDelete(item),
            Origin::Created(new)
            | Origin::CreatedAfterMissing(new)
            | Origin::CreatedAfterDelete(new)
                if is_gone =>
            {
                *new = item;
            }
            Origin::Replaced(replaced) if is_gone => replaced.item = item,
            Origin::Found(read) if is_gone => {
                self.origin = Origin::Replaced(Box::new(Replaced {
                    read: std::mem::take(read),
                    fields: std::mem::take(&mut self.fields),
                    item,
                }));
            }
            _ => return false,
        }
        self.fields.clear();
        self.is_deleted = false;
        true
    }

    /// The fields that were changed.
    pub(crate) fn changed_fields(&self) -> impl Iterator<Item = &FieldReport> {
        let fields = self.fields.iter();
        fields.filter(|field| field.change != Change::None)
    }

    /// The item, if the transaction has created or changed it.
    fn written(&self) -> Result<Option<WrittenItem>> {
        let item = match &self.origin {
            _ if self.is_deleted => return Ok(None),
            Origin::Found(_) if self.changed_fields().next().is_none() => return Ok(None),
            Origin::Pending | Origin::Abandoned | Origin::Missing | Origin::Delete => {
                return Ok(None);
            }
            Origin::Update(_) | Origin::Put(_) => None,
            Origin::Found(item)
            | Origin::Created(item)
            | Origin::CreatedAfterMissing(item)
            | Origin::CreatedAfterDelete(item) => Some(self.changed(item)?),
            Origin::Replaced(replaced) => Some(self.changed(&replaced.item)?),
        };
        let key = self.key.clone();
        Ok(Some(WrittenItem { key, item }))
    }

    fn known(&self, slot: usize) -> Result<ItemState> {
        let (item, is_new) = match &self.origin {
            _ if self.is_deleted => (None, false),
            Origin::Missing => (None, false),
            Origin::Found(item) => (Some(self.changed(item)?), false),
            Origin::Created(item)
            | Origin::CreatedAfterMissing(item)
            | Origin::CreatedAfterDelete(item) => (Some(self.changed(item)?), true),
            Origin::Replaced(replaced) => (Some(self.changed(&replaced.item)?), true),
            _ => return Err(already_used(self.schema, &self.key)),
        };
        Ok(ItemState { slot, item, is_new })
    }

    /// The item with all changes of its fields.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if a changed field has a value that is not allowed.
    pub(crate) fn changed(&self, item: &Item) -> Result<Item> {
        let mut item = item.clone();
        for field in self.changed_fields() {
            match field.value.clone()? {
                Some(value) => item.insert(field.attribute, value),
                None => item.remove(field.attribute),
            };
        }
        Ok(item)
    }
}

fn already_used(schema: &Schema, key: &EncodedKey) -> Error {
    let what = "the transaction has already used this item";
    let message = format!("{what}: model={} key={key}", schema.model);
    Error::new(ErrorKind::FetchedTwice, message)
}

fn concurrent_row_changes(entry: &Entry) -> Error {
    Error::invalid_use(format!(
        "two rows of one item were held at the same time and both changed it; drop the first \
         before getting it again: model={} key={}",
        entry.schema.model, entry.key
    ))
}

#[cfg(test)]
mod tests;
