//! Change streams.

use std::collections::HashSet;

use aws_sdk_dynamodbstreams::operation::{
    describe_stream, get_records, get_shard_iterator, list_streams,
};
use aws_sdk_dynamodbstreams::types;
use floe_store::limits::SEQUENCE_NUMBER_CHARS;
use floe_store::op::{
    ChangeKind, ChangeRecord, DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator,
    IteratorKind, KeyRole, KeySchemaElement, ListStreams, ListStreamsOutput, ServiceIdentity,
    Shard, StreamDescription, StreamStatus, StreamSummary,
};
use floe_store::{Error, Item, Name, Result};

use super::value::stream_item;
use super::{Client, count, limit, moment, named, required, sent, view};
use crate::retry::{Answer, Failure};

impl Client {
    /// A page of streams, also those of tables that are not ours, by their names in the store.
    pub(crate) async fn list_streams(&self, input: &ListStreams) -> Answer<ListStreamsOutput> {
        let table = input.table_name.as_deref();
        let request = list_streams::ListStreamsInput::builder()
            .set_table_name(table.map(|name| self.outside(name)))
            .set_exclusive_start_stream_arn(input.start_after.clone())
            .set_limit(limit(input.limit));
        let answer = sent!(self.streams, request, table.as_slice())?;
        let streams = answer.streams.unwrap_or_default().into_iter();
        Ok(ListStreamsOutput {
            streams: streams.map(summary).collect(),
            last_arn: answer.last_evaluated_stream_arn,
        })
    }

    pub(crate) async fn describe_stream(
        &self,
        input: &DescribeStream,
    ) -> Answer<StreamDescription> {
        let request = describe_stream::DescribeStreamInput::builder()
            .stream_arn(&input.stream_arn)
            .set_exclusive_start_shard_id(input.start_after.clone())
            .set_limit(limit(input.limit));
        let answer = sent!(self.streams, request, &[])?;
        let stream = required(answer.stream_description, "StreamDescription")?;
        let mut description = description(stream)?;
        description.table_name = self.names.own(description.table_name);
        Ok(description)
    }

    pub(crate) async fn get_shard_iterator(&self, input: &GetShardIterator) -> Answer<String> {
        let (kind, sequence) = match &input.kind {
            IteratorKind::TrimHorizon => ("TRIM_HORIZON", None),
            IteratorKind::Latest => ("LATEST", None),
            IteratorKind::AtSequenceNumber(number) => ("AT_SEQUENCE_NUMBER", Some(number)),
            IteratorKind::AfterSequenceNumber(number) => ("AFTER_SEQUENCE_NUMBER", Some(number)),
        };
        let request = get_shard_iterator::GetShardIteratorInput::builder()
            .stream_arn(&input.stream_arn)
            .shard_id(&input.shard_id)
            .shard_iterator_type(kind.into())
            .set_sequence_number(sequence.map(|number| narrow(number).to_owned()));
        let answer = sent!(self.streams, request, &[])?;
        Ok(required(answer.shard_iterator, "ShardIterator")?)
    }

    pub(crate) async fn get_records(&self, input: &GetRecords) -> Answer<GetRecordsOutput> {
        let request = get_records::GetRecordsInput::builder()
            .shard_iterator(&input.iterator)
            .set_limit(limit(input.limit));
        let answer = sent!(self.streams, request, &[]).map_err(too_many_readers)?;
        let records = answer.records.unwrap_or_default().into_iter();
        let records: Result<_> = records.map(record).collect();
        Ok(GetRecordsOutput {
            records: records?,
            next_iterator: answer.next_shard_iterator,
        })
    }
}

/// Of records, the store has one limit: how often they are read.
fn too_many_readers(failure: Failure) -> Failure {
    match failure {
        Failure::Refused(Error::LimitExceeded(message)) => {
            Failure::Refused(Error::Throttling(message))
        }
        other => other,
    }
}

/// A sequence number in as many digits as one can have, so that the order of texts is that of numbers.
fn wide(number: &str) -> String {
    format!("{number:0>width$}", width = *SEQUENCE_NUMBER_CHARS.end())
}

/// A sequence number as the store has it.
fn narrow(number: &str) -> &str {
    let padding = number.len().saturating_sub(*SEQUENCE_NUMBER_CHARS.start());
    let zeros = number.bytes().take_while(|digit| *digit == b'0').count();
    number.get(zeros.min(padding)..).unwrap_or(number)
}

fn summary(answer: types::Stream) -> StreamSummary {
    StreamSummary {
        arn: answer.stream_arn.unwrap_or_default(),
        table_name: answer.table_name.unwrap_or_default(),
        label: answer.stream_label.unwrap_or_default(),
    }
}

fn description(answer: types::StreamDescription) -> Result<StreamDescription> {
    let key = answer.key_schema.unwrap_or_default().into_iter();
    let shards = answer.shards.unwrap_or_default().into_iter();
    let shards: Result<Vec<_>> = shards.map(shard).collect();
    Ok(StreamDescription {
        arn: required(answer.stream_arn, "StreamArn")?,
        label: answer.stream_label.unwrap_or_default(),
        table_name: answer.table_name.unwrap_or_default(),
        key_schema: key.map(key_element).collect::<Result<_>>()?,
        view: view(answer.stream_view_type.as_ref())?,
        status: match answer.stream_status {
            Some(types::StreamStatus::Enabled | types::StreamStatus::Enabling) => {
                StreamStatus::Enabled
            }
            _ => StreamStatus::Disabled,
        },
        created: moment(answer.creation_request_date_time),
        shards: parents_first(shards?),
        last_shard_id: answer.last_evaluated_shard_id,
    })
}

fn key_element(element: types::KeySchemaElement) -> Result<KeySchemaElement> {
    Ok(KeySchemaElement {
        name: Name::from(element.attribute_name),
        role: named(
            Some(&element.key_type),
            KeyRole::from_name,
            "a key with an unknown role",
        )?,
    })
}

fn shard(answer: types::Shard) -> Result<Shard> {
    let range = answer.sequence_number_range;
    let start = range.as_ref().and_then(|r| r.starting_sequence_number());
    let end = range.as_ref().and_then(|r| r.ending_sequence_number());
    Ok(Shard {
        id: required(answer.shard_id, "ShardId")?,
        parent_id: answer.parent_shard_id,
        starting_sequence: wide(start.unwrap_or_default()),
        ending_sequence: end.map(wide),
    })
}

/// The shards of a page, each after its parent if that is on the page. The store promises no order.
fn parents_first(mut waiting: Vec<Shard>) -> Vec<Shard> {
    let mut ordered = Vec::with_capacity(waiting.len());
    loop {
        let ids: HashSet<String> = waiting.iter().map(|shard| shard.id.clone()).collect();
        let waits = |shard: &Shard| shard.parent_id.as_ref().is_some_and(|id| ids.contains(id));
        let (later, mut next): (Vec<_>, Vec<_>) = waiting.into_iter().partition(waits);
        if next.is_empty() {
            // None is left, unless shards are parents of each other.
            ordered.extend(later);
            return ordered;
        }
        ordered.append(&mut next);
        waiting = later;
    }
}

fn record(answer: types::Record) -> Result<ChangeRecord> {
    let change = required(answer.dynamodb, "dynamodb")?;
    let image = |image: Option<_>| image.map(stream_item).transpose();
    let keys = image(change.keys)?.unwrap_or_default();
    let (old_image, new_image): (Option<Item>, Option<Item>) =
        (image(change.old_image)?, image(change.new_image)?);
    Ok(ChangeRecord {
        event_id: answer.event_id.unwrap_or_default(),
        kind: named(
            answer.event_name.as_ref(),
            ChangeKind::from_name,
            "a change of an unknown kind",
        )?,
        keys,
        old_image,
        new_image,
        sequence: wide(&required(change.sequence_number, "SequenceNumber")?),
        size_bytes: usize::try_from(count(change.size_bytes)).unwrap_or_default(),
        view: view(change.stream_view_type.as_ref())?,
        created: moment(change.approximate_creation_date_time),
        identity: answer.user_identity.as_ref().and_then(identity),
    })
}

/// Who made a change that no user made.
fn identity(answer: &types::Identity) -> Option<ServiceIdentity> {
    let is_expiry = answer.principal_id.as_deref() == Some("dynamodb.amazonaws.com")
        && answer.r#type.as_deref() == Some("Service");
    is_expiry.then_some(ServiceIdentity::Expiry)
}

#[cfg(test)]
mod tests;
