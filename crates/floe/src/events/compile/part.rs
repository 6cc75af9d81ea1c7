//! The share of a stream in a commit: its append, or a check that it is as it was loaded.

use floe_store::Item;
use floe_store::expr::{Condition, Path};
use floe_store::op::{ConditionCheck, TransactWrite};

use super::{Sync, Synced, condition};
use crate::error::{Error, ErrorKind, Result};
use crate::events::changes::{StreamChanges, StreamEntry};
use crate::events::stored::{STREAM, TIP_INDEX, key};
use crate::events::telemetry;
use crate::tx::part::{
    Alone, AloneFailure, CommitId, Failure, Part, PartWrite, Refusal, SentAlone,
};
use crate::tx::session::{Changes, PartContext};

impl Changes for StreamChanges {
    fn into_parts(self, _: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        let loaded = self.0.into_iter().flatten();
        let loaded = loaded.filter(|stream| stream.is_loaded);
        Ok(loaded.map(|stream| Box::new(stream) as _).collect())
    }
}

impl StreamEntry {
    /// The append, if there is one.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when the Tip would not fit into an item.
    fn sync(&self) -> Result<Option<Sync<'_>>> {
        let (Some(change), Some(etag)) = (&self.change, &self.etag) else {
            return Ok(None);
        };
        let (table, name, position) = (&self.table, &self.name, self.position.as_ref());
        Sync::new(table, name, position, change, &self.limits, etag.clone()).map(Some)
    }

    fn lost_race(&self) -> Refusal {
        let message = format!("somebody else appended to the stream: stream={}", self.name);
        Refusal::Lost(Error::new(ErrorKind::TransactionFailed, message))
    }
}

impl Part for StreamEntry {
    fn is_write(&self) -> bool {
        self.change.is_some()
    }

    fn read_only_error(&self) -> Error {
        let name = &self.name;
        let message = format!("a read-only transaction cannot append: stream={name}");
        Error::new(ErrorKind::ReadOnly, message)
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        vec![(self.table.clone(), "events")]
    }

    fn remedy(&self) -> &'static str {
        "call ensure_table of the event stores"
    }

    fn prepare(&mut self, commit: &CommitId) -> Result<()> {
        self.etag = Some(commit.id.clone());
        Ok(())
    }

    /// Its append, or a check that it is as it was loaded.
    fn writes(&self) -> Result<Vec<PartWrite>> {
        if let Some(sync) = self.sync()? {
            return Ok(sync.weighed_writes());
        }
        let condition = match &self.position {
            Some(position) => condition(position, self.guard),
            None => Condition::attribute_not_exists(Path::attribute(STREAM)),
        };
        let check = ConditionCheck::new(self.table.as_str(), key(&self.name, TIP_INDEX), condition);
        Ok(vec![TransactWrite::from(check).into()])
    }

    fn refused(&self, _: usize, _: Option<&Item>) -> Refusal {
        self.lost_race()
    }

    fn record_lost(&self, _attempt: u32) {
        telemetry::conflict(&self.table, &self.name);
    }

    fn committed(&self) {
        if let Some(change) = &self.change {
            telemetry::appended(&self.table, &self.name, change.events.len());
        }
    }

    /// One plain write, whose outcome the stream itself shows.
    fn send_alone<'a>(&'a mut self, alone: Alone<'a>) -> Option<SentAlone<'a>> {
        if self.change.is_none() || alone.options.exactly_once {
            return None;
        }
        let stream: &Self = self;
        Some(Box::pin(async move {
            let final_ = |error| AloneFailure::from(Failure::Final(error));
            let Some(sync) = stream.sync().map_err(final_)? else {
                return Ok(());
            };
            match sync.send(alone.db, &stream.name, alone.budget).await {
                Ok(Synced::Written(_)) => Ok(()),
                // Its own telemetry has recorded the conflict.
                Ok(Synced::Conflict(_)) => Err(AloneFailure::Refused(stream.lost_race())),
                Err(error) => Err(Failure::of(error).into()),
            }
        }))
    }
}
