//! Reading the changes of one table, look by look.

use std::sync::Arc;

use floe_store::op::{ChangeRecord, HoldChanges, KeyRole, KeySchemaElement};
use floe_store::table::StreamView;

use super::super::change::{Change, KeyNames};
use super::super::limits::LOOKS_PER_SEARCH;
use super::super::router::Needs;
use crate::db::Db;
use crate::delivery::{Positions, Round, Shards};
use crate::error::{Error, ErrorKind, Result};

/// A table whose changes are read.
pub(super) struct Source {
    db: Db,
    pub(super) table: Arc<str>,
    accepts_trimmed: bool,
    shards: Shards,
    /// How far it has come. What a look that failed has read is not in it.
    known: Positions,
    key_names: Option<Arc<KeyNames>>,
    /// How many looks in a row have brought nothing.
    empty_looks: u32,
    /// Whether the last look has failed, or was dropped.
    is_stale: bool,
}

/// What a look has brought.
pub(super) struct Look {
    pub(super) changes: Vec<Change>,
    pub(super) mark: Mark,
    /// Whether there was nothing to do.
    pub(super) is_idle: bool,
}

/// How far a table is read, and what is held of its changes when all of that is done.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) positions: Positions,
    pub(super) holds: Vec<HoldChanges>,
}

impl Source {
    /// The changes of a table from these positions on.
    pub(super) async fn open(
        db: &Db,
        table: &Arc<str>,
        known: Positions,
        accepts_trimmed: bool,
    ) -> Result<Self> {
        let mut source = Self {
            db: db.clone(),
            table: table.clone(),
            accepts_trimmed,
            shards: Shards::new(db.clone(), table, accepts_trimmed),
            known,
            key_names: None,
            empty_looks: 0,
            is_stale: false,
        };
        source.find().await?;
        Ok(source)
    }

    async fn find(&mut self) -> Result<()> {
        self.shards.find(&self.known).await?;
        self.known = self.shards.positions();
        self.key_names = key_names(self.shards.shape().0).map(Arc::new);
        Ok(())
    }

    /// Sees that the change stream holds the images that handlers need.
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
            "the change stream holds no images that handlers need: table={} view={}",
            self.table,
            view.as_str()
        );
        Err(Error::new(ErrorKind::Table, message))
    }

    /// Where it stands.
    pub(super) fn mark(&self, consumer: &str) -> Mark {
        Mark {
            holds: self.shards.holds(consumer, &self.known),
            positions: self.known.clone(),
        }
    }

    /// Reads about so many records. If this fails, the next look begins where this one did.
    pub(super) async fn look(&mut self, consumer: &str, records_max: usize) -> Result<Look> {
        if self.is_stale {
            // Some shards may have gone on, and their records are lost with the others'.
            self.shards = Shards::new(self.db.clone(), &self.table, self.accepts_trimmed);
            self.find().await?;
        }
        self.is_stale = true;
        let Round { records, has_ended } = self.read(records_max).await?;
        self.is_stale = false;
        let is_idle = records.is_empty() && !has_ended;
        Ok(Look {
            changes: records
                .into_iter()
                .map(|record| self.change(record))
                .collect(),
            mark: self.mark(consumer),
            is_idle,
        })
    }

    async fn read(&mut self, records_max: usize) -> Result<Round> {
        let round = self.shards.read(records_max).await?;
        let is_empty = round.records.is_empty();
        self.empty_looks = if is_empty { self.empty_looks + 1 } else { 0 };
        let read = self.shards.positions();
        // New shards come where one has ended, and now and then where nobody looks.
        if round.has_ended || is_empty && self.empty_looks.is_multiple_of(LOOKS_PER_SEARCH) {
            self.shards.find(&read).await?;
        }
        self.known = self.shards.positions();
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
