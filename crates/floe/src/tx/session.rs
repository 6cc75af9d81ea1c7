//! What one run of a body has read and written.
//!
//! Every item that the body touches has an entry, in the order in which it came. A row borrows the
//! transaction and hands in its report when it is dropped, so that at the end of the body all is here.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::Item;

use crate::error::{Error, ErrorKind, Result};
use crate::model::key::EncodedKey;
use crate::model::row::Report;
use crate::model::schema::Schema;

/// What a run has done so far.
#[derive(Default)]
pub(crate) struct Session {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    places: HashMap<(&'static str, EncodedKey), usize>,
    /// The body, or one of its reads, failed for a reason that may pass.
    retry: Option<Error>,
}

/// An item that the body has touched.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) schema: &'static Schema,
    pub(crate) key: EncodedKey,
    pub(crate) origin: Origin,
    /// What the rows of the item have told, in the order of their end.
    pub(crate) reports: Vec<Report>,
    /// How many rows of it are still held.
    rows: usize,
}

/// How an item came into the transaction.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// It is being read.
    Pending,
    /// It was read and is not there, or has expired.
    Missing,
    /// It was read.
    Found(Item),
    /// It is created, and must not be there.
    Created,
    /// It was read, is not there, and is created.
    Absent,
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
    pub(crate) expected: Vec<(floe_store::Name, Option<floe_store::Value>)>,
    /// The attributes to set.
    pub(crate) set: Item,
    /// The attributes to remove.
    pub(crate) remove: Vec<floe_store::Name>,
}

impl Session {
    /// Makes room for an item that is touched for the first time.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](ErrorKind::FetchedTwice) when it has been touched before.
    pub(crate) fn enter(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        origin: Origin,
    ) -> Result<usize> {
        let mut state = self.lock();
        let slot = state.entries.len();
        let place = state.places.entry((schema.table, key.clone()));
        if let std::collections::hash_map::Entry::Occupied(_) = place {
            return Err(Error::new(
                ErrorKind::FetchedTwice,
                format!(
                    "the transaction has touched this item before: model={} key={key}",
                    schema.model
                ),
            ));
        }
        place.or_insert(slot);
        state.entries.push(Entry {
            schema,
            key: key.clone(),
            origin,
            reports: Vec::new(),
            rows: 0,
        });
        Ok(slot)
    }

    /// Takes note of what a read has found.
    pub(crate) fn settle(&self, slot: usize, origin: Origin) {
        if let Some(entry) = self.lock().entries.get_mut(slot) {
            entry.origin = origin;
        }
    }

    /// Forgets an item whose read failed, so that it can be read again.
    pub(crate) fn forget(&self, slot: usize) {
        let mut state = self.lock();
        if let Some(entry) = state.entries.get(slot) {
            let place = (entry.schema.table, entry.key.clone());
            state.places.remove(&place);
        }
    }

    /// Takes note of a row that was handed out.
    pub(crate) fn hand_out(&self, slot: usize) {
        if let Some(entry) = self.lock().entries.get_mut(slot) {
            entry.rows += 1;
        }
    }

    /// Takes the report of a row that was dropped.
    pub(crate) fn hand_in(&self, slot: usize, report: Report) {
        if let Some(entry) = self.lock().entries.get_mut(slot) {
            entry.rows -= 1;
            entry.reports.push(report);
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

    /// All that was touched.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when a row was neither dropped nor returned, so that nobody
    /// knows what was done with it.
    pub(crate) fn finish(self) -> Result<Vec<Entry>> {
        let state = self.state.into_inner();
        let entries = state.unwrap_or_else(PoisonError::into_inner).entries;
        if let Some(entry) = entries.iter().find(|entry| entry.rows > 0) {
            return Err(Error::new(
                ErrorKind::InvalidUse,
                format!(
                    "a row was forgotten instead of dropped: model={} key={}",
                    entry.schema.model, entry.key
                ),
            ));
        }
        Ok(entries)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
