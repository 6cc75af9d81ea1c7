//! What a run of a body has read and changed of models.
//!
//! Every item that the body touches has an entry, in the order in which it came. A row borrows the
//! transaction and hands in its report when it is dropped, so that at the end of the body all is here.

mod merge;

use std::collections::HashMap;
use std::sync::Arc;

use floe_store::{Item, Name, Value};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::field::Change;
use super::keys::EncodedKey;
use super::report::{FieldReport, Report};
use super::schema::Schema;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;
use crate::tx::session::Session;
use merge::merge;

/// Up to so many items, looking through all of them is faster than a map.
const LOOK_THROUGH_MAX: usize = 8;

/// What a run has read and changed of models.
#[derive(Default)]
pub(crate) struct ModelChanges {
    entries: Vec<Entry>,
    /// Where each item is, once there are many.
    places: HashMap<(&'static str, EncodedKey), usize>,
    /// Rows were used in a way that makes no sense.
    misuse: Option<Error>,
    /// Notified whenever a read has ended, for those that wait for the same item.
    settled: Arc<Notify>,
}

/// An item that the body has touched.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) schema: &'static Schema,
    pub(crate) key: EncodedKey,
    pub(crate) origin: Origin,
    /// What was done with its fields, each field once.
    pub(crate) fields: Vec<FieldReport>,
    /// It is to be removed.
    pub(crate) is_deleted: bool,
    /// How many rows have changed it.
    changes: usize,
    /// How many rows of it are still held.
    rows: usize,
}

/// How an item came into the transaction.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// It is being read.
    Pending,
    /// Its read failed or was given up: nothing is known of it.
    Forgotten,
    /// It was read and is not there, or has expired.
    Missing,
    /// It was read.
    Found(Item),
    /// It is created like this, and must not be there.
    Created(Item),
    /// It was read, is not there, and is created like this.
    Absent(Item),
    /// It is changed without being read.
    Update(Blind),
    /// It is created or changed without being read.
    Put(Blind),
    /// It is removed without being read.
    Delete,
}

/// A write without a read: what is expected and what is to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blind {
    /// The attributes that must be as given.
    pub(crate) expected: Vec<(Name, Option<Value>)>,
    /// The attributes to set.
    pub(crate) set: Item,
    /// The attributes to remove.
    pub(crate) remove: Vec<Name>,
}

/// An item as the transaction knows it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) slot: usize,
    /// With all that the transaction has changed so far; `None` if it is not there.
    pub(crate) item: Option<Item>,
    /// Whether the transaction creates it.
    pub(crate) is_new: bool,
}

/// What a read finds in the session.
enum Place<'s> {
    /// Nothing: it has to be read, into this place.
    Free(Reservation<'s>),
    Known(Known),
    /// It is being read at this moment.
    Pending(OwnedNotified),
}

/// A place for an item that is being read. Given up, if the read is.
pub(crate) struct Reservation<'s> {
    session: &'s Session,
    slot: usize,
    /// Of the changes in which the place is, which the end of the run takes out of the session.
    settled: Arc<Notify>,
}

impl Reservation<'_> {
    /// Records what the read has found: `None` if the item is not there.
    pub(crate) fn settle(self, item: Option<Item>) -> Known {
        let origin = item.clone().map_or(Origin::Missing, Origin::Found);
        self.session.settle(|changes: &mut ModelChanges| {
            if let Some(entry) = changes.entries.get_mut(self.slot) {
                entry.origin = origin;
            }
        });
        Known {
            slot: self.slot,
            item,
            is_new: false,
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let slot = self.slot;
        self.session
            .settle(|changes: &mut ModelChanges| changes.give_up(slot));
        self.settled.notify_waiters();
    }
}

/// The items of models in a session.
#[derive(Clone, Copy)]
pub(crate) struct Items<'s> {
    session: &'s Session,
    /// Whether an item can be got again.
    pub(crate) caches_rows: bool,
}

impl<'s> Items<'s> {
    pub(crate) fn of(tx: &'s Tx) -> Self {
        Self {
            session: tx.session(),
            caches_rows: tx.caches_rows(),
        }
    }

    /// A place for an item that is to be read, or what is known of it.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when it has been touched before and rows are not cached.
    pub(crate) async fn reserve(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
    ) -> Result<std::result::Result<Reservation<'s>, Known>> {
        loop {
            match self.place(schema, key)? {
                Place::Free(reservation) => return Ok(Ok(reservation)),
                Place::Known(known) => return Ok(Err(known)),
                Place::Pending(settled) => settled.await,
            }
        }
    }

    fn place(&self, schema: &'static Schema, key: &EncodedKey) -> Result<Place<'s>> {
        let session = self.session;
        session.with(|changes: &mut ModelChanges| {
            let Some(slot) = changes.find(schema.table, key) else {
                let slot = changes.push(schema, key, Origin::Pending);
                return Ok(Place::Free(Reservation {
                    session,
                    slot,
                    settled: changes.settled.clone(),
                }));
            };
            let Some(entry) = changes.entries.get(slot).filter(|_| self.caches_rows) else {
                return Err(touched_before(schema, key));
            };
            if matches!(entry.origin, Origin::Pending) {
                // Waiting begins before the read can end, so that its end is not missed.
                return Ok(Place::Pending(changes.settled.clone().notified_owned()));
            }
            Ok(Place::Known(entry.known(slot)?))
        })?
    }

    /// Records an item that was found by a query.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when it has been touched before and rows are not cached.
    pub(crate) fn enter_found(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        item: &Item,
    ) -> Result<Known> {
        match self.place(schema, key)? {
            Place::Free(reservation) => Ok(reservation.settle(Some(item.clone()))),
            Place::Known(known) => Ok(known),
            Place::Pending(_) => Err(touched_before(schema, key)),
        }
    }

    /// Records an item that is created. One that was looked for and is not there can be.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when it has been touched before in another way.
    pub(crate) fn enter_new(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        item: Item,
    ) -> Result<usize> {
        self.session.with(|changes: &mut ModelChanges| {
            let Some(slot) = changes.find(schema.table, key) else {
                return Ok(changes.push(schema, key, Origin::Created(item)));
            };
            match changes.entries.get_mut(slot) {
                Some(entry) if matches!(entry.origin, Origin::Missing) => {
                    entry.origin = Origin::Absent(item);
                    Ok(slot)
                }
                _ => Err(touched_before(schema, key)),
            }
        })?
    }

    /// Records a write without a read.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when the item has been touched before.
    pub(crate) fn enter_unread(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        origin: Origin,
    ) -> Result<()> {
        self.session.with(|changes: &mut ModelChanges| {
            if changes.find(schema.table, key).is_some() {
                return Err(touched_before(schema, key));
            }
            changes.push(schema, key, origin);
            Ok(())
        })?
    }

    /// Records a row that is handed out, and returns how many changes of the item it has seen.
    pub(crate) fn hand_out(&self, slot: usize) -> usize {
        self.session.settle(|changes: &mut ModelChanges| {
            changes.entries.get_mut(slot).map_or(0, |entry| {
                entry.rows += 1;
                entry.changes
            })
        })
    }

    /// Takes the report of a row that was dropped, which had seen so many changes of the item.
    pub(crate) fn hand_in(&self, slot: usize, seen: usize, report: Report) {
        self.session
            .settle(|changes: &mut ModelChanges| changes.hand_in(slot, seen, report));
    }
}

impl ModelChanges {
    /// All that was touched.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when a row is still held, so that it is not known what will be
    /// done with it, or when two rows of an item that were held at the same time have both changed it.
    pub(super) fn finish(self) -> Result<Vec<Entry>> {
        if let Some(misuse) = self.misuse {
            return Err(misuse);
        }
        if let Some(entry) = self.entries.iter().find(|entry| entry.rows > 0) {
            return Err(Error::invalid_use(format!(
                "a row was still held when the body had ended: model={} key={}",
                entry.schema.model, entry.key
            )));
        }
        Ok(self.entries)
    }

    fn hand_in(&mut self, slot: usize, seen: usize, report: Report) {
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        entry.rows -= 1;
        if report.changes_anything() {
            if entry.changes != seen {
                let error = changed_by_two(entry);
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

    /// Forgets an item that was not read after all, so that it can be read again.
    fn give_up(&mut self, slot: usize) {
        let Some(entry) = self.entries.get_mut(slot) else {
            return;
        };
        if matches!(entry.origin, Origin::Pending) {
            entry.origin = Origin::Forgotten;
            self.places.remove(&entry.place());
        }
    }

    fn find(&self, table: &'static str, key: &EncodedKey) -> Option<usize> {
        if !self.places.is_empty() {
            return self.places.get(&(table, key.clone())).copied();
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
        if self.places.is_empty() && slot >= LOOK_THROUGH_MAX {
            let entries = self.entries.iter().enumerate();
            let known = entries.filter(|(_, entry)| entry.is_known());
            self.places = known.map(|(slot, entry)| (entry.place(), slot)).collect();
        } else if !self.places.is_empty() {
            self.places.insert((schema.table, key.clone()), slot);
        }
        slot
    }
}

impl Entry {
    fn place(&self) -> (&'static str, EncodedKey) {
        (self.schema.table, self.key.clone())
    }

    const fn is_known(&self) -> bool {
        !matches!(self.origin, Origin::Forgotten)
    }

    /// What was done to its fields.
    pub(crate) fn changed_fields(&self) -> impl Iterator<Item = &FieldReport> {
        let fields = self.fields.iter();
        fields.filter(|field| field.change != Change::None)
    }

    fn known(&self, slot: usize) -> Result<Known> {
        let (item, is_new) = match &self.origin {
            _ if self.is_deleted => (None, false),
            Origin::Missing => (None, false),
            Origin::Found(item) => (Some(self.changed(item)?), false),
            Origin::Created(item) | Origin::Absent(item) => (Some(self.changed(item)?), true),
            _ => return Err(touched_before(self.schema, &self.key)),
        };
        Ok(Known { slot, item, is_new })
    }

    /// The item with all that was done to its fields.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when a field was left with a value that is not allowed.
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

fn touched_before(schema: &Schema, key: &EncodedKey) -> Error {
    let what = "the transaction has touched this item before";
    let message = format!("{what}: model={} key={key}", schema.model);
    Error::new(ErrorKind::FetchedTwice, message)
}

fn changed_by_two(entry: &Entry) -> Error {
    Error::invalid_use(format!(
        "two rows of one item were held at the same time and both changed it; drop the first \
         before getting it again: model={} key={}",
        entry.schema.model, entry.key
    ))
}

#[cfg(test)]
mod tests;
