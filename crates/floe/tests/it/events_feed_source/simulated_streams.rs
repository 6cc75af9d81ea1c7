//! An engine that simulates the change streams of DynamoDB on top of the embedded engine, whose stream is one open
//! shard.
//!
//! Records are distributed over shards by the key of their item. Shards are closed, continue in child shards, and are
//! removed; records are trimmed; a stream that is enabled again is a new stream. The test controls when. Pages are
//! short and often empty, iterators expire, and each request yields before and after it runs.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard};

use floe_local::LocalEngine;
use floe_store::op::*;
use floe_store::table::StreamView;
use floe_store::{
    BoxFuture, Capabilities, Engine, Error, Result, Timestamp, each_operation, forward_to,
};

/// Of this many `GetRecords` requests, one fails with an expired iterator.
const EXPIRED_EVERY: u64 = 17;

/// Of this many pages of a shard, one is empty even if there are records.
const EMPTY_EVERY: u64 = 3;

pub(crate) struct SimulatedStreams {
    inner: LocalEngine,
    table: String,
    state: Mutex<StreamsState>,
}

#[derive(Default)]
struct StreamsState {
    streams: Vec<SimulatedStream>,
    /// The sequence number of the last record that was distributed to a shard.
    last_distributed: Option<String>,
    /// Number of `GetRecords` requests.
    pages: u64,
    /// Number of shards created so far.
    shards_created: u32,
    /// Number of streams created so far.
    streams_created: u32,
}

struct SimulatedStream {
    label: String,
    shards: Vec<SimulatedShard>,
}

struct SimulatedShard {
    id: String,
    parent: Option<String>,
    /// The first and the last hash of the keys in this shard.
    hashes: (u64, u64),
    start: String,
    is_closed: bool,
    /// Whether it no longer appears in descriptions and cannot be read.
    is_removed: bool,
    records: Vec<ChangeRecord>,
    /// Number of `GetRecords` requests for it.
    pages: u64,
    /// The sequence number of the last trimmed record.
    trimmed: Option<String>,
}

impl SimulatedShard {
    fn is_open(&self) -> bool {
        !self.is_closed && !self.is_removed
    }

    /// Creates a child shard, which starts where this one ends.
    fn child(&self, id: String, hashes: (u64, u64), start: String) -> Self {
        Self {
            id,
            parent: Some(self.id.clone()),
            hashes,
            start,
            is_closed: false,
            is_removed: false,
            records: Vec::new(),
            pages: 0,
            trimmed: None,
        }
    }
}

impl SimulatedStreams {
    /// Creates an engine that simulates the streams of this table, with one stream of one shard.
    pub(crate) fn new(table: &str) -> Self {
        let streams = Self {
            inner: LocalEngine::memory().unwrap(),
            table: table.to_owned(),
            state: Mutex::default(),
        };
        streams.recreate_stream();
        streams
    }

    fn state(&self) -> MutexGuard<'_, StreamsState> {
        self.state.lock().unwrap()
    }

    /// Distributes the new records of the embedded engine over the open shards.
    pub(crate) async fn distribute_records(&self) {
        let request = ListStreams {
            table_name: Some(self.table.clone()),
            ..ListStreams::default()
        };
        let streams = self.inner.list_streams(request).await.unwrap().streams;
        let Some(stream) = streams.first() else {
            return;
        };
        let described = DescribeStream {
            stream_arn: stream.arn.clone(),
            ..DescribeStream::default()
        };
        let described = self.inner.describe_stream(described).await.unwrap();
        let kind = match self.state().last_distributed.clone() {
            Some(sequence) => IteratorKind::AfterSequenceNumber(sequence),
            None => IteratorKind::TrimHorizon,
        };
        let iterator = GetShardIterator {
            stream_arn: stream.arn.clone(),
            shard_id: described.shards[0].id.clone(),
            kind,
        };
        let mut next = Some(self.inner.get_shard_iterator(iterator).await.unwrap());
        while let Some(iterator) = next {
            let limit = Some(1_000);
            let request = GetRecords { iterator, limit };
            let page = self.inner.get_records(request).await.unwrap();
            next = page.next_iterator.filter(|_| !page.records.is_empty());
            page.records
                .into_iter()
                .for_each(|record| self.state().add_record(record));
        }
    }

    /// Closes an open shard, given its number among the open ones, and adds child shards.
    pub(crate) fn split_shard(&self, number: usize, children: u64) {
        self.state().split_shard(number, children);
    }

    /// Removes all closed shards, and streams without shards except the newest.
    pub(crate) fn remove_closed_shards(&self) {
        let mut state = self.state();
        for shard in state.streams.iter_mut().flat_map(|s| &mut s.shards) {
            shard.is_removed |= shard.is_closed;
        }
        let newest = state.streams.len() - 1;
        let mut numbers = 0..;
        state.streams.retain(|stream| {
            let is_newest = numbers.next() == Some(newest);
            is_newest || stream.shards.iter().any(|shard| !shard.is_removed)
        });
    }

    /// Trims all records.
    pub(crate) fn trim_records(&self) {
        for stream in &mut self.state().streams {
            for shard in &mut stream.shards {
                if let Some(last) = shard.records.last() {
                    shard.trimmed = Some(last.sequence.clone());
                }
                shard.records.clear();
            }
        }
    }

    /// Disables the stream and enables it again: closes all shards, and adds a stream.
    pub(crate) fn recreate_stream(&self) {
        let mut state = self.state();
        for shard in state.streams.iter_mut().flat_map(|s| &mut s.shards) {
            shard.is_closed = true;
        }
        let (id, start) = (state.new_shard_id(), state.next_sequence());
        let number = state.streams_created;
        state.streams_created += 1;
        state.streams.push(SimulatedStream {
            label: format!("2026-01-01T00:00:00.{number:03}"),
            shards: vec![SimulatedShard {
                id,
                parent: None,
                hashes: (0, u64::MAX),
                start,
                is_closed: false,
                is_removed: false,
                records: Vec::new(),
                pages: 0,
                trimmed: None,
            }],
        });
    }

    /// Number of open shards.
    pub(crate) fn open_shards(&self) -> usize {
        let state = self.state();
        let shards = state.streams.iter().flat_map(|stream| &stream.shards);
        shards.filter(|shard| shard.is_open()).count()
    }
}

impl StreamsState {
    fn new_shard_id(&mut self) -> String {
        self.shards_created += 1;
        format!("shardId-{:020}", self.shards_created)
    }

    /// The sequence number after the last distributed record.
    fn next_sequence(&self) -> String {
        let last = self
            .last_distributed
            .as_deref()
            .unwrap_or("000000000000000000000");
        let next = last.parse::<u128>().unwrap() + 1;
        format!("{next:0width$}", width = last.len())
    }

    fn add_record(&mut self, record: ChangeRecord) {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", record.keys).hash(&mut hasher);
        let hash = hasher.finish();
        self.last_distributed = Some(record.sequence.clone());
        let stream = self.streams.last_mut().unwrap();
        let contains_key = |shard: &&mut SimulatedShard| {
            shard.is_open() && (shard.hashes.0..=shard.hashes.1).contains(&hash)
        };
        let shard = stream.shards.iter_mut().find(contains_key).unwrap();
        shard.records.push(record);
    }

    fn split_shard(&mut self, number: usize, children: u64) {
        let ids: Vec<String> = (0..children).map(|_| self.new_shard_id()).collect();
        let start = self.next_sequence();
        let stream = self.streams.last_mut().unwrap();
        let mut open = stream.shards.iter_mut().filter(|shard| shard.is_open());
        let Some(shard) = open.nth(number) else {
            return;
        };
        shard.is_closed = true;
        let (low, high) = (u128::from(shard.hashes.0), u128::from(shard.hashes.1));
        // The first hash of the child with this number; `None` beyond the last hash.
        let first_hash = |number: u64| {
            let hash = low + (high - low + 1) * u128::from(number) / u128::from(children);
            u64::try_from(hash).ok()
        };
        let new_shards: Vec<SimulatedShard> = (0..)
            .zip(ids)
            .map(|(number, id)| {
                let last = first_hash(number + 1).map_or(u64::MAX, |hash| hash - 1);
                shard.child(id, (first_hash(number).unwrap(), last), start.clone())
            })
            .collect();
        stream.shards.extend(new_shards);
    }

    fn stream(&self, arn: &str) -> Result<&SimulatedStream> {
        let found = self.streams.iter().find(|stream| arn_of(stream) == arn);
        found.ok_or_else(|| missing_stream(arn))
    }

    fn shard(&self, arn: &str, id: &str) -> Result<&SimulatedShard> {
        let mut shards = self.stream(arn)?.shards.iter();
        let found = shards.find(|shard| shard.id == id && !shard.is_removed);
        found.ok_or_else(|| missing_shard(arn, id))
    }

    fn iterator(&self, input: &GetShardIterator) -> Result<String> {
        let shard = self.shard(&input.stream_arn, &input.shard_id)?;
        let after = match &input.kind {
            IteratorKind::TrimHorizon => "",
            IteratorKind::Latest => "9",
            IteratorKind::AtSequenceNumber(sequence)
            | IteratorKind::AfterSequenceNumber(sequence) => {
                if shard.trimmed.as_ref().is_some_and(|last| sequence <= last) {
                    return Err(Error::TrimmedDataAccess(
                        "the record was trimmed".to_owned(),
                    ));
                }
                sequence
            }
        };
        let is_at = matches!(input.kind, IteratorKind::AtSequenceNumber(_));
        let mark = if is_at { "at" } else { "after" };
        Ok(format!("{}|{}|{after}|{mark}", input.stream_arn, shard.id))
    }

    fn records(&mut self, input: &GetRecords) -> Result<GetRecordsOutput> {
        self.pages += 1;
        if self.pages.is_multiple_of(EXPIRED_EVERY) {
            return Err(Error::ExpiredIterator(
                "the iterator has expired".to_owned(),
            ));
        }
        let parts: Vec<&str> = input.iterator.split('|').collect();
        let [arn, id, position, mark] = parts[..] else {
            panic!("{input:?}");
        };
        let shards = self.streams.iter_mut().flat_map(|s| &mut s.shards);
        let mut shards = shards.filter(|shard| shard.id == id && !shard.is_removed);
        let shard = shards.next().ok_or_else(|| missing_shard(arn, id))?;
        shard.pages += 1;
        let is_ahead = |record: &&ChangeRecord| match mark {
            "at" => record.sequence.as_str() >= position,
            _ => record.sequence.as_str() > position,
        };
        let limit = if shard.pages.is_multiple_of(EMPTY_EVERY) {
            0
        } else {
            input.limit.unwrap_or(1_000).min(3)
        };
        let mut ahead = shard.records.iter().filter(is_ahead);
        let records: Vec<ChangeRecord> = ahead.by_ref().take(limit).cloned().collect();
        let is_end = shard.is_closed && ahead.next().is_none();
        let next = match records.last() {
            Some(last) => format!("{arn}|{id}|{}|after", last.sequence),
            None => input.iterator.clone(),
        };
        Ok(GetRecordsOutput {
            next_iterator: (!is_end).then_some(next),
            records,
        })
    }

    fn describe(&self, input: &DescribeStream) -> Result<StreamDescription> {
        let stream = self.stream(&input.stream_arn)?;
        let shards = stream.shards.iter().filter(|shard| !shard.is_removed);
        let mut page: Vec<Shard> = shards
            .map(|shard| Shard {
                id: shard.id.clone(),
                parent_id: shard.parent.clone(),
                starting_sequence: shard.start.clone(),
                ending_sequence: shard.is_closed.then(|| "0".to_owned()),
            })
            .skip_while(|shard| input.start_after.as_ref().is_some_and(|id| shard.id <= *id))
            .collect();
        let has_more = page.len() > 2;
        page.truncate(2);
        Ok(StreamDescription {
            arn: input.stream_arn.clone(),
            label: stream.label.clone(),
            table_name: String::new(),
            key_schema: Vec::new(),
            view: StreamView::NewImage,
            status: StreamStatus::Enabled,
            created: Timestamp::default(),
            last_shard_id: page.last().filter(|_| has_more).map(|last| last.id.clone()),
            shards: page,
        })
    }

    /// The streams, newest first, one per page.
    fn list(&self, table: &str, input: &ListStreams) -> ListStreamsOutput {
        let newest_first = self.streams.iter().rev();
        let mut summaries = newest_first.map(|stream| StreamSummary {
            arn: arn_of(stream),
            table_name: table.to_owned(),
            label: stream.label.clone(),
        });
        if let Some(after) = &input.start_after {
            summaries.by_ref().find(|summary| summary.arn == *after);
        }
        let streams: Vec<StreamSummary> = summaries.by_ref().take(1).collect();
        let last = streams.last().map(|last| last.arn.clone());
        ListStreamsOutput {
            last_arn: summaries.next().and(last),
            streams,
        }
    }
}

fn arn_of(stream: &SimulatedStream) -> String {
    format!("arn:simulated/{}", stream.label)
}

/// Yields to other tasks before and after a request.
async fn with_yields<T>(output: impl Future<Output = T>) -> T {
    tokio::task::yield_now().await;
    let output = output.await;
    tokio::task::yield_now().await;
    output
}

macro_rules! yielding {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(with_yields(self.inner.$operation(input)))
        }
    )*};
}

impl Engine for SimulatedStreams {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.change_holds = false;
        capabilities
    }

    forward_to!(self.inner; now);

    fn list_streams(&self, input: ListStreams) -> BoxFuture<'_, Result<ListStreamsOutput>> {
        let listed = async move { Ok(self.state().list(&self.table, &input)) };
        Box::pin(with_yields(listed))
    }

    fn describe_stream(&self, input: DescribeStream) -> BoxFuture<'_, Result<StreamDescription>> {
        Box::pin(with_yields(async move { self.state().describe(&input) }))
    }

    fn get_shard_iterator(&self, input: GetShardIterator) -> BoxFuture<'_, Result<String>> {
        Box::pin(with_yields(async move { self.state().iterator(&input) }))
    }

    fn get_records(&self, input: GetRecords) -> BoxFuture<'_, Result<GetRecordsOutput>> {
        Box::pin(with_yields(async move { self.state().records(&input) }))
    }

    each_operation!(yielding; items, tables);
}
