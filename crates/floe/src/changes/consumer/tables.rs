//! The tables of a run: what is known of them while their changes are delivered.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floe_store::op::HoldChanges;
use floe_store::{Error as StoreError, Item, Timestamp};

use super::notice::Ran;
use super::source::Mark;
use super::{Consumer, position};
use crate::delivery::{Positions, Recent, Token};
use crate::error::{Error, Result};

/// The tables whose changes are delivered in a run.
pub(super) struct Tables<'c> {
    pub(super) consumer: &'c Consumer,
    pub(super) ran: &'c Mutex<Ran>,
    pub(super) token: Token,
    pub(super) names: Vec<Arc<str>>,
    /// How many changes are parked.
    pub(super) parked_count: AtomicUsize,
    pub(super) known: Mutex<Known>,
}

/// What is known in a run.
pub(super) struct Known {
    pub(super) tables: Vec<Table>,
    pub(super) recent: Recent<()>,
    /// The items of which something is parked, by the number of their table.
    pub(super) parked: HashSet<(usize, Item)>,
    /// When it was last told how it gets on, and how many changes were done by then.
    pub(super) told: (Timestamp, u64),
    pub(super) last_created: Timestamp,
}

/// How far a table is.
pub(super) struct Table {
    /// Up to where it was read.
    pub(super) read: Positions,
    /// What is held.
    pub(super) holds: Vec<HoldChanges>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tables<'_> {
    pub(super) fn count(&self, count: impl FnOnce(&mut Ran)) {
        count(&mut lock(self.ran));
    }

    /// Stores how far everything of a table is done, and holds what is not; `false` if somebody else delivers by now.
    pub(super) async fn store_table(
        &self,
        number: usize,
        table: &str,
        mark: &Mark,
    ) -> Result<bool> {
        let (db, name) = (&self.consumer.db, &self.consumer.name);
        if !position::store(db, name, table, &self.token, &mark.positions).await? {
            return Ok(false);
        }
        if !db.engine().capabilities().change_holds {
            return Ok(true);
        }
        let held = lock(&self.known)
            .tables
            .get(number)
            .map(|t| t.holds.clone());
        let held = held.unwrap_or_default();
        for hold in mark.holds.iter().filter(|hold| !held.contains(hold)) {
            match db.engine().hold_changes(hold.clone()).await {
                // Somebody else under this name is further on. If nobody is, reading tells.
                Ok(()) | Err(StoreError::TrimmedDataAccess(_)) => {}
                Err(error) => return Err(Error::from(error)),
            }
        }
        if let Some(table) = lock(&self.known).tables.get_mut(number) {
            table.holds.clone_from(&mark.holds);
        }
        Ok(true)
    }
}
