//! Sends an append until its outcome is known, and reconciles it with the stream otherwise.

use floe_store::Error as StoreError;
use tracing::Instrument;

use super::{StreamAppend, StreamPosition};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::events::keys::StreamName;
use crate::events::reads;
use crate::events::send::{Sent, send};
use crate::events::stored::Batch;
use crate::events::telemetry;
use crate::request::{Budget, repeat};

/// The outcome of an append.
#[derive(Debug)]
pub(crate) enum AppendOutcome {
    /// It was applied.
    Written(StreamPosition),
    /// Another writer changed the stream. Contains the current Tip; `None` if there is none.
    Conflict(Option<Box<Batch>>),
}

impl StreamAppend<'_> {
    /// Sends the append until its outcome is known.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if the store rejects it or fails, [`Unsupported`](ErrorKind::Unsupported) if it
    /// needs transactions that the engine does not have, [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) if the store
    /// stays unavailable, if only unfolds were written and another writer has written since, or if the stream was
    /// pruned since.
    pub(crate) async fn send(
        self,
        db: &Db,
        stream: &StreamName,
        budget: Budget,
    ) -> Result<AppendOutcome> {
        if self.calves && !db.engine().capabilities().transactions {
            let message =
                format!("the engine has no transactions, which calving needs: stream={stream}");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let (table, events) = (self.table, self.change.events.len());
        let span = telemetry::append(table, stream, events, self.calves);
        let result = self
            .send_and_reconcile(db, stream, budget)
            .instrument(span.clone())
            .await;
        let outcome = match &result {
            Ok(AppendOutcome::Written(_)) => "written",
            Ok(AppendOutcome::Conflict(_)) => {
                telemetry::conflict(table, stream);
                "conflict"
            }
            Err(error) => {
                telemetry::record_error(&span, error);
                "failed"
            }
        };
        span.record("floe.stream.outcome", outcome);
        result
    }

    async fn send_and_reconcile(
        self,
        db: &Db,
        stream: &StreamName,
        budget: Budget,
    ) -> Result<AppendOutcome> {
        let unknown = |error| unknown(stream, error);
        let sent = send(db, self.table, budget, || self.request(), unknown).await?;
        let Sent::Conflict { item, in_doubt } = sent else {
            return Ok(AppendOutcome::Written(self.after));
        };
        let tip = item.map(Batch::of_item).transpose()?;
        let table = self.table;
        let reconciled = Box::pin(self.reconcile(db, stream, tip, in_doubt)).await;
        if in_doubt && let Ok(outcome) = &reconciled {
            let is_applied = matches!(outcome, AppendOutcome::Written(_));
            telemetry::reconciled(table, stream, is_applied);
        }
        reconciled.map_err(|error| match error.store_error().cloned() {
            Some(source) if in_doubt => unknown(source),
            _ => error,
        })
    }

    /// Determines the outcome of an append after a conflict with the Tip.
    async fn reconcile(
        self,
        db: &Db,
        stream: &StreamName,
        tip: Option<Batch>,
        in_doubt: bool,
    ) -> Result<AppendOutcome> {
        // Reads use a new budget, so that reconciling does not fail for lack of attempts.
        let budget = Budget::for_write();
        let tip = match tip {
            // The cancellation reasons of a transaction may lack the Tip.
            None if self.calves || self.start() > 0 => {
                repeat(db, budget, || {
                    Box::pin(reads::tip(db, self.table, stream, true))
                })
                .await?
            }
            tip => tip,
        };
        let Some(tip) = tip else {
            return Ok(AppendOutcome::Conflict(None));
        };
        if tip.etag == self.after.etag {
            return Ok(AppendOutcome::Written(self.after));
        }
        if in_doubt {
            let undecidable =
                |why: &str| unknown(stream, StoreError::OutcomeUnknown(why.to_owned()));
            if self.change.events.is_empty() {
                return Err(undecidable("another writer has written since"));
            }
            match repeat(db, budget, || Box::pin(self.is_applied(db, stream, &tip))).await? {
                // Later appends of other writers do not affect the result of this one.
                Some(true) => return Ok(AppendOutcome::Written(self.after)),
                Some(false) => {}
                None => return Err(undecidable("the stream was pruned since")),
            }
        }
        Ok(AppendOutcome::Conflict(Some(Box::new(tip))))
    }

    /// The index of its first event.
    fn start(&self) -> u64 {
        self.before.map_or(0, |position| position.version)
    }

    /// Whether the stream contains the same events at the expected indexes; `None` if events there were pruned.
    async fn is_applied(&self, db: &Db, stream: &StreamName, tip: &Batch) -> Result<Option<bool>> {
        let (start, events) = (self.start(), &self.change.events);
        let end = start + events.len() as u64;
        // The last write belongs to another writer, so its events are not ours, even if they are equal.
        if tip.next.saturating_sub(tip.appended) < end {
            return Ok(Some(false));
        }
        let stored = reads::stored_between(db, self.table, stream, tip, start, end).await?;
        if stored.len() < events.len() {
            return Ok(None);
        }
        Ok(Some(stored == *events))
    }
}

fn unknown(stream: &StreamName, error: StoreError) -> Error {
    let message = format!("append outcome unknown: the response was lost: stream={stream}");
    Error::new(ErrorKind::OutcomeUnknown, message).with_source(error)
}
