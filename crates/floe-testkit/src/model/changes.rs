//! Change streams with one shard each and unlimited retention.

use floe_store::env::Timestamp;
use floe_store::limits::{
    DESCRIBE_STREAM_SHARDS_MAX, GET_RECORDS_BYTES_MAX, GET_RECORDS_MAX, LIST_STREAMS_MAX,
    SHARD_ITERATOR_AGE_MAX,
};
use floe_store::op::*;
use floe_store::table::StreamView;
use floe_store::{Error, Item, Result, TableDef};

use super::state::State;
use super::stream::{Stream, sequence_text};

impl State {
    /// Opens a stream. Returns its position among all streams.
    pub(super) fn open_stream(&mut self, table: &TableDef, view: StreamView) -> usize {
        let created = self.env.now();
        let index = self.streams.len();
        self.streams.push(Stream {
            // The position distinguishes streams opened at the same moment.
            label: format!("{:020}.{index:06}", created.as_millis()),
            table_name: table.name.clone(),
            key: table.key.clone(),
            view,
            created,
            shard: Shard {
                id: format!("shardId-{:020}-{index:08x}", created.as_millis()),
                parent_id: None,
                starting_sequence: sequence_text(self.sequence + 1),
                ending_sequence: None,
            },
            records: Vec::new(),
        });
        index
    }

    /// Closes a stream.
    pub(super) fn close_stream(&mut self, index: Option<usize>) {
        let last = sequence_text(self.sequence);
        if let Some(stream) = index.and_then(|index| self.streams.get_mut(index)) {
            let end = last.max(stream.shard.starting_sequence.clone());
            stream.shard.ending_sequence.get_or_insert(end);
        }
    }

    /// Adds the record of a change, if the table has a stream and the item changed.
    pub(super) fn record(
        &mut self,
        table_name: &str,
        keys: &Item,
        old: Option<Item>,
        new: Option<Item>,
        identity: Option<ServiceIdentity>,
    ) {
        let now = self.env.now();
        let table = self.tables.get(table_name);
        let latest = table.and_then(|table| table.latest_stream);
        let stream = latest.and_then(|index| self.streams.get_mut(index));
        let open = stream.filter(|stream| stream.is_open());
        let (Some(stream), Some(kind)) = (open, ChangeKind::of(old.as_ref(), new.as_ref())) else {
            return;
        };
        let old_image = old.filter(|_| stream.view.has_old());
        let new_image = new.filter(|_| stream.view.has_new());
        self.sequence += 1;
        stream.records.push(ChangeRecord {
            event_id: format!("{:032x}", self.sequence),
            kind,
            keys: keys.clone(),
            size_bytes: ChangeRecord::bytes(keys, old_image.as_ref(), new_image.as_ref()),
            old_image,
            new_image,
            sequence: sequence_text(self.sequence),
            view: stream.view,
            created: Timestamp::from_millis(now.as_secs() * 1000),
            identity,
        });
    }

    pub(super) fn list_streams(&mut self, input: &ListStreams) -> Result<ListStreamsOutput> {
        input.validate()?;
        let name = input.table_name.as_ref();
        let wanted = |stream: &&Stream| name.is_none_or(|name| *name == stream.table_name);
        let streams = self.streams.iter().filter(wanted);
        let streams = streams.map(|stream| StreamSummary {
            arn: stream.arn(),
            table_name: stream.table_name.clone(),
            label: stream.label.clone(),
        });
        let mut streams: Vec<StreamSummary> = streams.collect();
        if let Some(start) = &input.start_after {
            let at = streams.iter().position(|stream| stream.arn == *start);
            let at = at.ok_or_else(|| missing_stream(start))?;
            streams.drain(..=at);
        }
        let limit = input.limit.unwrap_or(LIST_STREAMS_MAX);
        let more = streams.len() > limit;
        streams.truncate(limit);
        Ok(ListStreamsOutput {
            last_arn: streams.last().filter(|_| more).map(|s| s.arn.clone()),
            streams,
        })
    }

    pub(super) fn describe_stream(&mut self, input: &DescribeStream) -> Result<StreamDescription> {
        input.validate()?;
        let (_, stream) = self.stream(&input.stream_arn)?;
        let after = |shard: &Shard| input.start_after.as_ref().is_none_or(|id| *id < shard.id);
        let shards = Some(stream.shard.clone()).filter(after).into_iter();
        let limit = input.limit.unwrap_or(DESCRIBE_STREAM_SHARDS_MAX);
        Ok(StreamDescription {
            arn: stream.arn(),
            label: stream.label.clone(),
            table_name: stream.table_name.clone(),
            key_schema: stream.key.elements(),
            view: stream.view,
            status: if stream.is_open() {
                StreamStatus::Enabled
            } else {
                StreamStatus::Disabled
            },
            created: stream.created,
            shards: shards.take(limit).collect(),
            last_shard_id: None,
        })
    }

    pub(super) fn get_shard_iterator(&mut self, input: &GetShardIterator) -> Result<String> {
        input.validate()?;
        let (index, stream) = self.stream(&input.stream_arn)?;
        if stream.shard.id != input.shard_id {
            return Err(missing_shard(&input.stream_arn, &input.shard_id));
        }
        let before = |wanted: &dyn Fn(&str) -> bool| {
            let records = stream.records.iter();
            records
                .take_while(|record| wanted(&record.sequence))
                .count()
        };
        let position = match &input.kind {
            IteratorKind::TrimHorizon => 0,
            IteratorKind::Latest => stream.records.len(),
            IteratorKind::AtSequenceNumber(number) => before(&|own| own < number.as_str()),
            IteratorKind::AfterSequenceNumber(number) => before(&|own| own <= number.as_str()),
        };
        Ok(self.iterator(index, position))
    }

    pub(super) fn get_records(&mut self, input: &GetRecords) -> Result<GetRecordsOutput> {
        input.validate()?;
        let (index, position, made) = parse_iterator(&input.iterator)
            .ok_or_else(|| Error::validation("Invalid ShardIterator"))?;
        let stream = self.streams.get(index);
        let stream = stream.ok_or_else(|| Error::validation("Invalid ShardIterator"))?;
        if self.env.now().since(made) > SHARD_ITERATOR_AGE_MAX {
            return Err(Error::ExpiredIterator(
                "Iterator expired: it is older than 15 minutes".to_owned(),
            ));
        }
        let limit = input.limit.unwrap_or(GET_RECORDS_MAX);
        let mut records = Vec::new();
        let mut bytes = 0;
        for record in stream.records.iter().skip(position).take(limit) {
            bytes += record.size_bytes;
            if bytes > GET_RECORDS_BYTES_MAX && !records.is_empty() {
                break;
            }
            records.push(record.clone());
        }
        let next = position + records.len();
        let done = !stream.is_open() && next >= stream.records.len();
        Ok(GetRecordsOutput {
            records,
            next_iterator: (!done).then(|| self.iterator(index, next)),
        })
    }

    /// Does nothing for an existing stream: the model never trims records.
    pub(super) fn hold_changes(&mut self, input: &HoldChanges) -> Result<()> {
        input.validate()?;
        self.stream(&input.stream_arn).map(drop)
    }

    fn stream(&self, arn: &str) -> Result<(usize, &Stream)> {
        let mut streams = self.streams.iter().enumerate();
        streams
            .find(|(_, stream)| stream.arn() == arn)
            .ok_or_else(|| missing_stream(arn))
    }

    /// The text of an iterator: the stream, the position among its records, and the current time.
    fn iterator(&self, index: usize, position: usize) -> String {
        format!("model/{index}/{position}/{}", self.env.now().as_millis())
    }
}

fn parse_iterator(text: &str) -> Option<(usize, usize, Timestamp)> {
    let mut parts = text.strip_prefix("model/")?.split('/');
    let index = parts.next()?.parse().ok()?;
    let position = parts.next()?.parse().ok()?;
    let made = parts.next()?.parse().ok()?;
    Some((index, position, Timestamp::from_millis(made)))
}
