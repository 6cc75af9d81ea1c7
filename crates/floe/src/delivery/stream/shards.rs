//! Reading the change stream of a table: all of its shards, a parent before its children.
//!
//! All changes of an item stand in one shard, or in a shard and its descendants, so this order is the order of each
//! item. A table has another change stream each time that its stream is switched on; the older ones are read first.
//!
//! Records are kept for a day, and shards that are closed not much longer. What is gone before it was read shows in one
//! of these ways, of which each is a failure unless it is accepted:
//!
//! - the place up to which a shard was read cannot be asked for;
//! - a shard is gone that was not read to its end;
//! - the parent of a shard is gone, and nobody knows of having read it;
//! - a shard that was never read does not go back to its beginning.
//!
//! Who has never read anything takes what there is.

use std::collections::BTreeSet;

use floe_store::limits::GET_RECORDS_MAX;
use floe_store::op::{
    ChangeRecord, DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator, HoldChanges,
    IteratorKind, KeySchemaElement, ListStreams, StreamSummary,
};
use floe_store::table::StreamView;
use floe_store::{BoxFuture, Engine, Error as StoreError};

use super::position::{Place, Positions, sequence_key};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::side_by_side;

/// How many shards are read at once.
const SHARDS_AT_ONCE: usize = 16;

/// The shards of a table's change streams, and how far each was read.
#[derive(Debug)]
pub(crate) struct Shards {
    db: Db,
    table: String,
    /// Whether to go on where records are gone that were not read.
    accepts_trimmed: bool,
    /// Those of older streams first.
    shards: Vec<Shard>,
    /// Whether the last look has brought nothing.
    was_empty: bool,
    /// Of the newest stream.
    key_schema: Vec<KeySchemaElement>,
    view: Option<StreamView>,
}

#[derive(Debug)]
struct Shard {
    stream_arn: String,
    id: String,
    /// What it is stored under: ids are unique within a stream alone.
    key: String,
    /// The shard to be read before, if it is still there.
    parent: Option<String>,
    place: Place,
    /// Where to go on, if that is known and has not grown old.
    iterator: Option<String>,
}

/// What one look at all shards has brought.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// The records, those of an item in their order.
    pub(crate) records: Vec<ChangeRecord>,
    /// Whether a shard was read to its end: its children can be read now.
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

    /// Finds the shards that there are now. New ones are read from where they were left, as the positions say.
    pub(crate) async fn find(&mut self, known: &Positions) -> Result<()> {
        let mut found = Vec::new();
        for stream in self.streams().await? {
            if let Some((key_schema, view)) = self.describe(&stream, known, &mut found).await? {
                (self.key_schema, self.view) = (key_schema, Some(view));
            }
        }
        if !self.accepts_trimmed {
            self.check_found(known, &found)?;
        }
        for shard in &mut found {
            let place = self.shards.iter().position(|old| old.key == shard.key);
            if let Some(place) = place {
                *shard = self.shards.swap_remove(place);
            }
        }
        self.shards = found;
        Ok(())
    }

    /// Sees that nothing is gone that was not read.
    fn check_found(&self, known: &Positions, found: &[Shard]) -> Result<()> {
        let is_found = |key: &String| found.iter().any(|shard| shard.key == *key);
        let place_of = |key: &String| {
            let read = self.shards.iter().find(|shard| shard.key == *key);
            read.map(|shard| &shard.place).or_else(|| known.0.get(key))
        };
        let is_lost = |key: &String| !is_found(key) && place_of(key) != Some(&Place::End);
        let mut begun = self.shards.iter().map(|s| &s.key).chain(known.0.keys());
        if let Some(key) = begun.find(|key| is_lost(key)) {
            let place = place_of(key).map_or_else(String::new, |place| format!("place={place:?}"));
            return Err(lost(key, &place));
        }
        if self.is_first_time(known) {
            return Ok(());
        }
        for shard in found.iter().filter(|shard| place_of(&shard.key).is_none()) {
            if let Some(parent) = shard.parent.as_ref().filter(|parent| is_lost(parent)) {
                return Err(lost(parent, &format!("child={}", shard.key)));
            }
        }
        Ok(())
    }

    /// Whether nothing was read ever, nor found.
    fn is_first_time(&self, known: &Positions) -> bool {
        known.0.is_empty() && self.shards.is_empty()
    }

    /// The change streams of the table, the oldest first.
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
        known: &Positions,
        found: &mut Vec<Shard>,
    ) -> Result<Option<(Vec<KeySchemaElement>, StreamView)>> {
        let mut request = DescribeStream {
            stream_arn: stream.arn.clone(),
            ..DescribeStream::default()
        };
        let key = |id: &str| format!("{}/{id}", stream.label);
        let is_first_time = self.is_first_time(known);
        let begun = |start: String| Place::Begun((!is_first_time).then_some(start));
        loop {
            let page = match self.engine().describe_stream(request.clone()).await {
                // It has just been forgotten.
                Err(StoreError::ResourceNotFound(_)) => return Ok(None),
                page => page?,
            };
            found.extend(page.shards.into_iter().map(|shard| Shard {
                stream_arn: stream.arn.clone(),
                key: key(&shard.id),
                parent: shard.parent_id.as_deref().map(key),
                place: match known.0.get(&key(&shard.id)) {
                    Some(place) => place.clone(),
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

    /// Reads a page of each shard whose turn it is: about so many records in all, but at least one of each.
    pub(crate) async fn read(&mut self, records_max: usize) -> Result<Round> {
        let open = self.shards.iter().filter(|shard| !shard.is_done());
        let stream_arn = open.clone().next().map(|shard| shard.stream_arn.clone());
        let open: BTreeSet<String> = open.map(|shard| shard.key.clone()).collect();
        let (engine, accepts_trimmed) = (self.db.engine().as_ref(), self.accepts_trimmed);
        let has_turn = |shard: &&mut Shard| {
            let waits = shard.parent.as_ref().is_some_and(|key| open.contains(key));
            !shard.is_done() && !waits && Some(&shard.stream_arn) == stream_arn.as_ref()
        };
        let turns: Vec<&mut Shard> = self.shards.iter_mut().filter(has_turn).collect();
        // A page may be empty although more follows. Who asks for more gets past it sooner.
        let limit = if self.was_empty {
            GET_RECORDS_MAX
        } else {
            (records_max / turns.len().max(1)).clamp(1, GET_RECORDS_MAX)
        };
        let mut pages: Vec<BoxFuture<'_, Result<Round>>> = Vec::with_capacity(turns.len());
        for shard in turns {
            pages.push(Box::pin(shard.read(engine, limit, accepts_trimmed)));
        }
        let mut round = Round::default();
        for page in side_by_side::all(SHARDS_AT_ONCE, pages).await {
            let Round { records, has_ended } = page?;
            round.records.extend(records);
            round.has_ended |= has_ended;
        }
        self.was_empty = round.records.is_empty();
        Ok(round)
    }

    /// How far each shard was read.
    pub(crate) fn positions(&self) -> Positions {
        let read = self.shards.iter();
        let read = read.map(|shard| (shard.key.clone(), shard.place.clone()));
        Positions(read.collect())
    }

    /// Those of the positions whose shards are there no more.
    pub(crate) fn gone(&self, known: &Positions) -> BTreeSet<String> {
        let is_gone = |key: &&String| !self.shards.iter().any(|shard| shard.key == **key);
        known.0.keys().filter(is_gone).cloned().collect()
    }

    /// The key of the table, and the images that its newest stream holds.
    pub(crate) fn shape(&self) -> (&[KeySchemaElement], Option<StreamView>) {
        (&self.key_schema, self.view)
    }

    /// What is to be held for the consumer of this name, who is done up to these positions, so that nothing is trimmed
    /// that it is not done with.
    pub(crate) fn holds(&self, consumer: &str, done: &Positions) -> Vec<HoldChanges> {
        let streams: BTreeSet<&String> = self.shards.iter().map(|s| &s.stream_arn).collect();
        let hold = |stream_arn: &String| HoldChanges {
            consumer: consumer.to_owned(),
            stream_arn: stream_arn.clone(),
            after_sequence: self.done_up_to(stream_arn, done),
        };
        streams.into_iter().map(hold).collect()
    }

    /// The last record of a stream up to which all is done; `None` if nothing more can come.
    fn done_up_to(&self, stream_arn: &str, done: &Positions) -> Option<String> {
        let of_stream = self.shards.iter().filter(|s| s.stream_arn == stream_arn);
        let places = of_stream.map(|shard| done.0.get(&shard.key));
        let open = places.filter(|place| *place != Some(&Place::End));
        let done = open.map(|place| match place {
            Some(Place::After(sequence)) => sequence.as_str(),
            _ => NOTHING_READ,
        });
        done.min_by_key(|sequence| sequence_key(sequence))
            .map(str::to_owned)
    }

    fn engine(&self) -> &dyn Engine {
        self.db.engine().as_ref()
    }
}

/// Before all records.
const NOTHING_READ: &str = "0";

impl Shard {
    fn is_done(&self) -> bool {
        self.place == Place::End
    }

    async fn read(
        &mut self,
        engine: &dyn Engine,
        limit: usize,
        accepts_trimmed: bool,
    ) -> Result<Round> {
        let iterator = match self.iterator.take() {
            Some(iterator) => iterator,
            None => self.iterator(engine, accepts_trimmed).await?,
        };
        let request = GetRecords {
            iterator,
            limit: Some(limit),
        };
        let page = match engine.get_records(request).await {
            // It has waited too long. The next look takes a new one.
            Err(StoreError::ExpiredIterator(_)) => return Ok(Round::default()),
            // It has just been forgotten.
            Err(StoreError::ResourceNotFound(_)) if accepts_trimmed => GetRecordsOutput::default(),
            page => page.map_err(|error| self.failed(error))?,
        };
        if let Some(last) = page.records.last() {
            self.place = Place::After(last.sequence.clone());
        }
        let has_ended = page.next_iterator.is_none();
        if has_ended {
            self.place = Place::End;
        }
        self.iterator = page.next_iterator;
        Ok(Round {
            records: page.records,
            has_ended,
        })
    }

    async fn iterator(&self, engine: &dyn Engine, accepts_trimmed: bool) -> Result<String> {
        let ask = |kind| {
            engine.get_shard_iterator(GetShardIterator {
                stream_arn: self.stream_arn.clone(),
                shard_id: self.id.clone(),
                kind,
            })
        };
        let kind = match &self.place {
            Place::After(sequence) => IteratorKind::AfterSequenceNumber(sequence.clone()),
            _ => IteratorKind::TrimHorizon,
        };
        if let (Place::Begun(Some(start)), false) = (&self.place, accepts_trimmed) {
            // Only to see whether it can be asked for: no record may have this very number.
            match ask(IteratorKind::AtSequenceNumber(start.clone())).await {
                Err(error @ StoreError::TrimmedDataAccess(_)) => return Err(self.failed(error)),
                Err(error) if error.is_retryable() => return Err(error.into()),
                _ => {}
            }
        }
        let answer = match ask(kind).await {
            Err(StoreError::TrimmedDataAccess(_)) if accepts_trimmed => {
                ask(IteratorKind::TrimHorizon).await
            }
            answer => answer,
        };
        answer.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: StoreError) -> Error {
        match error {
            StoreError::TrimmedDataAccess(_) | StoreError::ResourceNotFound(_) => {
                lost(&self.key, &format!("place={:?}", self.place)).with_source(error)
            }
            error => error.into(),
        }
    }
}

/// Holds change records, where the engine can, beyond those that are held already.
pub(crate) async fn hold(db: &Db, holds: &[HoldChanges], held: &[HoldChanges]) -> Result<()> {
    if !db.engine().capabilities().change_holds {
        return Ok(());
    }
    for hold in holds.iter().filter(|hold| !held.contains(hold)) {
        match db.engine().hold_changes(hold.clone()).await {
            // Somebody else under this name is further on. If nobody is, reading tells.
            Ok(()) | Err(StoreError::TrimmedDataAccess(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Gives up what is held.
pub(crate) async fn release(db: &Db, holds: Vec<HoldChanges>) -> Result<()> {
    for hold in holds {
        let hold = HoldChanges {
            after_sequence: None,
            ..hold
        };
        db.engine().hold_changes(hold).await?;
    }
    Ok(())
}

/// The error of a shard of which records are gone, or the shard itself.
fn lost(shard: &str, fact: &str) -> Error {
    let message = format!("change records may be gone that were not read: shard={shard} {fact}");
    Error::new(ErrorKind::MissingEvents, message)
}
