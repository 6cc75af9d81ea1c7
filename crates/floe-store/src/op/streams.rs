//! Change streams: what happened to the items of a table, in order per item.
//!
//! ListStreams, DescribeStream, GetShardIterator and GetRecords as DynamoDB Streams has them, and
//! [`HoldChanges`], with which a consumer keeps its unread records from being trimmed.

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

/// Lists change streams by pages.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListStreams {
    /// Only those of this table.
    pub table_name: Option<String>,
    /// The stream after which to go on.
    pub start_after: Option<String>,
    /// The most streams, up to 100.
    pub limit: Option<usize>,
}

impl ListStreams {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
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

/// A page of streams.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ListStreamsOutput {
    /// The streams.
    pub streams: Vec<StreamSummary>,
    /// The stream after which to go on; absent at the end.
    pub last_arn: Option<String>,
}

/// A stream in a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSummary {
    /// The resource name.
    pub arn: String,
    /// The table.
    pub table_name: String,
    /// When it was switched on.
    pub label: String,
}

/// Asks for a stream and its shards, by pages of shards.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeStream {
    /// The stream.
    pub stream_arn: String,
    /// The shard after which to go on.
    pub start_after: Option<String>,
    /// The most shards, up to 100.
    pub limit: Option<usize>,
}

impl DescribeStream {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
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

/// Checks that a text can be the resource name of a stream. DynamoDB says no more of one that cannot, not even that
/// it is too short.
fn check_arn(arn: &str) -> Result<()> {
    let fits = arn.starts_with("arn:") && arn.len() <= *STREAM_ARN_CHARS.end();
    ensure(fits, || Error::validation("Invalid StreamArn"))
}

/// The error of an operation on a stream that is not there.
pub fn missing_stream(arn: &str) -> Error {
    Error::ResourceNotFound(format!(
        "Requested resource not found: Stream: {arn} not found"
    ))
}

/// The error of an operation on a shard that is not there.
pub fn missing_shard(arn: &str, shard_id: &str) -> Error {
    Error::ResourceNotFound(format!(
        "Requested resource not found: Shard: {shard_id} in Stream: {arn} not found"
    ))
}

/// A stream and its shards.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamDescription {
    /// The resource name.
    pub arn: String,
    /// When it was switched on.
    pub label: String,
    /// The table.
    pub table_name: String,
    /// The key of the table. DynamoDB does not tell the types of the attributes here.
    pub key_schema: Vec<KeySchemaElement>,
    /// The images in its records.
    pub view: StreamView,
    /// Whether new changes enter it.
    pub status: StreamStatus,
    /// When it was switched on.
    pub created: Timestamp,
    /// Its shards, parents before children.
    pub shards: Vec<Shard>,
    /// The shard after which to go on; absent at the end.
    pub last_shard_id: Option<String>,
}

/// Whether new changes enter a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamStatus {
    /// They do.
    Enabled,
    /// They do not; what is in it can be read until it is trimmed.
    Disabled,
}

/// A part of a stream. All changes of one item are in one shard, or in a shard and its descendants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its name.
    pub id: String,
    /// The shard that must be read before it, if it is still there.
    pub parent_id: Option<String>,
    /// The first sequence number that it may hold.
    pub starting_sequence: String,
    /// The last sequence number that it holds; absent while it is open.
    pub ending_sequence: Option<String>,
}

/// Asks for a position in a shard.
#[derive(Clone, Debug, PartialEq)]
pub struct GetShardIterator {
    /// The stream.
    pub stream_arn: String,
    /// The shard.
    pub shard_id: String,
    /// Where.
    pub kind: IteratorKind,
}

impl GetShardIterator {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        use IteratorKind::{AfterSequenceNumber, AtSequenceNumber};

        Faults::check(|faults| {
            faults.length(&self.shard_id, "shardId", SHARD_ID_CHARS);
            if let AtSequenceNumber(number) | AfterSequenceNumber(number) = &self.kind {
                faults.length_unseen(number, "sequenceNumber", SEQUENCE_NUMBER_CHARS);
            }
        })?;
        check_arn(&self.stream_arn)
    }
}

/// A place in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IteratorKind {
    /// At the oldest record that is kept.
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
    /// The position, from [`GetShardIterator`] or from the records before.
    pub iterator: String,
    /// The most records, up to 1000.
    pub limit: Option<usize>,
}

impl GetRecords {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| {
            faults.length(&self.iterator, "shardIterator", SHARD_ITERATOR_CHARS);
            faults.limit(self.limit, GET_RECORDS_MAX);
        })
    }
}

/// Change records and where to go on.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GetRecordsOutput {
    /// The records, in order; may be empty before the end.
    pub records: Vec<ChangeRecord>,
    /// Where to go on; absent when the shard is closed and read to its end.
    pub next_iterator: Option<String>,
}

/// A change of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRecord {
    /// Unique among all records.
    pub event_id: String,
    /// What happened.
    pub kind: ChangeKind,
    /// The key of the item.
    pub keys: Item,
    /// The item before, if the view has it and there was one.
    pub old_image: Option<Item>,
    /// The item after, if the view has it and there is one.
    pub new_image: Option<Item>,
    /// The place in the order of changes: decimal digits of a fixed number, so that text order is the
    /// order of changes.
    pub sequence: String,
    /// The size of the keys and images.
    pub size_bytes: usize,
    /// The images that the stream holds.
    pub view: StreamView,
    /// When it happened, to the second.
    pub created: Timestamp,
    /// Who did it, if it was not a user.
    pub identity: Option<ServiceIdentity>,
}

impl ChangeRecord {
    /// The size of a record with this key and these images.
    pub fn bytes(keys: &Item, old_image: Option<&Item>, new_image: Option<&Item>) -> usize {
        item_size(keys) + old_image.map_or(0, item_size) + new_image.map_or(0, item_size)
    }
}

named! {
    /// What happened to an item.
    pub enum ChangeKind {
        /// It was made.
        Insert = "INSERT",
        /// It was changed.
        Modify = "MODIFY",
        /// It was removed.
        Remove = "REMOVE",
    }
}

impl ChangeKind {
    /// What a write from one state of an item to another is; `None` when it changed nothing, of which
    /// DynamoDB writes no record.
    pub fn of(old: Option<&Item>, new: Option<&Item>) -> Option<Self> {
        match (old, new) {
            (None, None) => None,
            (None, Some(_)) => Some(Self::Insert),
            (Some(_), None) => Some(Self::Remove),
            (Some(old), Some(new)) => (old != new).then_some(Self::Modify),
        }
    }
}

/// A service that changes items on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceIdentity {
    /// The sweeper that removes expired items (`dynamodb.amazonaws.com`).
    Expiry,
}

/// Keeps a consumer's unread change records from being trimmed.
#[derive(Clone, Debug, PartialEq)]
pub struct HoldChanges {
    /// The consumer's name.
    pub consumer: String,
    /// The stream.
    pub stream_arn: String,
    /// The last record that the consumer is done with; records after it are kept. `Some` of the trim
    /// horizon's `"0"` keeps everything. `None` gives the hold up.
    pub after_sequence: Option<String>,
}

impl HoldChanges {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) when the consumer has no name that can be kept, or the stream
    /// none that a stream can have.
    pub fn validate(&self) -> Result<()> {
        let (length, (least, most)) = (self.consumer.len(), CONSUMER_NAME_BYTES.into_inner());
        ensure((least..=most).contains(&length), || {
            Error::Validation(format!(
                "the name of a consumer must have {least} to {most} bytes: length={length}"
            ))
        })?;
        check_arn(&self.stream_arn)
    }
}
