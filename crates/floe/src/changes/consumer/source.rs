//! Reads the changes of one table in batches.

use std::sync::Arc;

use floe_store::op::{ChangeRecord, HoldChanges, KeyRole, KeySchemaElement};
use floe_store::table::StreamView;

use super::super::change::{Change, KeyNames};
use super::super::limits::EMPTY_READS_PER_SEARCH;
use super::super::router::Needs;
use crate::db::Db;
use crate::delivery::{ShardPositions, ShardRecords, Shards};
use crate::error::{Error, ErrorKind, Result};

/// The changes of a table.
pub(super) struct Source {
    db: Db,
    pub(super) table: Arc<str>,
    accepts_trimmed: bool,
    shards: Shards,
    /// The current positions. A failed read does not advance them.
    current: ShardPositions,
    key_names: Option<Arc<KeyNames>>,
    /// Consecutive empty reads.
    empty_reads: u32,
    /// Whether the last read failed or was dropped.
    is_stale: bool,
}

/// The result of one read.
pub(super) struct SourceBatch {
    pub(super) changes: Vec<Change>,
    pub(super) checkpoint: TableCheckpoint,
    /// Whether nothing was found.
    pub(super) is_idle: bool,
}

/// Positions in a table, and the holds to store when everything before them is processed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableCheckpoint {
    pub(super) positions: ShardPositions,
    pub(super) holds: Vec<HoldChanges>,
}

impl Source {
    /// Opens the changes of a table at the given positions.
    pub(super) async fn open(
        db: &Db,
        table: &Arc<str>,
        current: ShardPositions,
        accepts_trimmed: bool,
    ) -> Result<Self> {
        let mut source = Self {
            db: db.clone(),
            table: table.clone(),
            accepts_trimmed,
            shards: Shards::new(db.clone(), table, accepts_trimmed),
            current,
            key_names: None,
            empty_reads: 0,
            is_stale: false,
        };
        source.refresh().await?;
        Ok(source)
    }

    async fn refresh(&mut self) -> Result<()> {
        self.shards.find(&self.current).await?;
        self.current = self.shards.positions();
        self.key_names = key_names(self.shards.shape().0).map(Arc::new);
        Ok(())
    }

    /// Checks that the change stream contains the images that handlers require.
    pub(super) fn check(&self, needs: Needs) -> Result<()> {
        let Some(view) = self.shards.shape().1 else {
            return Ok(());
        };
        let has_old = matches!(view, StreamView::OldImage | StreamView::NewAndOldImages);
        let has_new = matches!(view, StreamView::NewImage | StreamView::NewAndOldImages);
        if (has_old || !needs.old) && (has_new || !needs.new) {
            return Ok(());
        }
        let message = format!(
            "the change stream lacks images that handlers need: table={} view={}",
            self.table,
            view.as_str()
        );
        Err(Error::new(ErrorKind::Table, message))
    }

    /// The current checkpoint.
    pub(super) fn checkpoint(&self, consumer: &str) -> TableCheckpoint {
        TableCheckpoint {
            holds: self.shards.holds(consumer, &self.current),
            positions: self.current.clone(),
        }
    }

    /// Reads about `records_max` records. After a failure, the next read starts at the same position.
    pub(super) async fn read_batch(
        &mut self,
        consumer: &str,
        records_max: usize,
    ) -> Result<SourceBatch> {
        if self.is_stale {
            // Some shards may have advanced before the read failed, so all start again at the known positions.
            self.shards = Shards::new(self.db.clone(), &self.table, self.accepts_trimmed);
            self.refresh().await?;
        }
        self.is_stale = true;
        let ShardRecords { records, has_ended } = self.read(records_max).await?;
        self.is_stale = false;
        let is_idle = records.is_empty() && !has_ended;
        Ok(SourceBatch {
            changes: records
                .into_iter()
                .map(|record| self.change(record))
                .collect(),
            checkpoint: self.checkpoint(consumer),
            is_idle,
        })
    }

    async fn read(&mut self, records_max: usize) -> Result<ShardRecords> {
        let round = self.shards.read(records_max).await?;
        let is_empty = round.records.is_empty();
        self.empty_reads = if is_empty { self.empty_reads + 1 } else { 0 };
        let read = self.shards.positions();
        // New shards appear after the end of a shard, and otherwise now and then.
        if round.has_ended || is_empty && self.empty_reads.is_multiple_of(EMPTY_READS_PER_SEARCH) {
            self.shards.find(&read).await?;
        }
        self.current = self.shards.positions();
        Ok(round)
    }

    fn change(&self, record: ChangeRecord) -> Change {
        let change = Change::new(self.table.clone(), record);
        match &self.key_names {
            Some(names) => change.with_key_names(names.clone()),
            None => change,
        }
    }
}

fn key_names(schema: &[KeySchemaElement]) -> Option<KeyNames> {
    let name = |role: KeyRole| {
        let element = schema.iter().find(|element| element.role == role);
        element.map(|element| element.name.as_str().to_owned())
    };
    Some(KeyNames {
        partition: name(KeyRole::Hash)?,
        sort: name(KeyRole::Range),
    })
}
