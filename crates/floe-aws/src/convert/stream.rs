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
use super::{Client, count, limit, parse_enum, required, send, timestamp, view};
use crate::retry::{AttemptResult, Failure};

impl Client {
    /// Returns a page of streams, including those of tables without our prefix, with the table names in the store.
    pub(crate) async fn list_streams(
        &self,
        input: &ListStreams,
    ) -> AttemptResult<ListStreamsOutput> {
        let table = input.table_name.as_deref();
        let request = list_streams::ListStreamsInput::builder()
            .set_table_name(table.map(|name| self.with_prefix(name)))
            .set_exclusive_start_stream_arn(input.start_after.clone())
            .set_limit(limit(input.limit));
        let response = send!(self.streams, request, table.as_slice())?;
        let streams = response.streams.unwrap_or_default().into_iter();
        Ok(ListStreamsOutput {
            streams: streams.map(summary).collect(),
            last_arn: response.last_evaluated_stream_arn,
        })
    }

    pub(crate) async fn describe_stream(
        &self,
        input: &DescribeStream,
    ) -> AttemptResult<StreamDescription> {
        let request = describe_stream::DescribeStreamInput::builder()
            .stream_arn(&input.stream_arn)
            .set_exclusive_start_shard_id(input.start_after.clone())
            .set_limit(limit(input.limit));
        let response = send!(self.streams, request, &[])?;
        let stream = required(response.stream_description, "StreamDescription")?;
        let mut description = description(stream)?;
        description.table_name = self.names.remove_prefix(description.table_name);
        Ok(description)
    }

    pub(crate) async fn get_shard_iterator(
        &self,
        input: &GetShardIterator,
    ) -> AttemptResult<String> {
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
            .set_sequence_number(sequence.map(|number| trim_sequence(number).to_owned()));
        let response = send!(self.streams, request, &[])?;
        Ok(required(response.shard_iterator, "ShardIterator")?)
    }

    pub(crate) async fn get_records(&self, input: &GetRecords) -> AttemptResult<GetRecordsOutput> {
        let request = get_records::GetRecordsInput::builder()
            .shard_iterator(&input.iterator)
            .set_limit(limit(input.limit));
        let response = send!(self.streams, request, &[]).map_err(limit_as_throttling)?;
        let records = response.records.unwrap_or_default().into_iter();
        let records: Result<_> = records.map(record).collect();
        Ok(GetRecordsOutput {
            records: records?,
            next_iterator: response.next_shard_iterator,
        })
    }
}

/// Converts a failure of GetRecords, whose only limit is the rate of reads.
fn limit_as_throttling(failure: Failure) -> Failure {
    match failure {
        Failure::Rejected(Error::LimitExceeded(message)) => {
            Failure::Rejected(Error::Throttling(message))
        }
        other => other,
    }
}

/// Pads a sequence number to the maximum length, so that the order of texts is that of numbers.
fn pad_sequence(number: &str) -> String {
    format!("{number:0>width$}", width = *SEQUENCE_NUMBER_CHARS.end())
}

/// Removes the padding of a sequence number.
fn trim_sequence(number: &str) -> &str {
    let padding = number.len().saturating_sub(*SEQUENCE_NUMBER_CHARS.start());
    let zeros = number.bytes().take_while(|digit| *digit == b'0').count();
    number.get(zeros.min(padding)..).unwrap_or(number)
}

fn summary(response: types::Stream) -> StreamSummary {
    StreamSummary {
        arn: response.stream_arn.unwrap_or_default(),
        table_name: response.table_name.unwrap_or_default(),
        label: response.stream_label.unwrap_or_default(),
    }
}

fn description(response: types::StreamDescription) -> Result<StreamDescription> {
    let key = response.key_schema.unwrap_or_default().into_iter();
    let shards = response.shards.unwrap_or_default().into_iter();
    let shards: Result<Vec<_>> = shards.map(shard).collect();
    Ok(StreamDescription {
        arn: required(response.stream_arn, "StreamArn")?,
        label: response.stream_label.unwrap_or_default(),
        table_name: response.table_name.unwrap_or_default(),
        key_schema: key.map(key_element).collect::<Result<_>>()?,
        view: view(response.stream_view_type.as_ref())?,
        status: match response.stream_status {
            Some(types::StreamStatus::Enabled | types::StreamStatus::Enabling) => {
                StreamStatus::Enabled
            }
            _ => StreamStatus::Disabled,
        },
        created: timestamp(response.creation_request_date_time),
        shards: parents_first(shards?),
        last_shard_id: response.last_evaluated_shard_id,
    })
}

fn key_element(element: types::KeySchemaElement) -> Result<KeySchemaElement> {
    Ok(KeySchemaElement {
        name: Name::from(element.attribute_name),
        role: parse_enum(
            Some(&element.key_type),
            KeyRole::from_name,
            "a key with an unknown role",
        )?,
    })
}

fn shard(response: types::Shard) -> Result<Shard> {
    let range = response.sequence_number_range;
    let start = range.as_ref().and_then(|r| r.starting_sequence_number());
    let end = range.as_ref().and_then(|r| r.ending_sequence_number());
    Ok(Shard {
        id: required(response.shard_id, "ShardId")?,
        parent_id: response.parent_shard_id,
        starting_sequence: pad_sequence(start.unwrap_or_default()),
        ending_sequence: end.map(pad_sequence),
    })
}

/// Sorts the shards of a page so that parents come before their children. The store guarantees no order.
fn parents_first(mut waiting: Vec<Shard>) -> Vec<Shard> {
    let mut ordered = Vec::with_capacity(waiting.len());
    loop {
        let ids: HashSet<String> = waiting.iter().map(|shard| shard.id.clone()).collect();
        let waits = |shard: &Shard| shard.parent_id.as_ref().is_some_and(|id| ids.contains(id));
        let (later, mut next): (Vec<_>, Vec<_>) = waiting.into_iter().partition(waits);
        if next.is_empty() {
            // Nothing is left, unless parents form a cycle.
            ordered.extend(later);
            return ordered;
        }
        ordered.append(&mut next);
        waiting = later;
    }
}

fn record(response: types::Record) -> Result<ChangeRecord> {
    let change = required(response.dynamodb, "dynamodb")?;
    let image = |image: Option<_>| image.map(stream_item).transpose();
    let keys = image(change.keys)?.unwrap_or_default();
    let (old_image, new_image): (Option<Item>, Option<Item>) =
        (image(change.old_image)?, image(change.new_image)?);
    Ok(ChangeRecord {
        event_id: response.event_id.unwrap_or_default(),
        kind: parse_enum(
            response.event_name.as_ref(),
            ChangeKind::from_name,
            "a change of an unknown kind",
        )?,
        keys,
        old_image,
        new_image,
        sequence: pad_sequence(&required(change.sequence_number, "SequenceNumber")?),
        size_bytes: usize::try_from(count(change.size_bytes)).unwrap_or_default(),
        view: view(change.stream_view_type.as_ref())?,
        created: timestamp(change.approximate_creation_date_time),
        identity: response.user_identity.as_ref().and_then(identity),
    })
}

/// Returns the service that made a change, if it was not a user.
fn identity(response: &types::Identity) -> Option<ServiceIdentity> {
    let is_expiry = response.principal_id.as_deref() == Some("dynamodb.amazonaws.com")
        && response.r#type.as_deref() == Some("Service");
    is_expiry.then_some(ServiceIdentity::Expiry)
}

#[cfg(test)]
mod tests;
