//! Epochs and the index in a table, as ordinary event streams.
//!
//! The table is separate from the table whose streams are indexed, so that writes to the feed are no changes there.

use floe_store::Timestamp;

use super::{Appended, EpochLog, EpochPage, EpochSource, EpochVersion, Loaded as LoadedFrom};
use crate::db::Db;
use crate::error::Result;
use crate::events::changes::{Change, Guard};
use crate::events::compile::{AppendOutcome, StreamAppend};
use crate::events::event::{EventData, Recorded};
use crate::events::feed::epoch::{CLOSED, EpochEvent, EpochState, epoch_stream};
use crate::events::feed::index::{IndexEvent, IndexState, index_stream};
use crate::events::feed::partition::Partition;
use crate::events::keys::StreamName;
use crate::events::options::EventStoreOptions;
use crate::events::position::StreamPosition;
use crate::events::reads::{self, EventDecoder, Source, load};
use crate::events::stored::{Events, StoredEvent, StoredUnfold};
use crate::request::Budget;

/// Epochs and an index in a table.
#[derive(Clone, Debug)]
pub struct TableLog {
    db: Db,
    options: EventStoreOptions,
}

/// The position of a stream of the log.
#[derive(Clone, Debug)]
pub struct TablePosition(Option<StreamPosition>);

type Loaded<S> = LoadedFrom<S, TablePosition>;

impl TableLog {
    /// Creates a log in the table of these options, which also apply to its streams.
    pub const fn new(db: Db, options: EventStoreOptions) -> Self {
        Self { db, options }
    }

    /// Loads the events of a stream from an index.
    async fn events_from<E, S: EventDecoder<E>>(
        &self,
        stream: &StreamName,
        since: u64,
        unfolds: bool,
        decoder: &S,
    ) -> Result<reads::Loaded<E>> {
        let source = Source {
            db: &self.db,
            options: &self.options,
            stream,
            consistent: true,
        };
        load(source, None, since, unfolds, decoder).await
    }

    /// Appends events to a stream with an unfold.
    async fn append(
        &self,
        stream: &StreamName,
        events: Vec<EventData>,
        unfold: Option<EventData>,
        expected: &TablePosition,
    ) -> Result<Appended<TablePosition>> {
        let (time, compression) = (self.db.env().now(), self.options.compression);
        let position = expected.0.as_ref();
        let version = position.map_or(0, |position| position.version) + events.len() as u64;
        let change = Change {
            events: events
                .into_iter()
                .map(|event| StoredEvent::new(event, time, compression))
                .collect(),
            unfolds: unfold
                .into_iter()
                .map(|unfold| StoredUnfold::new(unfold, version, time, compression))
                .collect(),
            guard: Guard::Version,
        };
        let (table, etag) = (&self.options.table, self.db.env().ordered_uuid());
        let append = StreamAppend::new(table, stream, position, &change, &self.options.tip, etag)?;
        Ok(
            match append.send(&self.db, stream, Budget::for_write()).await? {
                AppendOutcome::Written(position) => Appended::Written {
                    position: TablePosition(Some(position)),
                    time,
                },
                AppendOutcome::Conflict(_) => Appended::Conflict,
            },
        )
    }

    /// Continues loading an epoch from a known state.
    async fn continue_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        mut state: EpochState,
    ) -> Result<Loaded<EpochState>> {
        let stream = epoch_stream(partition, epoch)?;
        let loaded = self.events_from(&stream, state.version(), false, &EpochDecoder);
        let loaded = loaded.await?;
        for (event, time) in &loaded.events {
            state.apply(event, *time)?;
        }
        Ok(Loaded {
            state,
            position: TablePosition(loaded.position),
        })
    }
}

/// Whether the stream is a closed epoch. The last event is always in the Tip.
fn is_closed(tip: &Events) -> bool {
    tip.last_event_type() == Some(CLOSED)
}

/// Decodes all events of an epoch.
struct EpochDecoder;

impl EventDecoder<(EpochEvent, Timestamp)> for EpochDecoder {
    fn decode(&self, recorded: Recorded) -> Result<Option<(EpochEvent, Timestamp)>> {
        Ok(Some((EpochEvent::decode(&recorded.event)?, recorded.time)))
    }

    fn is_origin(&self, _: &(EpochEvent, Timestamp)) -> bool {
        false
    }
}

/// Decodes the events of the index, back to the last snapshot.
struct IndexDecoder;

impl EventDecoder<IndexEvent> for IndexDecoder {
    fn decode(&self, recorded: Recorded) -> Result<Option<IndexEvent>> {
        IndexEvent::decode(&recorded.event).map(Some)
    }

    fn is_origin(&self, event: &IndexEvent) -> bool {
        event.is_origin()
    }
}

impl EpochLog for TableLog {
    type Position = TablePosition;

    async fn load_epoch(&self, partition: Partition, epoch: u32) -> Result<Loaded<EpochState>> {
        self.continue_epoch(partition, epoch, EpochState::default())
            .await
    }

    async fn refresh_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        known: Loaded<EpochState>,
    ) -> Result<Loaded<EpochState>> {
        self.continue_epoch(partition, epoch, known.state).await
    }

    async fn append_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        events: &[EpochEvent],
        expected: &TablePosition,
    ) -> Result<Appended<TablePosition>> {
        let stream = epoch_stream(partition, epoch)?;
        let events: Result<Vec<_>> = events.iter().map(EpochEvent::encode).collect();
        self.append(&stream, events?, None, expected).await
    }

    async fn load_index(&self) -> Result<Loaded<IndexState>> {
        let stream = index_stream()?;
        let loaded = self.events_from(&stream, 0, true, &IndexDecoder).await?;
        let mut state = IndexState::default();
        for event in loaded.events {
            state.apply(event);
        }
        Ok(Loaded {
            state,
            position: TablePosition(loaded.position),
        })
    }

    async fn append_index(
        &self,
        event: &IndexEvent,
        after: &IndexState,
        expected: &TablePosition,
    ) -> Result<Appended<TablePosition>> {
        let (events, snapshot) = (vec![event.encode()], after.snapshot().encode());
        let stream = index_stream()?;
        self.append(&stream, events, Some(snapshot), expected).await
    }
}

impl EpochSource for TableLog {
    async fn read_epoch(&self, partition: Partition, epoch: u32, offset: u64) -> Result<EpochPage> {
        let stream = epoch_stream(partition, epoch)?;
        let loaded = self
            .events_from(&stream, offset, false, &EpochDecoder)
            .await?;
        Ok(EpochPage {
            events: loaded.events,
            is_end: loaded
                .position
                .is_some_and(|position| is_closed(&position.tip)),
        })
    }

    async fn read_index(&self) -> Result<IndexState> {
        Ok(self.load_index().await?.state)
    }

    async fn epoch_version(&self, partition: Partition, epoch: u32) -> Result<EpochVersion> {
        let stream = epoch_stream(partition, epoch)?;
        let tip = reads::tip(&self.db, &self.options.table, &stream, true).await?;
        Ok(tip.map_or_else(EpochVersion::default, |tip| EpochVersion {
            version: tip.next,
            is_closed: is_closed(&tip.events),
        }))
    }
}

#[cfg(test)]
mod tests;
