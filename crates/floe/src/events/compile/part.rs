//! A stream's part of a commit: its append, or a check that it is unchanged.

use floe_store::Item;
use floe_store::expr::{Condition, Path};
use floe_store::op::{ConditionCheck, TransactWrite};

use super::{AppendOutcome, StreamAppend, condition};
use crate::error::{Error, ErrorKind, Result};
use crate::events::changes::{StreamChanges, StreamEntry};
use crate::events::stored::{STREAM, TIP_INDEX, key};
use crate::events::telemetry;
use crate::tx::part::{
    CommitId, Failure, Part, PartWrite, Rejection, SinglePart, SinglePartFailure, SinglePartResult,
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
    /// The append, if any.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) if the Tip would not fit into an item.
    fn compiled(&self) -> Result<Option<StreamAppend<'_>>> {
        let (Some(change), Some(etag)) = (&self.change, &self.etag) else {
            return Ok(None);
        };
        let (table, name, position) = (&self.table, &self.name, self.position.as_ref());
        StreamAppend::new(table, name, position, change, &self.limits, etag.clone()).map(Some)
    }

    fn conflict(&self) -> Rejection {
        let message = format!(
            "another writer appended to the stream: stream={}",
            self.name
        );
        Rejection::Conflict(Error::new(ErrorKind::TransactionFailed, message))
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

    /// The append, or a check that the stream is unchanged.
    fn writes(&self) -> Result<Vec<PartWrite>> {
        if let Some(append) = self.compiled()? {
            return Ok(append.writes_with_sizes());
        }
        let condition = match &self.position {
            Some(position) => condition(position, self.guard),
            None => Condition::attribute_not_exists(Path::attribute(STREAM)),
        };
        let check = ConditionCheck::new(self.table.as_str(), key(&self.name, TIP_INDEX), condition);
        Ok(vec![TransactWrite::from(check).into()])
    }

    fn condition_failed(&self, _: usize, _: Option<&Item>) -> Rejection {
        self.conflict()
    }

    fn record_conflict(&self, _attempt: u32) {
        telemetry::conflict(&self.table, &self.name);
    }

    fn committed(&self) {
        if let Some(change) = &self.change {
            telemetry::appended(&self.table, &self.name, change.events.len());
        }
    }

    /// Sends the append as one plain write, whose outcome is visible in the stream itself.
    fn send_single<'a>(&'a mut self, alone: SinglePart<'a>) -> Option<SinglePartResult<'a>> {
        if self.change.is_none() || alone.options.exactly_once {
            return None;
        }
        let stream: &Self = self;
        Some(Box::pin(async move {
            let final_ = |error| SinglePartFailure::from(Failure::Final(error));
            let Some(append) = stream.compiled().map_err(final_)? else {
                return Ok(());
            };
            match append.send(alone.db, &stream.name, alone.budget).await {
                Ok(AppendOutcome::Written(_)) => Ok(()),
                // The conflict was recorded as telemetry of the append.
                Ok(AppendOutcome::Conflict(_)) => {
                    Err(SinglePartFailure::Rejected(stream.conflict()))
                }
                Err(error) => Err(Failure::of(error).into()),
            }
        }))
    }
}
