//! Pruning: deletes events at the beginning of a stream.
//!
//! ```text
//! read the Tip                   for the version and the end of the batches
//! read the batches               ascending, up to the index
//! delete each                    completely, the oldest first, so that no gap remains
//! write the Tip                  without the pruned events, if its etag is unchanged
//! ```
//!
//! A batch that also contains later events stays with all its events, because batches are immutable. Then the Tip
//! also keeps all of its events, since they are later still.
//!
//! The write of the Tip keeps the version and the unfolds and sets `a` to 0, so that the feed does not announce
//! events again. `b` becomes the size of the remaining batches: 0 if there are none, otherwise reduced by the size of
//! the deleted ones, whose bodies are read only for that. If the outcome of the write is unknown, the remaining
//! batches are measured instead.
//!
//! Pruning can be interrupted and repeated. A call interrupted before it writes the Tip leaves `b` too high by the
//! deleted batches; `b` is exact again when no batch remains. No decision depends on `b`.

use floe_store::expr::{Condition, KeyCondition, KeyOp, Path, Paths, Update};
use floe_store::op::{DeleteItem, Query, UpdateItem, WriteItem};
use floe_store::{Error as StoreError, Item, Name, Text, Value};
use tracing::Instrument;

use super::keys::StreamName;
use super::limits::ANY_ATTEMPTS_MAX;
use super::reads::Pages;
use super::send::{Sent, Writes, send};
use super::store::EventStore;
use super::stored::{
    APPENDED, Batch, CALVED_BYTES, ETAG, EVENT_TYPES, EVENTS, INDEX, NEXT, STREAM, TIP_INDEX, key,
    lists_of,
};
use crate::error::{Error, ErrorKind, Result};
use crate::events::telemetry;
use crate::request::Budget;

/// The result of pruning a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Number of deleted events.
    pub deleted: u64,
    /// Number of events that were not deleted because they share a batch with later ones.
    pub deferred: u64,
    /// The index of the first remaining event; the version of the stream if none remains.
    pub lowest: u64,
}

impl EventStore {
    /// Deletes the events of a stream before an index, except those that share a batch with later ones.
    ///
    /// The version of the stream and its unfolds stay. Afterwards its state must be loaded from the remaining events:
    /// from a snapshot, or with the archive. Pruning may be interrupted and repeated, and run concurrently with
    /// appends.
    ///
    /// ```
    /// use floe::events::{EventData, Expected, StreamName};
    /// use floe::{Db, Error};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let store = Db::memory()?.events();
    /// store.ensure_table().await?;
    /// let log = StreamName::new("Log", "a")?;
    /// let events = ["one", "two", "three"].map(|name| EventData::new(name, ""));
    /// store.append(&log, Expected::New, events).await?;
    ///
    /// let pruned = store.prune(&log, 2).await?;
    /// assert_eq!((pruned.deleted, pruned.deferred, pruned.lowest), (2, 0, 2));
    /// assert_eq!(store.version(&log).await?, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) after too many conflicts,
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) if the store stays unavailable,
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if an item does not belong to a stream, [`Store`](ErrorKind::Store)
    /// if the store fails. It can be called again after any of them.
    pub async fn prune(&self, stream: &StreamName, before: u64) -> Result<Pruned> {
        let span = telemetry::prune(&self.options().table, stream);
        let pruned = self.prune_before(stream, before);
        let pruned = telemetry::record_result(&span, pruned.instrument(span.clone()).await)?;
        span.record("floe.stream.deleted", pruned.deleted);
        Ok(pruned)
    }

    async fn prune_before(&self, stream: &StreamName, before: u64) -> Result<Pruned> {
        let mut prune = Prune {
            store: self,
            stream,
            before,
            reached: 0,
            first: None,
            freed: 0,
            in_doubt: false,
        };
        let mut tip = self.tip(stream, true).await?;
        let mut attempts = 0;
        loop {
            let Some(found) = tip else {
                return Ok(Pruned::default());
            };
            tip = match prune.round(&found).await? {
                Round::Completed(pruned) => return Ok(pruned),
                Round::Conflict(tip) => tip,
            };
            self.wait_after_conflict(stream, &mut attempts, ANY_ATTEMPTS_MAX)
                .await?;
        }
    }
}

/// The progress of a prune.
struct Prune<'a> {
    store: &'a EventStore,
    stream: &'a StreamName,
    /// Events before this index are pruned.
    before: u64,
    /// All batches before this index are deleted.
    reached: u64,
    /// The index of the first event before the prune.
    first: Option<u64>,
    /// How much of the Tip's `b` was deleted.
    freed: u64,
    /// Whether a failed write of the Tip may have been applied.
    in_doubt: bool,
}

enum Round {
    Completed(Pruned),
    /// Another writer changed the Tip. Contains the current one.
    Conflict(Option<Batch>),
}

/// Attributes with the range of a batch.
const RANGE_ATTRIBUTES: &[Name] = &[INDEX, NEXT];
/// Attributes with the range and the events of a batch.
const EVENT_ATTRIBUTES: &[Name] = &[STREAM, INDEX, NEXT, EVENT_TYPES, EVENTS];

/// The range of a batch's events.
#[derive(Clone, Copy)]
struct BatchRange {
    index: u64,
    next: u64,
}

impl Prune<'_> {
    /// Deletes the batches before the Tip, and writes the Tip.
    async fn round(&mut self, tip: &Batch) -> Result<Round> {
        let (base, before) = (tip.base(), self.before.min(tip.next));
        // All batches end before the Tip, so none remains, and none needs to be measured.
        let clears = before >= base;
        let remaining = self.delete_batches(before, base, !clears).await?;
        let lowest = match remaining {
            Some(batch) => batch.index,
            None if clears => before,
            None => self.first_between(before + 1, base).await?.unwrap_or(base),
        };
        let first = *self.first.get_or_insert(if clears { base } else { lowest });
        let pruned = Pruned {
            deleted: lowest.saturating_sub(first),
            deferred: before.saturating_sub(lowest),
            lowest,
        };
        let bytes = if clears {
            self.freed = tip.calved_bytes;
            0
        } else if self.in_doubt {
            self.measure_between(lowest, base).await?
        } else {
            tip.calved_bytes.saturating_sub(self.freed)
        };
        let trimmed = before.saturating_sub(base);
        if trimmed == 0 && bytes == tip.calved_bytes {
            return Ok(Round::Completed(pruned));
        }
        Ok(match self.write_tip(tip, trimmed, bytes).await? {
            None => Round::Completed(pruned),
            Some(conflict) => conflict,
        })
    }

    /// Deletes the batches completely before the index, the oldest first. Returns the next batch, if it starts at or
    /// before the index.
    async fn delete_batches(
        &mut self,
        before: u64,
        base: u64,
        measures: bool,
    ) -> Result<Option<BatchRange>> {
        let end = base.min(before + 1);
        let attributes = if measures {
            EVENT_ATTRIBUTES
        } else {
            RANGE_ATTRIBUTES
        };
        let mut pages = self.between(self.reached, end, attributes);
        while let Some(items) = pages.next(self.store.db()).await? {
            for item in &items {
                let batch = self.range(item)?;
                self.first.get_or_insert(batch.index);
                if batch.next > before {
                    return Ok(Some(batch));
                }
                let bytes = if measures { event_bytes(item)? } else { 0 };
                self.delete(batch.index).await?;
                self.freed += bytes;
                self.reached = batch.next;
            }
        }
        Ok(None)
    }

    /// Deletes a batch. Can be repeated, because batches never change or reappear.
    async fn delete(&self, index: u64) -> Result<()> {
        let table = self.store.options().table.as_str();
        let delete = DeleteItem::new(table, key(self.stream, index));
        let sent = self.store.send_pruning(self.stream, delete.into());
        sent.await.map(drop)
    }

    /// Writes the Tip without its first events. Returns a conflict if another writer changed it.
    async fn write_tip(&mut self, tip: &Batch, trimmed: u64, bytes: u64) -> Result<Option<Round>> {
        let etag = self.store.db().env().ordered_uuid();
        let table = self.store.options().table.as_str();
        let update = trim(tip, trimmed, bytes, &etag)?;
        let mut update =
            UpdateItem::new(table, key(self.stream, TIP_INDEX), update).return_old_on_failure();
        update.condition = Some(is_unchanged(tip));
        let Sent::Conflict { item, in_doubt } =
            self.store.send_pruning(self.stream, update.into()).await?
        else {
            return Ok(None);
        };
        let now = match item {
            Some(item) => Some(Batch::of_item(item)?),
            None => self.store.tip(self.stream, true).await?,
        };
        if now.as_ref().is_some_and(|tip| tip.etag == Some(etag)) {
            return Ok(None);
        }
        self.in_doubt |= in_doubt;
        Ok(Some(Round::Conflict(now)))
    }

    /// The index of the first batch in a range.
    async fn first_between(&self, start: u64, end: u64) -> Result<Option<u64>> {
        let mut pages = self.between(start, end, RANGE_ATTRIBUTES);
        pages.query.limit = Some(1);
        let items = pages.next(self.store.db()).await?.unwrap_or_default();
        let first = items.first().map(|item| self.range(item)).transpose()?;
        Ok(first.map(|batch| batch.index))
    }

    /// The size of the batches in a range.
    async fn measure_between(&self, start: u64, end: u64) -> Result<u64> {
        let mut pages = self.between(start, end, EVENT_ATTRIBUTES);
        let mut bytes = 0;
        while let Some(items) = pages.next(self.store.db()).await? {
            for item in &items {
                bytes += event_bytes(item)?;
            }
        }
        Ok(bytes)
    }

    /// Reads attributes of the batches in a range.
    fn between(&self, start: u64, end: u64, attributes: &[Name]) -> Pages {
        let range = KeyOp::Between(start.into(), end.saturating_sub(1).into());
        let stream = Value::S(self.stream.text().clone());
        let condition = KeyCondition::partition(STREAM, stream).and(INDEX, range);
        let options = self.store.options();
        let mut query = Query::new(options.table.as_str(), condition).limit(options.page_items);
        query.consistent = true;
        query.projection = Some(Paths(
            attributes.iter().cloned().map(Path::attribute).collect(),
        ));
        Pages {
            query,
            is_done: start >= end,
        }
    }

    fn range(&self, item: &Item) -> Result<BatchRange> {
        let number = |name: &Name| {
            let number = item.get(name).and_then(Value::as_n);
            number.and_then(|number| number.to_u64()).ok_or_else(|| {
                let stream = self.stream;
                let message = format!(
                    "an attribute is missing or has another type: attribute={name} stream={stream}"
                );
                Error::new(ErrorKind::InvalidEvent, message)
            })
        };
        Ok(BatchRange {
            index: number(&INDEX)?,
            next: number(&NEXT)?,
        })
    }
}

impl EventStore {
    /// Sends a write of a prune until its outcome is known.
    pub(super) async fn send_pruning(&self, stream: &StreamName, write: WriteItem) -> Result<Sent> {
        let unknown = |error| unknown(stream, error);
        let request = || Writes::Single(write.clone());
        let (table, budget) = (write.table_name(), Budget::for_write());
        send(self.db(), table, budget, request, unknown).await
    }
}

fn unknown(stream: &StreamName, error: StoreError) -> Error {
    let message =
        format!("prune outcome unknown: the response was lost: prune again: stream={stream}");
    Error::new(ErrorKind::OutcomeUnknown, message).with_source(error)
}

/// The update that removes the first events of a Tip.
fn trim(tip: &Batch, trimmed: u64, bytes: u64, etag: &Text) -> Result<Update> {
    let mut update = Update::new()
        .set(APPENDED, Value::from(0_u64))
        .set(CALVED_BYTES, Value::from(bytes))
        .set(ETAG, Value::S(etag.clone()));
    if trimmed > 0 {
        let kept = tip.since(tip.base() + trimmed)?.into_iter();
        let kept: Vec<_> = kept.map(|(_, event)| event.to_stored()).collect();
        let (types, events) = lists_of(kept.iter());
        update = update.set(EVENTS, events).set(EVENT_TYPES, types);
    }
    Ok(update)
}

/// The condition that the Tip is unchanged.
fn is_unchanged(tip: &Batch) -> Condition {
    match &tip.etag {
        Some(etag) => Condition::eq(Path::attribute(ETAG), Value::S(etag.clone())),
        None => Condition::eq(Path::attribute(NEXT), Value::from(tip.next))
            .and(Condition::attribute_not_exists(Path::attribute(ETAG))),
    }
}

fn event_bytes(item: &Item) -> Result<u64> {
    let batch = Batch::of_item(item.clone())?;
    Ok(batch.events.size()?.estimate as u64)
}
