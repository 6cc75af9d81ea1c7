//! Tracks writes, to keep earlier versions of items.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use floe_store::op::GetItem;
use floe_store::{BoxFuture, Item, Result, TableDef};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};

use super::FaultEngine;
use super::control::Attempt;
use super::random;
use super::versions::{Change, Moment, VersionHistory};
use crate::lock::lock;

/// The number of locks. Writes of items that share a lock are serialised.
const LOCKS: usize = 64;

/// What the wrapper knows about tables and their items.
pub(super) struct WriteTracker {
    definitions: Mutex<HashMap<String, Arc<TableDef>>>,
    /// Incremented by every change of a table, so that no outdated definition is cached.
    epoch: AtomicU64,
    locks: Vec<AsyncMutex<()>>,
    history: Mutex<VersionHistory>,
}

impl Default for WriteTracker {
    fn default() -> Self {
        Self {
            definitions: Mutex::default(),
            epoch: AtomicU64::new(0),
            locks: (0..LOCKS).map(|_| AsyncMutex::default()).collect(),
            history: Mutex::default(),
        }
    }
}

impl WriteTracker {
    pub(super) fn history(&self) -> MutexGuard<'_, VersionHistory> {
        lock(&self.history)
    }

    /// Called after a table was changed.
    pub(super) fn table_changed(&self, name: &str) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.definitions().remove(name);
    }

    /// Called after a table was deleted or created again.
    pub(super) fn table_replaced(&self, name: &str) {
        self.table_changed(name);
        self.history().discard_table(name);
    }

    fn definitions(&self) -> MutexGuard<'_, HashMap<String, Arc<TableDef>>> {
        lock(&self.definitions)
    }

    /// Blocks other writes of these items. Locks are acquired in ascending order, so two writers never deadlock.
    async fn lock(&self, targets: &[(String, Item)]) -> Vec<AsyncMutexGuard<'_, ()>> {
        let lock_of = |(table, key): &(String, Item)| {
            let hash = random::hash_text(&format!("{table} {key:?}"));
            hash.checked_rem(LOCKS as u64).unwrap_or(0)
        };
        let mut indexes: Vec<u64> = targets.iter().map(lock_of).collect();
        indexes.sort_unstable();
        indexes.dedup();
        let mut guards = Vec::with_capacity(indexes.len());
        for (at, lock) in (0..).zip(&self.locks) {
            if indexes.contains(&at) {
                guards.push(lock.lock().await);
            }
        }
        guards
    }
}

impl FaultEngine {
    /// The definition of a table, if the table exists.
    pub(super) async fn definition(&self, name: &str) -> Option<Arc<TableDef>> {
        if let Some(definition) = self.tracker.definitions().get(name) {
            return Some(Arc::clone(definition));
        }
        let epoch = self.tracker.epoch.load(Ordering::SeqCst);
        // If the table cannot be described, the operation itself fails.
        let description = self.inner.describe_table(name.to_owned()).await.ok()?;
        let definition = Arc::new(description.definition);
        let mut definitions = self.tracker.definitions();
        if self.tracker.epoch.load(Ordering::SeqCst) == epoch {
            definitions.insert(name.to_owned(), Arc::clone(&definition));
        }
        Some(definition)
    }

    /// The definitions of the tables of a batch; `None` if one of them does not exist.
    pub(super) async fn definitions<T>(
        &self,
        requests: &BTreeMap<String, T>,
    ) -> Option<HashMap<String, Arc<TableDef>>> {
        let mut definitions = HashMap::new();
        for name in requests.keys() {
            definitions.insert(name.clone(), self.definition(name).await?);
        }
        Some(definitions)
    }

    /// The current moment of the operation with this number.
    pub(super) fn moment(&self, number: u64) -> Moment {
        Moment {
            number,
            time: self.inner.now(),
        }
    }

    /// Runs a write and records the changes of these items.
    pub(super) async fn track_write<T>(
        &self,
        attempt: &Attempt<'_>,
        targets: Vec<(String, Item)>,
        write: BoxFuture<'_, Result<T>>,
    ) -> Result<T> {
        if !attempt.faults().keeps_versions() {
            return write.await;
        }
        let _guards = self.tracker.lock(&targets).await;
        let mut before = Vec::with_capacity(targets.len());
        for (table, key) in &targets {
            before.push(self.read_item(table, key).await);
        }
        let response = write.await;
        if response
            .as_ref()
            .is_err_and(|error| !error.may_have_applied())
        {
            return response;
        }
        for ((table, key), before) in targets.into_iter().zip(before) {
            let after = self.read_item(&table, &key).await;
            // The next operation is the first that can see the change.
            let since = self.moment(self.control.operations() + 1);
            // A version that could not be read is unknown and never returned.
            if let (Ok(before), Ok(after)) = (before, after) {
                let change = Change { key, before, after };
                let mut history = self.tracker.history();
                history.record(attempt.faults(), &table, change, attempt.number(), since);
            }
        }
        response
    }

    async fn read_item(&self, table: &str, key: &Item) -> Result<Option<Item>> {
        let get = GetItem::new(table, key.clone());
        Ok(self.inner.get_item(get).await?.item)
    }
}
