//! What one run of a body has read and written.
//!
//! Every item that the body touches has an entry, in the order in which it came. A row borrows the
//! transaction and hands in its report when it is dropped, so that at the end of the body all is here.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::{Item, Name, Timestamp, Value};
use tokio::sync::Notify;

use super::merge::merge;
use super::part::Part;
use super::streams::StreamEntry;
use crate::changes::outbox::OutboxMessage;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::events::sync::{self, Position};
use crate::graph::changes::Changes;
use crate::model::field::Change;
use crate::model::key::EncodedKey;
use crate::model::row::{FieldReport, Report};
use crate::model::schema::Schema;
use crate::registry::changes::Changes as RegistryChanges;

/// Up to so many items, looking through all of them is faster than a map.
const LOOK_THROUGH_MAX: usize = 8;

/// What a run has done so far.
#[derive(Default)]
pub(crate) struct Session {
    state: Mutex<State>,
    /// Told whenever a read has ended, for those who wait for the same item.
    settled: Notify,
    /// Whether an item can be got again.
    cache_rows: bool,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    /// Where each item is, once there are many.
    places: HashMap<(&'static str, EncodedKey), usize>,
    /// What the body has put into the outbox.
    messages: Vec<OutboxMessage>,
    /// The streams that the body has loaded; none where loading has failed.
    streams: Vec<Option<StreamEntry>>,
    /// What the body has read and changed in the graph.
    graph: Changes,
    /// What the body has read and changed in registries.
    registries: RegistryChanges,
    /// The body, or one of its reads, failed for a reason that may pass.
    retry: Option<Error>,
    /// Rows were used in a way that nobody can make sense of.
    misuse: Option<Error>,
    /// The run has ended.
    is_closed: bool,
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
    /// Somebody else is reading it at this moment.
    Pending,
}

/// A place for an item that is being read. Given up, if the read is.
pub(crate) struct Reservation<'s> {
    session: &'s Session,
    slot: usize,
}

impl Reservation<'_> {
    /// Takes note of what the read has found: `None` if the item is not there.
    pub(crate) fn settle(self, item: Option<Item>) -> Known {
        let origin = item.clone().map_or(Origin::Missing, Origin::Found);
        self.session.set_origin(self.slot, origin);
        Known {
            slot: self.slot,
            item,
            is_new: false,
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.session.give_up(self.slot);
        self.session.settled.notify_waiters();
    }
}

impl Session {
    pub(crate) fn new(cache_rows: bool) -> Self {
        Self {
            cache_rows,
            ..Self::default()
        }
    }

    pub(crate) const fn caches_rows(&self) -> bool {
        self.cache_rows
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
    ) -> Result<std::result::Result<Reservation<'_>, Known>> {
        loop {
            // Waiting begins before looking, so that no end of a read is missed.
            let settled = self.settled.notified();
            match self.place(schema, key)? {
                Place::Free(reservation) => return Ok(Ok(reservation)),
                Place::Known(known) => return Ok(Err(known)),
                Place::Pending => settled.await,
            }
        }
    }

    fn place(&self, schema: &'static Schema, key: &EncodedKey) -> Result<Place<'_>> {
        let mut state = self.lock_open()?;
        let Some(slot) = state.find(schema.table, key) else {
            let slot = state.push(schema, key, Origin::Pending);
            let session = self;
            return Ok(Place::Free(Reservation { session, slot }));
        };
        let Some(entry) = state.entries.get(slot).filter(|_| self.cache_rows) else {
            return Err(touched_before(schema, key));
        };
        if matches!(entry.origin, Origin::Pending) {
            return Ok(Place::Pending);
        }
        Ok(Place::Known(entry.known(slot)?))
    }

    /// Takes note of an item that was found by a query.
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
            Place::Pending => Err(touched_before(schema, key)),
        }
    }

    /// Takes note of an item that is created. One that was looked for and is not there can be.
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
        let mut state = self.lock_open()?;
        let Some(slot) = state.find(schema.table, key) else {
            return Ok(state.push(schema, key, Origin::Created(item)));
        };
        match state.entries.get_mut(slot) {
            Some(entry) if matches!(entry.origin, Origin::Missing) => {
                entry.origin = Origin::Absent(item);
                Ok(slot)
            }
            _ => Err(touched_before(schema, key)),
        }
    }

    /// Takes note of a write without a read.
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
        let mut state = self.lock_open()?;
        if state.find(schema.table, key).is_some() {
            return Err(touched_before(schema, key));
        }
        state.push(schema, key, origin);
        Ok(())
    }

    /// Takes note of a message for the outbox.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the run has ended.
    pub(crate) fn enter_message(&self, message: OutboxMessage) -> Result<()> {
        self.lock_open()?.messages.push(message);
        Ok(())
    }

    /// Takes all messages out, in their order.
    pub(crate) fn take_messages(&self) -> Vec<OutboxMessage> {
        std::mem::take(&mut self.lock().messages)
    }

    /// Takes note of a stream that is being loaded.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when it has been loaded before.
    pub(crate) fn enter_stream(&self, entry: StreamEntry) -> Result<usize> {
        let mut state = self.lock_open()?;
        let is_known = |known: &StreamEntry| known.name == entry.name && known.table == entry.table;
        if state.streams.iter().flatten().any(is_known) {
            return Err(Error::new(
                ErrorKind::FetchedTwice,
                format!(
                    "the transaction has loaded this stream before: stream={}",
                    entry.name
                ),
            ));
        }
        state.streams.push(Some(entry));
        Ok(state.streams.len() - 1)
    }

    /// Takes note of where a stream stands.
    pub(crate) fn settle_stream(&self, slot: usize, position: Option<Position>) {
        if let Some(Some(stream)) = self.lock().streams.get_mut(slot) {
            stream.position = position;
            stream.is_loaded = true;
        }
    }

    /// Forgets a stream that was not loaded after all, so that it can be loaded again.
    pub(crate) fn forget_stream(&self, slot: usize) {
        if let Some(stream) = self.lock().streams.get_mut(slot) {
            stream.take_if(|stream| !stream.is_loaded);
        }
    }

    /// Takes note of what is appended to a stream, in place of what was noted before.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the run has ended.
    pub(crate) fn change_stream(&self, slot: usize, change: sync::Change) -> Result<()> {
        if let Some(Some(stream)) = self.lock_open()?.streams.get_mut(slot) {
            stream.change = Some(change);
        }
        Ok(())
    }

    /// Looks at what was read and changed in the graph, or adds to it.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the run has ended.
    pub(crate) fn graph<T>(&self, change: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        Ok(change(&mut self.lock_open()?.graph))
    }

    /// Looks at what was read and changed in registries, or adds to it.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the run has ended.
    pub(crate) fn registry<T>(&self, change: impl FnOnce(&mut RegistryChanges) -> T) -> Result<T> {
        Ok(change(&mut self.lock_open()?.registries))
    }

    /// Takes out what other patterns than models have done: streams of which it is known where they stood, in the order
    /// in which they were loaded, the graph, and registries.
    pub(crate) fn take_parts(&self, db: &Db, now: Timestamp) -> Vec<Box<dyn Part>> {
        let mut state = self.lock();
        let streams = std::mem::take(&mut state.streams).into_iter();
        let loaded = streams.flatten().filter(|stream| stream.is_loaded);
        let mut parts: Vec<Box<dyn Part>> = loaded.map(|stream| Box::new(stream) as _).collect();
        let graph = std::mem::take(&mut state.graph).part(db, now);
        parts.extend(graph.map(|graph| Box::new(graph) as _));
        let registries = std::mem::take(&mut state.registries).part();
        parts.extend(registries.map(|registries| Box::new(registries) as _));
        parts
    }

    fn set_origin(&self, slot: usize, origin: Origin) {
        if let Some(entry) = self.lock().entries.get_mut(slot) {
            entry.origin = origin;
        }
    }

    /// Forgets an item that was not read after all, so that it can be read again.
    fn give_up(&self, slot: usize) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(slot) else {
            return;
        };
        if matches!(entry.origin, Origin::Pending) {
            entry.origin = Origin::Forgotten;
            let place = (entry.schema.table, entry.key.clone());
            state.places.remove(&place);
        }
    }

    /// Takes note of a row that is handed out. Tells how many changes of the item it has seen.
    pub(crate) fn hand_out(&self, slot: usize) -> usize {
        let mut state = self.lock();
        state.entries.get_mut(slot).map_or(0, |entry| {
            entry.rows += 1;
            entry.changes
        })
    }

    /// Takes the report of a row that was dropped, which had seen so many changes of the item.
    pub(crate) fn hand_in(&self, slot: usize, seen: usize, report: Report) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(slot) else {
            return;
        };
        entry.rows -= 1;
        if report.changes_anything() {
            if entry.changes != seen {
                let error = changed_by_two(entry);
                state.misuse.get_or_insert(error);
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

    /// Asks that the body is run again if it fails.
    pub(crate) fn ask_retry(&self, cause: Error) {
        self.lock().retry.get_or_insert(cause);
    }

    /// Why the body should run again, if something in it asked for that.
    pub(crate) fn retry_cause(&self) -> Option<Error> {
        self.lock().retry.clone()
    }

    /// Ends the run: nothing can be read or written any more.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    /// All that was touched. Nothing can be done with the session any more.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when a row is still held, so that nobody knows what will be
    /// done with it, or when two rows of an item that were held at the same time have both changed it.
    pub(crate) fn finish(&self) -> Result<Vec<Entry>> {
        let mut state = self.lock();
        state.is_closed = true;
        if let Some(misuse) = state.misuse.take() {
            return Err(misuse);
        }
        if let Some(entry) = state.entries.iter().find(|entry| entry.rows > 0) {
            return Err(Error::new(
                ErrorKind::InvalidUse,
                format!(
                    "a row was still held when the body had ended: model={} key={}",
                    entry.schema.model, entry.key
                ),
            ));
        }
        Ok(std::mem::take(&mut state.entries))
    }

    /// Refuses a row that was handed out when the run had ended: nobody would take it back. One that was
    /// handed out before is noticed by [`finish`](Self::finish).
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the run has ended.
    pub(crate) fn check_open(&self) -> Result<()> {
        self.lock_open().map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_open(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        if state.is_closed {
            return Err(Error::new(
                ErrorKind::InvalidUse,
                "the transaction has ended; nothing can be read or written in it any more",
            ));
        }
        Ok(state)
    }
}

impl State {
    fn find(&self, table: &'static str, key: &EncodedKey) -> Option<usize> {
        if self.places.is_empty() {
            return self.entries.iter().position(|entry| {
                entry.key == *key
                    && entry.schema.table == table
                    && !matches!(entry.origin, Origin::Forgotten)
            });
        }
        self.places.get(&(table, key.clone())).copied()
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
            let alive = entries.filter(|(_, entry)| !matches!(entry.origin, Origin::Forgotten));
            self.places = alive
                .map(|(slot, entry)| ((entry.schema.table, entry.key.clone()), slot))
                .collect();
        } else if !self.places.is_empty() {
            self.places.insert((schema.table, key.clone()), slot);
        }
        slot
    }
}

impl Entry {
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
        let changed = self
            .fields
            .iter()
            .filter(|field| field.change != Change::None);
        for field in changed {
            match field.value.clone()? {
                Some(value) => item.insert(field.attribute, value),
                None => item.remove(field.attribute),
            };
        }
        Ok(item)
    }
}

fn touched_before(schema: &Schema, key: &EncodedKey) -> Error {
    Error::new(
        ErrorKind::FetchedTwice,
        format!(
            "the transaction has touched this item before: model={} key={key}",
            schema.model
        ),
    )
}

fn changed_by_two(entry: &Entry) -> Error {
    Error::new(
        ErrorKind::InvalidUse,
        format!(
            "two rows of one item were held at the same time and both changed it; drop the first \
             before getting it again: model={} key={}",
            entry.schema.model, entry.key
        ),
    )
}

#[cfg(test)]
mod tests;
