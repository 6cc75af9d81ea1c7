//! The state of the tables in a run.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use floe_store::op::HoldChanges;
use floe_store::{Item, Timestamp};

use super::notice::ConsumerSummary;
use super::source::TableCheckpoint;
use super::{ChangeConsumer, position};
use crate::delivery::{RecentIds, ShardPositions, Token, hold_changes};
use crate::error::Result;
use crate::lock::lock;

/// The tables whose changes are delivered in a run.
pub(super) struct Tables<'c> {
    pub(super) consumer: &'c ChangeConsumer,
    pub(super) summary: &'c Mutex<ConsumerSummary>,
    pub(super) token: Token,
    pub(super) names: Vec<Arc<str>>,
    /// Number of dead letters.
    pub(super) dead_letter_count: AtomicUsize,
    pub(super) state: Mutex<RunState>,
}

/// The state of a run.
pub(super) struct RunState {
    pub(super) tables: Vec<Table>,
    pub(super) recent: RecentIds<()>,
    /// The items with dead letters, by the index of their table.
    pub(super) dead_letters: HashSet<(usize, Item)>,
    /// Time of the last progress notice, and the changes processed by then.
    pub(super) last_report: (Timestamp, u64),
    pub(super) last_created: Timestamp,
}

/// The state of a table.
pub(super) struct Table {
    /// The positions read so far.
    pub(super) read: ShardPositions,
    /// The current holds.
    pub(super) holds: Vec<HoldChanges>,
}

impl Tables<'_> {
    pub(super) fn count(&self, count: impl FnOnce(&mut ConsumerSummary)) {
        count(&mut lock(self.summary));
    }

    /// Stores the checkpoint of a table and updates its holds. Returns `false` if another process has taken over.
    pub(super) async fn store_table(
        &self,
        number: usize,
        table: &str,
        checkpoint: &TableCheckpoint,
    ) -> Result<bool> {
        let (db, name) = (&self.consumer.db, &self.consumer.name);
        if !position::store(db, name, table, &self.token, &checkpoint.positions).await? {
            return Ok(false);
        }
        let held = lock(&self.state)
            .tables
            .get(number)
            .map(|t| t.holds.clone());
        hold_changes(db, &checkpoint.holds, &held.unwrap_or_default()).await?;
        if let Some(table) = lock(&self.state).tables.get_mut(number) {
            table.holds.clone_from(&checkpoint.holds);
        }
        Ok(true)
    }
}
