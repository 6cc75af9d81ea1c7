//! Pruning: events at the beginning of a stream that nobody needs any more are deleted.
//!
//! ```text
//! read the Tip                   what is there, and where the batches end
//! read the batches               ascending, up to the index before which all may go
//! delete each                    whole, the oldest first, so that what is left has no gap
//! write the Tip                  without the events that may go, if its etag is as it was
//! ```
//!
//! A batch that also holds later events stays, and with it what was to go: batches never change. Then the Tip keeps all
//! of its events too, since they are later still.
//!
//! The write of the Tip leaves the version and the unfolds alone and sets `a` to 0, so that the feed does not announce
//! again what it has announced. `b` becomes what the batches weigh that are left: 0 if there are none, and else less
//! by what the deleted ones weighed, for which alone their bodies are read. If nobody knows whether the write was
//! applied, what is left is weighed instead.
//!
//! Everything can be interrupted and done again. A call that is interrupted before it writes the Tip leaves `b` too
//! high, by what it has deleted; `b` is right again once no batch is left. Nothing is decided by `b`.

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
    APPENDED, Batch, CALVED_BYTES, CASES, ETAG, EVENTS, INDEX, NEXT, STREAM, TIP_INDEX, key,
    lists_of,
};
use crate::error::{Error, ErrorKind, Result};
use crate::events::telemetry;
use crate::request::Budget;

/// What became of a stream that was pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// How many events were deleted.
    pub deleted: u64,
    /// How many were to be deleted and stay, because they share a batch with later ones.
    pub deferred: u64,
    /// The index of the first event that is left; the version of the stream if none is.
    pub lowest: u64,
}

impl EventStore {
    /// Deletes the events of a stream before an index, as far as they do not share a batch with later ones.
    ///
    /// The version of the stream and its unfolds stay. From then on its state can be told only from what is left: from
    /// a snapshot, or with the archive. May be interrupted and called again, and beside those who append.
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
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) when others were always faster,
    /// [`OutcomeUnknown`](ErrorKind::OutcomeUnknown) when the store does not come back,
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when an item is none of a stream, [`Store`](ErrorKind::Store) when the
    /// store cannot answer. After any of them it can be called again.
    pub async fn prune(&self, stream: &StreamName, before: u64) -> Result<Pruned> {
        let span = telemetry::prune(&self.options().table, stream);
        let pruned = self.prune_before(stream, before);
        let pruned = telemetry::noted(&span, pruned.instrument(span.clone()).await)?;
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
                Round::Done(pruned) => return Ok(pruned),
                Round::Conflict(tip) => tip,
            };
            self.lost_race(stream, &mut attempts, ANY_ATTEMPTS_MAX)
                .await?;
        }
    }
}

/// How far it has come.
struct Prune<'a> {
    store: &'a EventStore,
    stream: &'a StreamName,
    /// The events before this index are to go.
    before: u64,
    /// All batches before this index are gone.
    reached: u64,
    /// The index of the first event that was there.
    first: Option<u64>,
    /// What of the `b` of the Tip is gone.
    freed: u64,
    /// Whether a write of the Tip may have been applied although it failed.
    in_doubt: bool,
}

enum Round {
    Done(Pruned),
    /// Somebody else has written the Tip, which is so now.
    Conflict(Option<Batch>),
}

/// What is read to know where a batch stands.
const PLACED: &[Name] = &[INDEX, NEXT];
/// What is read to know what a batch weighs.
const WEIGHED: &[Name] = &[STREAM, INDEX, NEXT, CASES, EVENTS];

/// A batch, without what is in it.
#[derive(Clone, Copy)]
struct Place {
    index: u64,
    next: u64,
}

impl Prune<'_> {
    /// Deletes the batches before a Tip, and writes the Tip.
    async fn round(&mut self, tip: &Batch) -> Result<Round> {
        let (base, before) = (tip.base(), self.before.min(tip.next));
        // All batches end where the Tip begins, so none stays, and nothing has to be weighed.
        let clears = before >= base;
        let stays = self.delete_batches(before, base, !clears).await?;
        let lowest = match stays {
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
        let bytes = match (clears, self.in_doubt) {
            (true, _) => {
                self.freed = tip.calved_bytes;
                0
            }
            (false, true) => self.weigh_between(lowest, base).await?,
            (false, false) => tip.calved_bytes.saturating_sub(self.freed),
        };
        let trimmed = before.saturating_sub(base);
        if trimmed == 0 && bytes == tip.calved_bytes {
            return Ok(Round::Done(pruned));
        }
        Ok(match self.write_tip(tip, trimmed, bytes).await? {
            None => Round::Done(pruned),
            Some(conflict) => conflict,
        })
    }

    /// Deletes the batches that are before the index as a whole, the oldest first. Tells the first that is not, if it
    /// begins at or before the index.
    async fn delete_batches(
        &mut self,
        before: u64,
        base: u64,
        weigh: bool,
    ) -> Result<Option<Place>> {
        let end = base.min(before + 1);
        let read = if weigh { WEIGHED } else { PLACED };
        let mut pages = self.between(self.reached, end, read);
        while let Some(items) = pages.next(self.store.db()).await? {
            for item in &items {
                let batch = self.place(item)?;
                self.first.get_or_insert(batch.index);
                if batch.next > before {
                    return Ok(Some(batch));
                }
                let bytes = if weigh { weigh_item(item)? } else { 0 };
                self.delete(batch.index).await?;
                self.freed += bytes;
                self.reached = batch.next;
            }
        }
        Ok(None)
    }

    /// A batch never changes and never comes back, so it can be deleted as often as one likes.
    async fn delete(&self, index: u64) -> Result<()> {
        let table = self.store.options().table.as_str();
        let delete = DeleteItem::new(table, key(self.stream, index));
        let sent = self.store.send_pruning(self.stream, delete.into());
        sent.await.map(drop)
    }

    /// Writes the Tip without its first events. Tells how it stands if somebody else has written it.
    async fn write_tip(&mut self, tip: &Batch, trimmed: u64, bytes: u64) -> Result<Option<Round>> {
        let etag = self.store.db().env().ordered_uuid();
        let table = self.store.options().table.as_str();
        let update = trim(tip, trimmed, bytes, &etag)?;
        let mut update =
            UpdateItem::new(table, key(self.stream, TIP_INDEX), update).return_old_on_failure();
        update.condition = Some(is_as(tip));
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

    /// The index of the first batch of a range.
    async fn first_between(&self, start: u64, end: u64) -> Result<Option<u64>> {
        let mut pages = self.between(start, end, PLACED);
        pages.query.limit = Some(1);
        let items = pages.next(self.store.db()).await?.unwrap_or_default();
        let first = items.first().map(|item| self.place(item)).transpose()?;
        Ok(first.map(|batch| batch.index))
    }

    /// What the batches of a range weigh.
    async fn weigh_between(&self, start: u64, end: u64) -> Result<u64> {
        let mut pages = self.between(start, end, WEIGHED);
        let mut bytes = 0;
        while let Some(items) = pages.next(self.store.db()).await? {
            for item in &items {
                bytes += weigh_item(item)?;
            }
        }
        Ok(bytes)
    }

    /// Reads these attributes of the batches of a range.
    fn between(&self, start: u64, end: u64, read: &[Name]) -> Pages {
        let range = KeyOp::Between(start.into(), end.saturating_sub(1).into());
        let stream = Value::S(self.stream.text().clone());
        let condition = KeyCondition::partition(STREAM, stream).and(INDEX, range);
        let options = self.store.options();
        let mut query = Query::new(options.table.as_str(), condition).limit(options.page_items);
        query.consistent = true;
        query.projection = Some(Paths(read.iter().cloned().map(Path::attribute).collect()));
        Pages {
            query,
            is_done: start >= end,
        }
    }

    fn place(&self, item: &Item) -> Result<Place> {
        let number = |name: &Name| {
            let number = item.get(name).and_then(Value::as_n);
            number.and_then(|number| number.to_u64()).ok_or_else(|| {
                let stream = self.stream;
                let message = format!(
                    "an attribute is missing or of another type: attribute={name} stream={stream}"
                );
                Error::new(ErrorKind::InvalidEvent, message)
            })
        };
        Ok(Place {
            index: number(&INDEX)?,
            next: number(&NEXT)?,
        })
    }
}

impl EventStore {
    /// Sends a write of a prune until its outcome is known.
    pub(super) async fn send_pruning(&self, stream: &StreamName, write: WriteItem) -> Result<Sent> {
        let unknown = |error| unknown(stream, error);
        let request = || Writes::One(write.clone());
        let (table, budget) = (write.table_name(), Budget::for_write());
        send(self.db(), table, budget, request, unknown).await
    }
}

fn unknown(stream: &StreamName, error: StoreError) -> Error {
    let message = format!(
        "the answer was lost and nobody can know how far the stream was pruned; prune it again: stream={stream}"
    );
    Error::new(ErrorKind::OutcomeUnknown, message).with_source(error)
}

/// The Tip without its first events.
fn trim(tip: &Batch, trimmed: u64, bytes: u64, etag: &Text) -> Result<Update> {
    let mut update = Update::new()
        .set(APPENDED, Value::from(0_u64))
        .set(CALVED_BYTES, Value::from(bytes))
        .set(ETAG, Value::S(etag.clone()));
    if trimmed > 0 {
        let kept = tip.since(tip.base() + trimmed)?.into_iter();
        let kept: Vec<_> = kept.map(|(_, event)| event.to_stored()).collect();
        let (cases, events) = lists_of(kept.iter());
        update = update.set(EVENTS, events).set(CASES, cases);
    }
    Ok(update)
}

/// Whether nobody has written the Tip.
fn is_as(tip: &Batch) -> Condition {
    match &tip.etag {
        Some(etag) => Condition::eq(Path::attribute(ETAG), Value::S(etag.clone())),
        None => Condition::eq(Path::attribute(NEXT), Value::from(tip.next))
            .and(Condition::attribute_not_exists(Path::attribute(ETAG))),
    }
}

fn weigh_item(item: &Item) -> Result<u64> {
    let batch = Batch::of_item(item.clone())?;
    Ok(batch.events.weight()?.model as u64)
}
