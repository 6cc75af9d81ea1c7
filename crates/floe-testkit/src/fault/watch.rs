//! Watches writes pass by, so that the past is known.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use floe_store::op::GetItem;
use floe_store::{BoxFuture, Item, Result, TableDef};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard};

use super::FaultEngine;
use super::control::Attempt;
use super::dice;
use super::past::{Change, Moment, Past};
use crate::lock::lock;

/// Writes of items that share one of so many locks pass one at a time.
const LOCKS: usize = 64;

/// What the wrapper knows of the tables and their items.
pub(super) struct Watch {
    definitions: Mutex<HashMap<String, Arc<TableDef>>>,
    /// Grows whenever a table changes, so that no definition from before is kept.
    epoch: AtomicU64,
    locks: Vec<AsyncMutex<()>>,
    past: Mutex<Past>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            definitions: Mutex::default(),
            epoch: AtomicU64::new(0),
            locks: (0..LOCKS).map(|_| AsyncMutex::default()).collect(),
            past: Mutex::default(),
        }
    }
}

impl Watch {
    pub(super) fn past(&self) -> MutexGuard<'_, Past> {
        lock(&self.past)
    }

    /// A table was changed.
    pub(super) fn table_changed(&self, name: &str) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.definitions().remove(name);
    }

    /// A table was deleted, or made anew.
    pub(super) fn table_replaced(&self, name: &str) {
        self.table_changed(name);
        self.past().forget(name);
    }

    fn definitions(&self) -> MutexGuard<'_, HashMap<String, Arc<TableDef>>> {
        lock(&self.definitions)
    }

    /// Keeps other writes of these items out. Locks are taken in their order, so that two writers never
    /// wait for each other.
    async fn lock(&self, targets: &[(String, Item)]) -> Vec<AsyncMutexGuard<'_, ()>> {
        let lock_of = |(table, key): &(String, Item)| {
            let hash = dice::of_text(&format!("{table} {key:?}"));
            hash.checked_rem(LOCKS as u64).unwrap_or(0)
        };
        let mut wanted: Vec<u64> = targets.iter().map(lock_of).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut guards = Vec::with_capacity(wanted.len());
        for (at, lock) in (0..).zip(&self.locks) {
            if wanted.contains(&at) {
                guards.push(lock.lock().await);
            }
        }
        guards
    }
}

impl FaultEngine {
    /// The definition of a table, if there is such a table.
    pub(super) async fn definition(&self, name: &str) -> Option<Arc<TableDef>> {
        if let Some(definition) = self.watch.definitions().get(name) {
            return Some(Arc::clone(definition));
        }
        let epoch = self.watch.epoch.load(Ordering::SeqCst);
        // A table that cannot be described is left to the operation itself to complain about.
        let description = self.inner.describe_table(name.to_owned()).await.ok()?;
        let definition = Arc::new(description.definition);
        let mut definitions = self.watch.definitions();
        if self.watch.epoch.load(Ordering::SeqCst) == epoch {
            definitions.insert(name.to_owned(), Arc::clone(&definition));
        }
        Some(definition)
    }

    /// The definitions of the tables of a batch; `None` if one of them is not there.
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

    /// The present moment, for readers and writers.
    pub(super) fn moment(&self, number: u64) -> Moment {
        Moment {
            number,
            time: self.inner.now(),
        }
    }

    /// Lets a write pass and remembers what it did to these items.
    pub(super) async fn watched<T>(
        &self,
        attempt: &Attempt<'_>,
        targets: Vec<(String, Item)>,
        write: BoxFuture<'_, Result<T>>,
    ) -> Result<T> {
        if !attempt.faults().keeps_past() {
            return write.await;
        }
        let _guards = self.watch.lock(&targets).await;
        let mut before = Vec::with_capacity(targets.len());
        for (table, key) in &targets {
            before.push(self.peek(table, key).await);
        }
        let answer = write.await;
        if answer
            .as_ref()
            .is_err_and(|error| !error.may_have_applied())
        {
            return answer;
        }
        for ((table, key), before) in targets.into_iter().zip(before) {
            let after = self.peek(&table, &key).await;
            // The next operation to come is the first that can see it.
            let since = self.moment(self.control.operations() + 1);
            // What could not be read is not known, and never shown.
            if let (Ok(before), Ok(after)) = (before, after) {
                let change = Change { key, before, after };
                let mut past = self.watch.past();
                past.record(attempt.faults(), &table, change, attempt.number(), since);
            }
        }
        answer
    }

    async fn peek(&self, table: &str, key: &Item) -> Result<Option<Item>> {
        let get = GetItem::new(table, key.clone());
        Ok(self.inner.get_item(get).await?.item)
    }
}
