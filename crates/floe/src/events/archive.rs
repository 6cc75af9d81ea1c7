//! Archiving: events are copied into another table before they are pruned.
//!
//! Everything that a prune may delete is copied first: whole batches unchanged, and the events of the Tip before the
//! index as a separate batch. Then the stream is pruned up to what was copied.
//!
//! A copy is written if there is none. An existing copy must contain the same events: possibly fewer, if an earlier
//! archiving was interrupted and the stream has grown since; then the longer copy replaces it. Batches of an archive
//! may therefore overlap, and readers skip what they have seen.

use floe_store::Value;
use floe_store::expr::{Condition, Path};
use floe_store::op::PutItem;

use super::keys::StreamName;
use super::limits::ANY_ATTEMPTS_MAX;
use super::options::EventStoreOptions;
use super::prune::Pruned;
use super::reads::{self, Source};
use super::send::Sent;
use super::store::{EventStore, exhausted};
use super::stored::{Batch, Events, NEXT, STREAM, key};
use crate::error::{Error, ErrorKind, Result};

impl EventStore {
    /// Moves the events of a stream before an index into the archive. Like [`prune`](Self::prune), but everything
    /// that is deleted was copied to the archive. The archive is a table like that of the events.
    ///
    /// ```
    /// use floe::events::{EventData, EventStoreOptions, Expected, StreamName};
    /// use floe::{Db, Error};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let db = Db::memory()?;
    /// let archive = db.event_store(EventStoreOptions::new("old-events"));
    /// let store = db.event_store(EventStoreOptions::default().archive("old-events"));
    /// for store in [&archive, &store] {
    ///     store.ensure_table().await?;
    /// }
    /// let log = StreamName::new("Log", "a")?;
    /// let events = ["one", "two", "three"].map(|name| EventData::new(name, ""));
    /// store.append(&log, Expected::New, events).await?;
    ///
    /// assert_eq!(store.archive(&log, 2).await?.deleted, 2);
    /// assert_eq!(store.read(&log).collect().await?.len(), 1);
    /// assert_eq!(archive.read(&log).collect().await?.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the store has no archive, [`InvalidEvent`](ErrorKind::InvalidEvent)
    /// if the archive contains other events at the same index, and as for [`prune`](Self::prune). Nothing is deleted
    /// that is not in the archive.
    pub async fn archive(&self, stream: &StreamName, before: u64) -> Result<Pruned> {
        let Some(archive) = &self.options().archive else {
            let message = format!("the store has no archive: table={}", self.options().table);
            return Err(Error::new(ErrorKind::InvalidUse, message));
        };
        let copied = match self.tip(stream, true).await? {
            Some(tip) => self.copy(archive, &tip, before).await?,
            None => 0,
        };
        self.prune(stream, copied).await
    }

    /// Copies the events that a prune before this index may delete. Returns the index up to which it may prune.
    async fn copy(&self, archive: &str, tip: &Batch, before: u64) -> Result<u64> {
        let (base, before) = (tip.base(), before.min(tip.next));
        let options = EventStoreOptions {
            requests_max: None,
            ..self.options().clone()
        };
        let range = reads::before(base.min(before));
        let source = Source {
            options: &options,
            ..self.source(&tip.stream, true)
        };
        let mut batches = source.batches(&options.table, Some(range));
        while let Some(page) = batches.next_page().await? {
            for batch in page {
                if batch.next > before {
                    return Ok(before);
                }
                self.write_copy(archive, &batch).await?;
            }
        }
        let events = tip.since(base)?.into_iter();
        let trimmed = events.filter(|(index, _)| *index < before);
        let events: Events = trimmed.map(|(_, event)| event.to_stored()).collect();
        if !events.is_empty() {
            let batch = Batch::calf(tip.stream.clone(), base, before, events);
            self.write_copy(archive, &batch).await?;
        }
        Ok(before)
    }

    /// Writes a batch into the archive, unless its events are already there.
    async fn write_copy(&self, archive: &str, batch: &Batch) -> Result<()> {
        let mut existing: Option<Batch> = None;
        // Concurrent archivers of the same stream may copy more of it each time.
        for _ in 0..ANY_ATTEMPTS_MAX {
            let condition = match &existing {
                None => Condition::attribute_not_exists(Path::attribute(STREAM)),
                Some(existing) => Condition::eq(Path::attribute(NEXT), Value::from(existing.next)),
            };
            let put = PutItem::new(archive, batch.clone().into_item())
                .condition(condition)
                .return_old_on_failure();
            let Sent::Conflict { item, .. } = self.send_pruning(&batch.stream, put.into()).await?
            else {
                return Ok(());
            };
            existing = match item {
                Some(item) => Some(Batch::of_item(item)?),
                None => {
                    let key = key(&batch.stream, batch.index);
                    reads::batch(self.db(), archive, key, true).await?
                }
            };
            if let Some(existing) = &existing {
                if !has_same_events(existing, batch)? {
                    return Err(differing_copy(archive, batch));
                }
                if existing.next >= batch.next {
                    return Ok(());
                }
            }
        }
        Err(exhausted(&batch.stream, ANY_ATTEMPTS_MAX))
    }
}

/// Whether two batches contain the same events, up to the end of the shorter one.
fn has_same_events(one: &Batch, other: &Batch) -> Result<bool> {
    let (ones, others) = (one.events.since(0)?, other.events.since(0)?);
    let mut both = ones.iter().zip(&others);
    Ok(both.all(|(a, b)| a.to_stored() == b.to_stored()))
}

fn differing_copy(archive: &str, batch: &Batch) -> Error {
    let Batch { stream, index, .. } = batch;
    let message =
        format!("the archive contains other events: archive={archive} stream={stream} i={index}");
    Error::new(ErrorKind::InvalidEvent, message)
}
