//! Reading the change streams of a table: all shards, parents before their children.
//!
//! All changes of an item are in one shard or in a shard and its descendants, so this order preserves the order of
//! each item. A table gets a new change stream each time its stream is enabled; older streams are read first.
//!
//! Records are kept for a day, and closed shards not much longer. Loss of unread records is detected in four ways,
//! each of which is an error unless trimmed records are accepted:
//!
//! - the position in a shard is no longer available;
//! - a shard disappeared before it was read to its end;
//! - the parent of a shard disappeared, and there is no record of having read it;
//! - a shard that was never read no longer starts at its beginning.
//!
//! A consumer without any stored position reads whatever is available.

use std::collections::BTreeSet;

use floe_store::limits::GET_RECORDS_MAX;
use floe_store::op::{
    ChangeRecord, DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator, HoldChanges,
    IteratorKind, KeySchemaElement, ListStreams, StreamSummary,
};
use floe_store::table::StreamView;
use floe_store::{BoxFuture, Engine, Error as StoreError};

use super::position::{ShardPosition, ShardPositions, sequence_key};
use crate::concurrent;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};

/// Maximum number of shards read concurrently.
const SHARDS_AT_ONCE: usize = 16;

/// The shards of a table's change streams, with the position in each.
#[derive(Debug)]
pub(crate) struct Shards {
    db: Db,
    table: String,
    /// Whether to continue where unread records are gone.
    accepts_trimmed: bool,
    /// Shards of older streams first.
    shards: Vec<Shard>,
    /// Whether the last read found nothing.
    was_empty: bool,
    /// Key schema of the newest stream.
    key_schema: Vec<KeySchemaElement>,
    view: Option<StreamView>,
}

#[derive(Debug)]
struct Shard {
    stream_arn: String,
    id: String,
    /// The key of its stored position: ids are unique within a stream only.
    key: String,
    /// The shard to read first, if it still exists.
    parent: Option<String>,
    position: ShardPosition,
    /// The next iterator, if it is known and has not expired.
    iterator: Option<String>,
}

/// The result of one read of all shards.
#[derive(Debug, Default)]
pub(crate) struct ShardRecords {
    /// The records, in order per item.
    pub(crate) records: Vec<ChangeRecord>,
    /// Whether a shard was read to its end, so that its children can be read.
    pub(crate) has_ended: bool,
}

impl Shards {
    pub(crate) fn new(db: Db, table: &str, accepts_trimmed: bool) -> Self {
        Self {
            db,
            table: table.to_owned(),
            accepts_trimmed,
            shards: Vec::new(),
            was_empty: false,
            key_schema: Vec::new(),
            view: None,
        }
    }

    /// Looks up the current shards. New ones start at their stored positions.
    pub(crate) async fn find(&mut self, stored: &ShardPositions) -> Result<()> {
        let mut found = Vec::new();
        for stream in self.streams().await? {
            if let Some((key_schema, view)) = self.describe(&stream, stored, &mut found).await? {
                (self.key_schema, self.view) = (key_schema, Some(view));
            }
        }
        if !self.accepts_trimmed {
            self.check_no_loss(stored, &found)?;
        }
        for shard in &mut found {
            let position = self.shards.iter().position(|old| old.key == shard.key);
            if let Some(position) = position {
                *shard = self.shards.swap_remove(position);
            }
        }
        self.shards = found;
        Ok(())
    }

    /// Checks that no unread records are gone.
    fn check_no_loss(&self, stored: &ShardPositions, found: &[Shard]) -> Result<()> {
        let is_found = |key: &String| found.iter().any(|shard| shard.key == *key);
        let position_of = |key: &String| {
            let read = self.shards.iter().find(|shard| shard.key == *key);
            read.map(|shard| &shard.position)
                .or_else(|| stored.0.get(key))
        };
        let is_lost =
            |key: &String| !is_found(key) && position_of(key) != Some(&ShardPosition::End);
        let mut begun = self.shards.iter().map(|s| &s.key).chain(stored.0.keys());
        if let Some(key) = begun.find(|key| is_lost(key)) {
            let position = position_of(key)
                .map_or_else(String::new, |position| format!("position={position:?}"));
            return Err(lost(key, &position));
        }
        if self.is_first_time(stored) {
            return Ok(());
        }
        for shard in found
            .iter()
            .filter(|shard| position_of(&shard.key).is_none())
        {
            if let Some(parent) = shard.parent.as_ref().filter(|parent| is_lost(parent)) {
                return Err(lost(parent, &format!("child={}", shard.key)));
            }
        }
        Ok(())
    }

    /// Whether nothing was ever read or found.
    fn is_first_time(&self, stored: &ShardPositions) -> bool {
        stored.0.is_empty() && self.shards.is_empty()
    }

    /// The change streams of the table, oldest first.
    async fn streams(&self) -> Result<Vec<StreamSummary>> {
        let mut request = ListStreams {
            table_name: Some(self.table.clone()),
            ..ListStreams::default()
        };
        let mut streams = Vec::new();
        loop {
            let page = self.engine().list_streams(request.clone()).await?;
            streams.extend(page.streams);
            request.start_after = page.last_arn;
            if request.start_after.is_none() {
                break;
            }
        }
        if streams.is_empty() {
            let message = format!("the table has no change stream: table={}", self.table);
            return Err(Error::new(ErrorKind::Table, message));
        }
        streams.sort_by(|one, other| one.label.cmp(&other.label));
        Ok(streams)
    }

    async fn describe(
        &self,
        stream: &StreamSummary,
        stored: &ShardPositions,
        found: &mut Vec<Shard>,
    ) -> Result<Option<(Vec<KeySchemaElement>, StreamView)>> {
        let mut request = DescribeStream {
            stream_arn: stream.arn.clone(),
            ..DescribeStream::default()
        };
        let key = |id: &str| format!("{}/{id}", stream.label);
        let is_first_time = self.is_first_time(stored);
        let begun = |start: String| ShardPosition::Begun((!is_first_time).then_some(start));
        loop {
            let page = match self.engine().describe_stream(request.clone()).await {
                // The stream was just removed.
                Err(StoreError::ResourceNotFound(_)) => return Ok(None),
                page => page?,
            };
            found.extend(page.shards.into_iter().map(|shard| Shard {
                stream_arn: stream.arn.clone(),
                key: key(&shard.id),
                parent: shard.parent_id.as_deref().map(key),
                position: match stored.0.get(&key(&shard.id)) {
                    Some(position) => position.clone(),
                    None => begun(shard.starting_sequence),
                },
                iterator: None,
                id: shard.id,
            }));
            request.start_after = page.last_shard_id;
            if request.start_after.is_none() {
                return Ok(Some((page.key_schema, page.view)));
            }
        }
    }

    /// Reads a page of each shard that is due: about `records_max` in total, but at least one per shard.
    pub(crate) async fn read(&mut self, records_max: usize) -> Result<ShardRecords> {
        let open = self.shards.iter().filter(|shard| !shard.is_done());
        let stream_arn = open.clone().next().map(|shard| shard.stream_arn.clone());
        let open: BTreeSet<String> = open.map(|shard| shard.key.clone()).collect();
        let (engine, accepts_trimmed) = (self.db.engine().as_ref(), self.accepts_trimmed);
        let has_turn = |shard: &&mut Shard| {
            let waits = shard.parent.as_ref().is_some_and(|key| open.contains(key));
            !shard.is_done() && !waits && Some(&shard.stream_arn) == stream_arn.as_ref()
        };
        let turns: Vec<&mut Shard> = self.shards.iter_mut().filter(has_turn).collect();
        // A page may be empty although more records follow. A larger limit gets past it sooner.
        let limit = if self.was_empty {
            GET_RECORDS_MAX
        } else {
            (records_max / turns.len().max(1)).clamp(1, GET_RECORDS_MAX)
        };
        let mut pages: Vec<BoxFuture<'_, Result<ShardRecords>>> = Vec::with_capacity(turns.len());
        for shard in turns {
            pages.push(Box::pin(shard.read(engine, limit, accepts_trimmed)));
        }
        let mut round = ShardRecords::default();
        for page in concurrent::run_all(SHARDS_AT_ONCE, pages).await {
            let ShardRecords { records, has_ended } = page?;
            round.records.extend(records);
            round.has_ended |= has_ended;
        }
        self.was_empty = round.records.is_empty();
        Ok(round)
    }

    /// The position in each shard.
    pub(crate) fn positions(&self) -> ShardPositions {
        let read = self.shards.iter();
        let read = read.map(|shard| (shard.key.clone(), shard.position.clone()));
        ShardPositions(read.collect())
    }

    /// Stored positions whose shards no longer exist.
    pub(crate) fn gone(&self, stored: &ShardPositions) -> BTreeSet<String> {
        let is_gone = |key: &&String| !self.shards.iter().any(|shard| shard.key == **key);
        stored.0.keys().filter(is_gone).cloned().collect()
    }

    /// The key of the table, and the images in its newest stream.
    pub(crate) fn shape(&self) -> (&[KeySchemaElement], Option<StreamView>) {
        (&self.key_schema, self.view)
    }

    /// The records to hold for a consumer that is done up to these positions, so that no unprocessed record is
    /// trimmed.
    pub(crate) fn holds(&self, consumer: &str, done: &ShardPositions) -> Vec<HoldChanges> {
        let streams: BTreeSet<&String> = self.shards.iter().map(|s| &s.stream_arn).collect();
        let hold = |stream_arn: &String| HoldChanges {
            consumer: consumer.to_owned(),
            stream_arn: stream_arn.clone(),
            after_sequence: self.done_up_to(stream_arn, done),
        };
        streams.into_iter().map(hold).collect()
    }

    /// The sequence number up to which a stream is processed; `None` if no more records can come.
    fn done_up_to(&self, stream_arn: &str, done: &ShardPositions) -> Option<String> {
        let of_stream = self.shards.iter().filter(|s| s.stream_arn == stream_arn);
        let positions = of_stream.map(|shard| done.0.get(&shard.key));
        let open = positions.filter(|position| *position != Some(&ShardPosition::End));
        let done = open.map(|position| match position {
            Some(ShardPosition::After(sequence)) => sequence.as_str(),
            _ => NOTHING_READ,
        });
        done.min_by_key(|sequence| sequence_key(sequence))
            .map(str::to_owned)
    }

    fn engine(&self) -> &dyn Engine {
        self.db.engine().as_ref()
    }
}

/// Sorts before all records.
const NOTHING_READ: &str = "0";

impl Shard {
    fn is_done(&self) -> bool {
        self.position == ShardPosition::End
    }

    async fn read(
        &mut self,
        engine: &dyn Engine,
        limit: usize,
        accepts_trimmed: bool,
    ) -> Result<ShardRecords> {
        let iterator = match self.iterator.take() {
            Some(iterator) => iterator,
            None => self.iterator(engine, accepts_trimmed).await?,
        };
        let request = GetRecords {
            iterator,
            limit: Some(limit),
        };
        let page = match engine.get_records(request).await {
            // The iterator expired. The next read requests a new one.
            Err(StoreError::ExpiredIterator(_)) => return Ok(ShardRecords::default()),
            // The shard was just removed.
            Err(StoreError::ResourceNotFound(_)) if accepts_trimmed => GetRecordsOutput::default(),
            page => page.map_err(|error| self.failed(error))?,
        };
        if let Some(last) = page.records.last() {
            self.position = ShardPosition::After(last.sequence.clone());
        }
        let has_ended = page.next_iterator.is_none();
        if has_ended {
            self.position = ShardPosition::End;
        }
        self.iterator = page.next_iterator;
        Ok(ShardRecords {
            records: page.records,
            has_ended,
        })
    }

    async fn iterator(&self, engine: &dyn Engine, accepts_trimmed: bool) -> Result<String> {
        let request_iterator = |kind| {
            engine.get_shard_iterator(GetShardIterator {
                stream_arn: self.stream_arn.clone(),
                shard_id: self.id.clone(),
                kind,
            })
        };
        let kind = match &self.position {
            ShardPosition::After(sequence) => IteratorKind::AfterSequenceNumber(sequence.clone()),
            _ => IteratorKind::TrimHorizon,
        };
        if let (ShardPosition::Begun(Some(start)), false) = (&self.position, accepts_trimmed) {
            // Checks only that the position is available: there may be no record with exactly this number.
            match request_iterator(IteratorKind::AtSequenceNumber(start.clone())).await {
                Err(error @ StoreError::TrimmedDataAccess(_)) => return Err(self.failed(error)),
                Err(error) if error.is_retryable() => return Err(error.into()),
                _ => {}
            }
        }
        let response = match request_iterator(kind).await {
            Err(StoreError::TrimmedDataAccess(_)) if accepts_trimmed => {
                request_iterator(IteratorKind::TrimHorizon).await
            }
            response => response,
        };
        response.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: StoreError) -> Error {
        match error {
            StoreError::TrimmedDataAccess(_) | StoreError::ResourceNotFound(_) => {
                lost(&self.key, &format!("position={:?}", self.position)).with_source(error)
            }
            error => error.into(),
        }
    }
}

/// Holds change records, if the engine supports it, except those already held.
pub(crate) async fn hold_changes(
    db: &Db,
    holds: &[HoldChanges],
    held: &[HoldChanges],
) -> Result<()> {
    if !db.engine().capabilities().change_holds {
        return Ok(());
    }
    for hold in holds.iter().filter(|hold| !held.contains(hold)) {
        match db.engine().hold_changes(hold.clone()).await {
            // Another process with this name is ahead. If not, the next read fails.
            Ok(()) | Err(StoreError::TrimmedDataAccess(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Releases holds.
pub(crate) async fn release_holds(db: &Db, holds: Vec<HoldChanges>) -> Result<()> {
    for hold in holds {
        let hold = HoldChanges {
            after_sequence: None,
            ..hold
        };
        db.engine().hold_changes(hold).await?;
    }
    Ok(())
}

/// The error of a shard that is gone or lost records.
fn lost(shard: &str, fact: &str) -> Error {
    let message = format!("unread change records may have been trimmed: shard={shard} {fact}");
    Error::new(ErrorKind::MissingEvents, message)
}
