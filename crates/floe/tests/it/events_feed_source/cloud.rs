//! Change streams as DynamoDB keeps them, around an engine whose own stream is one shard that never ends.
//!
//! Records are spread over shards by the key of their item. Shards are closed and go on in children, and are forgotten
//! when they are old; records are trimmed; a stream that is switched on again is another one. The test says when.
//! Pages are short and often empty, iterators grow old, and each request gives others a turn before and after it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, MutexGuard};

use floe_local::LocalEngine;
use floe_store::op::*;
use floe_store::table::StreamView;
use floe_store::{
    BoxFuture, Capabilities, Engine, Error, Result, Timestamp, each_operation, forward_to,
};

/// How many requests for records get through between two that come to an old iterator.
const EXPIRED_EACH: u64 = 17;

/// Of so many pages of a shard one is empty, whatever there is.
const EMPTY_EACH: u64 = 3;

pub(crate) struct Cloud {
    inner: LocalEngine,
    table: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    streams: Vec<Stream>,
    /// Up to where the records of the engine are spread over shards.
    spread: Option<String>,
    /// How many pages of records were asked for.
    pages: u64,
    shards: u32,
    /// How many streams there were.
    switched: u32,
}

struct Stream {
    label: String,
    shards: Vec<SomeShard>,
}

/// A shard, with what it has forgotten.
struct SomeShard {
    id: String,
    parent: Option<String>,
    /// The first and the last hash of its keys.
    hashes: (u64, u64),
    start: String,
    is_closed: bool,
    /// Nobody finds it any more.
    is_gone: bool,
    records: Vec<ChangeRecord>,
    /// How many pages of it were asked for.
    pages: u64,
    /// What is before it cannot be asked for.
    trimmed: Option<String>,
}

impl SomeShard {
    fn is_open(&self) -> bool {
        !self.is_closed && !self.is_gone
    }

    /// The children of a shard begin where it ends.
    fn child(&self, id: String, hashes: (u64, u64), start: String) -> Self {
        Self {
            id,
            parent: Some(self.id.clone()),
            hashes,
            start,
            is_closed: false,
            is_gone: false,
            records: Vec::new(),
            pages: 0,
            trimmed: None,
        }
    }
}

impl Cloud {
    /// Streams of this table, of which there is one with one shard.
    pub(crate) fn new(table: &str) -> Self {
        let cloud = Self {
            inner: LocalEngine::memory().unwrap(),
            table: table.to_owned(),
            state: Mutex::default(),
        };
        cloud.switch_on_again();
        cloud
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Spreads what was written since over the open shards.
    pub(crate) async fn spread(&self) {
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
        let kind = match self.state().spread.clone() {
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
                .for_each(|record| self.state().take(record));
        }
    }

    /// Closes the shard of this number among the open ones, and goes on in so many children.
    pub(crate) fn go_on(&self, number: usize, children: u64) {
        self.state().go_on(number, children);
    }

    /// Forgets all closed shards.
    pub(crate) fn forget_closed(&self) {
        let mut state = self.state();
        for shard in state.streams.iter_mut().flat_map(|s| &mut s.shards) {
            shard.is_gone |= shard.is_closed;
        }
        let newest = state.streams.len() - 1;
        let mut at = 0..;
        state.streams.retain(|stream| {
            let is_newest = at.next() == Some(newest);
            is_newest || stream.shards.iter().any(|shard| !shard.is_gone)
        });
    }

    /// Trims all records that there are.
    pub(crate) fn trim(&self) {
        for stream in &mut self.state().streams {
            for shard in &mut stream.shards {
                if let Some(last) = shard.records.last() {
                    shard.trimmed = Some(last.sequence.clone());
                }
                shard.records.clear();
            }
        }
    }

    /// Closes all shards, and begins another stream.
    pub(crate) fn switch_on_again(&self) {
        let mut state = self.state();
        for shard in state.streams.iter_mut().flat_map(|s| &mut s.shards) {
            shard.is_closed = true;
        }
        let (id, start) = (state.new_id(), state.next_sequence());
        state.switched += 1;
        let number = state.switched - 1;
        state.streams.push(Stream {
            label: format!("2026-01-01T00:00:00.{number:03}"),
            shards: vec![SomeShard {
                id,
                parent: None,
                hashes: (0, u64::MAX),
                start,
                is_closed: false,
                is_gone: false,
                records: Vec::new(),
                pages: 0,
                trimmed: None,
            }],
        });
    }

    /// How many shards are open.
    pub(crate) fn open(&self) -> usize {
        let state = self.state();
        let shards = state.streams.iter().flat_map(|stream| &stream.shards);
        shards.filter(|shard| shard.is_open()).count()
    }
}

impl State {
    fn new_id(&mut self) -> String {
        self.shards += 1;
        format!("shardId-{:020}", self.shards)
    }

    /// The number that comes after all that were spread.
    fn next_sequence(&self) -> String {
        let last = self.spread.as_deref().unwrap_or("000000000000000000000");
        let next = last.parse::<u128>().unwrap() + 1;
        format!("{next:0width$}", width = last.len())
    }

    fn take(&mut self, record: ChangeRecord) {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", record.keys).hash(&mut hasher);
        let hash = hasher.finish();
        self.spread = Some(record.sequence.clone());
        let stream = self.streams.last_mut().unwrap();
        let is_its = |shard: &&mut SomeShard| {
            shard.is_open() && (shard.hashes.0..=shard.hashes.1).contains(&hash)
        };
        let shard = stream.shards.iter_mut().find(is_its).unwrap();
        shard.records.push(record);
    }

    fn go_on(&mut self, number: usize, children: u64) {
        let ids: Vec<String> = (0..children).map(|_| self.new_id()).collect();
        let start = self.next_sequence();
        let stream = self.streams.last_mut().unwrap();
        let mut open = stream.shards.iter_mut().filter(|shard| shard.is_open());
        let Some(shard) = open.nth(number) else {
            return;
        };
        shard.is_closed = true;
        let (low, high) = (u128::from(shard.hashes.0), u128::from(shard.hashes.1));
        let edge = |number: u64| {
            let edge = low + (high - low + 1) * u128::from(number) / u128::from(children);
            u64::try_from(edge).ok()
        };
        let born: Vec<SomeShard> = (0..)
            .zip(ids)
            .map(|(number, id)| {
                let last = edge(number + 1).map_or(u64::MAX, |edge| edge - 1);
                shard.child(id, (edge(number).unwrap(), last), start.clone())
            })
            .collect();
        stream.shards.extend(born);
    }

    fn stream(&self, arn: &str) -> Result<&Stream> {
        let found = self.streams.iter().find(|stream| arn_of(stream) == arn);
        found.ok_or_else(|| missing_stream(arn))
    }

    fn shard(&self, arn: &str, id: &str) -> Result<&SomeShard> {
        let mut shards = self.stream(arn)?.shards.iter();
        let found = shards.find(|shard| shard.id == id && !shard.is_gone);
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
                    return Err(Error::TrimmedDataAccess("it is gone".to_owned()));
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
        if self.pages.is_multiple_of(EXPIRED_EACH) {
            return Err(Error::ExpiredIterator("it is old".to_owned()));
        }
        let parts: Vec<&str> = input.iterator.split('|').collect();
        let [arn, id, place, mark] = parts[..] else {
            panic!("{input:?}");
        };
        let shards = self.streams.iter_mut().flat_map(|s| &mut s.shards);
        let mut shards = shards.filter(|shard| shard.id == id && !shard.is_gone);
        let shard = shards.next().ok_or_else(|| missing_shard(arn, id))?;
        shard.pages += 1;
        let is_ahead = |record: &&ChangeRecord| match mark {
            "at" => record.sequence.as_str() >= place,
            _ => record.sequence.as_str() > place,
        };
        let limit = match shard.pages.is_multiple_of(EMPTY_EACH) {
            true => 0,
            false => input.limit.unwrap_or(1_000).min(3),
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
        let shards = stream.shards.iter().filter(|shard| !shard.is_gone);
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

    /// The streams, a page each, the newest first.
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

fn arn_of(stream: &Stream) -> String {
    format!("arn:cloud/{}", stream.label)
}

/// Gives others a turn.
async fn yields<T>(output: impl Future<Output = T>) -> T {
    tokio::task::yield_now().await;
    let output = output.await;
    tokio::task::yield_now().await;
    output
}

macro_rules! yielding {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(yields(self.inner.$operation(input)))
        }
    )*};
}

impl Engine for Cloud {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.change_holds = false;
        capabilities
    }

    forward_to!(self.inner; now);

    fn list_streams(&self, input: ListStreams) -> BoxFuture<'_, Result<ListStreamsOutput>> {
        let listed = async move { Ok(self.state().list(&self.table, &input)) };
        Box::pin(yields(listed))
    }

    fn describe_stream(&self, input: DescribeStream) -> BoxFuture<'_, Result<StreamDescription>> {
        Box::pin(yields(async move { self.state().describe(&input) }))
    }

    fn get_shard_iterator(&self, input: GetShardIterator) -> BoxFuture<'_, Result<String>> {
        Box::pin(yields(async move { self.state().iterator(&input) }))
    }

    fn get_records(&self, input: GetRecords) -> BoxFuture<'_, Result<GetRecordsOutput>> {
        Box::pin(yields(async move { self.state().records(&input) }))
    }

    each_operation!(yielding; items, tables);
}
