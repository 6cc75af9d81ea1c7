//! The tables of a run: what is known of them while their changes are delivered.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use floe_store::op::HoldChanges;
use floe_store::{Item, Timestamp};

use super::notice::Ran;
use super::source::Mark;
use super::{Consumer, position};
use crate::delivery::{Positions, Recent, Token, hold};
use crate::error::Result;
use crate::lock::lock;

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
        let known = lock(&self.known)
            .tables
            .get(number)
            .map(|t| t.holds.clone());
        hold(db, &mark.holds, &known.unwrap_or_default()).await?;
        if let Some(table) = lock(&self.known).tables.get_mut(number) {
            table.holds.clone_from(&mark.holds);
        }
        Ok(true)
    }
}
