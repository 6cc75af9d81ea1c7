//! Change streams: the changes of a table's items, in order per item.
//!
//! ListStreams, DescribeStream, GetShardIterator and GetRecords as in DynamoDB Streams, and [`HoldChanges`], with which
//! a consumer protects its unread records from being trimmed.

use super::constraint::Faults;
use crate::declare::named;
use crate::env::Timestamp;
use crate::error::{Error, Result, ensure};
use crate::item::Item;
use crate::limits::{
    CONSUMER_NAME_BYTES, DESCRIBE_STREAM_SHARDS_MAX, GET_RECORDS_MAX, LIST_STREAMS_MAX,
    SEQUENCE_NUMBER_CHARS, SHARD_ID_CHARS, SHARD_ITERATOR_CHARS, STREAM_ARN_CHARS,
};
use crate::size::item_size;
use crate::table::{KeySchemaElement, StreamView};

/// Lists change streams page by page.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListStreams {
    /// Only streams of this table.
    pub table_name: Option<String>,
    /// The stream after which the page starts.
    pub start_after: Option<String>,
    /// Maximum number of streams, up to 100.
    pub limit: Option<usize>,
}

impl ListStreams {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| {
            if let Some(name) = &self.table_name {
                faults.table_name_by_pattern(name);
            }
            faults.limit(self.limit, LIST_STREAMS_MAX);
        })?;
        self.start_after.as_deref().map_or(Ok(()), check_arn)
    }
}

/// A page of ListStreams.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListStreamsOutput {
    /// The streams.
    pub streams: Vec<StreamSummary>,
    /// The stream after which the next page starts; `None` on the last page.
    pub last_arn: Option<String>,
}

/// A stream in a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSummary {
    /// The ARN.
    pub arn: String,
    /// The table.
    pub table_name: String,
    /// When the stream was enabled.
    pub label: String,
}

/// Requests a stream and its shards, by pages of shards.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeStream {
    /// The stream.
    pub stream_arn: String,
    /// The shard after which the page starts.
    pub start_after: Option<String>,
    /// Maximum number of shards, up to 100.
    pub limit: Option<usize>,
}

impl DescribeStream {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| {
            faults.limit(self.limit, DESCRIBE_STREAM_SHARDS_MAX);
            if let Some(shard) = &self.start_after {
                faults.length(shard, "exclusiveStartShardId", SHARD_ID_CHARS);
            }
        })?;
        check_arn(&self.stream_arn)
    }
}

/// Checks that a text can be a stream ARN. DynamoDB gives no details, not even for one that is too short.
fn check_arn(arn: &str) -> Result<()> {
    let fits = arn.starts_with("arn:") && arn.len() <= *STREAM_ARN_CHARS.end();
    ensure(fits, || Error::validation("Invalid StreamArn"))
}

/// The error for a stream that does not exist.
pub fn missing_stream(arn: &str) -> Error {
    Error::ResourceNotFound(format!(
        "Requested resource not found: Stream: {arn} not found"
    ))
}

/// The error for a shard that does not exist.
pub fn missing_shard(arn: &str, shard_id: &str) -> Error {
    Error::ResourceNotFound(format!(
        "Requested resource not found: Shard: {shard_id} in Stream: {arn} not found"
    ))
}

/// A stream and its shards.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamDescription {
    /// The ARN.
    pub arn: String,
    /// When the stream was enabled.
    pub label: String,
    /// The table.
    pub table_name: String,
    /// The key of the table. DynamoDB omits the types of its attributes here.
    pub key_schema: Vec<KeySchemaElement>,
    /// The images in the records.
    pub view: StreamView,
    /// Whether new changes are recorded.
    pub status: StreamStatus,
    /// When the stream was enabled.
    pub created: Timestamp,
    /// The shards, parents before children.
    pub shards: Vec<Shard>,
    /// The shard after which the next page starts; `None` on the last page.
    pub last_shard_id: Option<String>,
}

/// Whether a stream records new changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamStatus {
    /// New changes are recorded.
    Enabled,
    /// New changes are not recorded; existing records can be read until they are trimmed.
    Disabled,
}

/// A part of a stream. All changes of an item are in one shard or its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The shard id.
    pub id: String,
    /// The shard that must be read before this one, if it still exists.
    pub parent_id: Option<String>,
    /// The lowest sequence number of its records.
    pub starting_sequence: String,
    /// The sequence number of the last record; `None` while the shard is open.
    pub ending_sequence: Option<String>,
}

/// Requests a position in a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct GetShardIterator {
    /// The stream.
    pub stream_arn: String,
    /// The shard.
    pub shard_id: String,
    /// The position.
    pub kind: IteratorKind,
}

impl GetShardIterator {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        use IteratorKind::{AfterSequenceNumber, AtSequenceNumber};

        Faults::check(|faults| {
            faults.length(&self.shard_id, "shardId", SHARD_ID_CHARS);
            if let AtSequenceNumber(number) | AfterSequenceNumber(number) = &self.kind {
                faults.length_hidden(number, "sequenceNumber", SEQUENCE_NUMBER_CHARS);
            }
        })?;
        check_arn(&self.stream_arn)
    }
}

/// A position in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IteratorKind {
    /// The oldest record that is still kept.
    TrimHorizon,
    /// After the newest record.
    Latest,
    /// At this record.
    AtSequenceNumber(String),
    /// After this record.
    AfterSequenceNumber(String),
}

/// Reads change records from a position.
#[derive(Clone, Debug, PartialEq)]
pub struct GetRecords {
    /// The position, from [`GetShardIterator`] or from the previous read.
    pub iterator: String,
    /// Maximum number of records, up to 1000.
    pub limit: Option<usize>,
}

impl GetRecords {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| {
            faults.length(&self.iterator, "shardIterator", SHARD_ITERATOR_CHARS);
            faults.limit(self.limit, GET_RECORDS_MAX);
        })
    }
}

/// Change records and the position after them.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GetRecordsOutput {
    /// The records, in order. Can be empty before the end.
    pub records: Vec<ChangeRecord>,
    /// The next position; `None` at the end of a closed shard.
    pub next_iterator: Option<String>,
}

/// A change of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRecord {
    /// A unique id of the record.
    pub event_id: String,
    /// What happened.
    pub kind: ChangeKind,
    /// The key of the item.
    pub keys: Item,
    /// The old image, if the view includes it and the item existed.
    pub old_image: Option<Item>,
    /// The new image, if the view includes it and the item exists.
    pub new_image: Option<Item>,
    /// The position in the order of changes: a fixed number of decimal digits, so that text order is the order of
    /// changes.
    pub sequence: String,
    /// The size of the keys and images.
    pub size_bytes: usize,
    /// The images that the stream records.
    pub view: StreamView,
    /// When the change happened, to the second.
    pub created: Timestamp,
    /// The service that made the change, if it was not a request.
    pub identity: Option<ServiceIdentity>,
}

impl ChangeRecord {
    /// Returns the size of a record with this key and these images.
    pub fn bytes(keys: &Item, old_image: Option<&Item>, new_image: Option<&Item>) -> usize {
        item_size(keys) + old_image.map_or(0, item_size) + new_image.map_or(0, item_size)
    }
}

named! {
    /// What happened to an item.
    pub enum ChangeKind {
        /// The item was created.
        Insert = "INSERT",
        /// The item was changed.
        Modify = "MODIFY",
        /// The item was removed.
        Remove = "REMOVE",
    }
}

impl ChangeKind {
    /// Returns the kind of a change, or `None` if nothing changed: DynamoDB writes no record then.
    pub fn of(old: Option<&Item>, new: Option<&Item>) -> Option<Self> {
        match (old, new) {
            (None, None) => None,
            (None, Some(_)) => Some(Self::Insert),
            (Some(_), None) => Some(Self::Remove),
            (Some(old), Some(new)) => (old != new).then_some(Self::Modify),
        }
    }
}

/// A service that changes items by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceIdentity {
    /// The sweeper that removes expired items (`dynamodb.amazonaws.com`).
    Expiry,
}

/// Protects a consumer's unread change records from being trimmed.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldChanges {
    /// The name of the consumer.
    pub consumer: String,
    /// The stream.
    pub stream_arn: String,
    /// The last record that the consumer has processed; records after it are kept. The trim horizon's `"0"` keeps
    /// everything, and `None` releases the hold.
    pub after_sequence: Option<String>,
}

impl HoldChanges {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) if the consumer name has the wrong length or the stream ARN is invalid.
    pub fn validate(&self) -> Result<()> {
        let (length, (least, most)) = (self.consumer.len(), CONSUMER_NAME_BYTES.into_inner());
        ensure((least..=most).contains(&length), || {
            Error::Validation(format!(
                "the consumer name must have {least} to {most} bytes: length={length}"
            ))
        })?;
        check_arn(&self.stream_arn)
    }
}
