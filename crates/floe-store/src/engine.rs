//! The trait that stores implement.
//!
//! An engine is used as `Arc<dyn Engine>`. Wrappers (faults, caches, meters, traces) are engines
//! around an engine. What an engine cannot do, it says in [`Capabilities`] before it is asked.

use std::time::Duration;

use crate::env::Timestamp;
use crate::error::{Error, Result};
use crate::future::BoxFuture;
use crate::op::{
    BatchGetItem, BatchGetItemOutput, BatchWriteItem, BatchWriteItemOutput, CreateTable,
    DescribeStream, GetItem, GetItemOutput, GetRecords, GetRecordsOutput, GetShardIterator,
    HoldChanges, ListStreams, ListStreamsOutput, ListTables, ListTablesOutput, Page, Query, Scan,
    StreamDescription, TransactGetItems, TransactGetItemsOutput, TransactWriteItems,
    TransactWriteItemsOutput, UpdateTable, UpdateTags, UpdateTimeToLive, WriteItem,
    WriteItemOutput,
};
use crate::table::TableDescription;

/// How long an engine with [write tokens](Capabilities::write_tokens) remembers those of single writes, as
/// long as it runs.
pub const WRITE_TOKEN_RETENTION: Duration = Duration::from_secs(30);

/// A store of tables with DynamoDB's operations.
///
/// # What every engine promises
///
/// - A request that DynamoDB refuses is refused, in its own words and for the same of several faults:
///   the checks of [`op`](crate::op) come before anything is read or written.
/// - A write that was answered with success survives the death of the process.
/// - A failed write changed nothing, unless [`Error::may_have_applied`] says otherwise.
/// - Conditions see every write that was answered before.
/// - [`transact_write_items`](Engine::transact_write_items) is applied as a whole or not at all, once
///   per token, and is serializable with every other write.
/// - [`transact_get_items`](Engine::transact_get_items) and each page of a query is read at one moment
///   (a page: of one partition).
pub trait Engine: Send + Sync {
    /// What this engine can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// The engine's present moment.
    fn now(&self) -> Timestamp;

    /// The resource name that a table of this name has or would have here, where the engine knows it.
    fn table_arn(&self, table_name: &str) -> Option<String> {
        let _ = table_name;
        None
    }

    /// Whether the engine accepts writes at present, and if not, why. Cheap: for health checks that ask every second.
    fn health(&self) -> Health {
        Health::Ready
    }

    /// Reads one item by its key.
    fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>>;

    /// Reads up to 100 items by their keys, from several tables; may answer some and name the rest.
    fn batch_get_item(&self, input: BatchGetItem) -> BoxFuture<'_, Result<BatchGetItemOutput>>;

    /// Reads up to 100 items as of one moment.
    fn transact_get_items(
        &self,
        input: TransactGetItems,
    ) -> BoxFuture<'_, Result<TransactGetItemsOutput>>;

    /// Puts, updates or deletes one item, if its condition holds.
    fn write_item(&self, input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>>;

    /// Puts and deletes up to 25 items, each on its own; may do some and name the rest.
    fn batch_write_item(
        &self,
        input: BatchWriteItem,
    ) -> BoxFuture<'_, Result<BatchWriteItemOutput>>;

    /// Checks, puts, updates and deletes up to 100 items, all or nothing.
    fn transact_write_items(
        &self,
        input: TransactWriteItems,
    ) -> BoxFuture<'_, Result<TransactWriteItemsOutput>>;

    /// Reads a page of the items under one partition key, in the order of the sort key.
    fn query(&self, input: Query) -> BoxFuture<'_, Result<Page>>;

    /// Reads a page of a table or an index, or of one segment of it.
    fn scan(&self, input: Scan) -> BoxFuture<'_, Result<Page>>;

    /// Makes a table.
    fn create_table(&self, input: CreateTable) -> BoxFuture<'_, Result<TableDescription>>;

    /// Describes a table.
    fn describe_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>>;

    /// Adds or removes indexes, switches the stream, changes settings.
    fn update_table(&self, input: UpdateTable) -> BoxFuture<'_, Result<TableDescription>>;

    /// Removes a table with all its data.
    fn delete_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>>;

    /// Lists the names of tables, in their order, by pages.
    fn list_tables(&self, input: ListTables) -> BoxFuture<'_, Result<ListTablesOutput>>;

    /// Switches expiry on or off.
    fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> BoxFuture<'_, Result<TableDescription>>;

    /// Adds and removes tags of a table. The tags stand in [`TableDescription`].
    fn update_tags(&self, input: UpdateTags) -> BoxFuture<'_, Result<()>>;

    /// Lists the change streams.
    fn list_streams(&self, input: ListStreams) -> BoxFuture<'_, Result<ListStreamsOutput>>;

    /// Describes a change stream and its shards.
    fn describe_stream(&self, input: DescribeStream) -> BoxFuture<'_, Result<StreamDescription>>;

    /// A position in a shard, to read from.
    fn get_shard_iterator(&self, input: GetShardIterator) -> BoxFuture<'_, Result<String>>;

    /// Reads change records from a position.
    fn get_records(&self, input: GetRecords) -> BoxFuture<'_, Result<GetRecordsOutput>>;

    /// Keeps a consumer's unread change records from being trimmed, where the engine
    /// [can](Capabilities::change_holds).
    fn hold_changes(&self, input: HoldChanges) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            Err(Error::Unsupported(format!(
                "this engine cannot hold change records for a consumer: consumer={}",
                input.consumer
            )))
        })
    }
}

/// Whether an engine accepts writes at present. Reads are served in every case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Reads and writes are served.
    Ready,
    /// The store was opened read-only, because its file system is.
    ReadOnly,
    /// Writes are refused.
    WritesRefused {
        /// The first cause, for the operator: it may name files.
        reason: String,
    },
}

/// What an engine can do beyond the plain operations on items.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Transactions over several items work.
    pub transactions: bool,
    /// The most items in one transaction.
    pub transact_items_max: usize,
    /// A single write takes a token, so that sending it again to the same running engine
    /// [soon](WRITE_TOKEN_RETENTION) applies it once.
    pub write_tokens: bool,
    /// The answer to a write can get lost on its way, while the engine goes on: there is a network between, or
    /// something that plays one. In the process of the engine an answer is unknown only if the engine has
    /// failed, and then it takes no further writes.
    pub loses_answers: bool,
    /// A query of an index shows every write that was acknowledged before it.
    pub consistent_indexes: bool,
    /// Tables can have change streams.
    pub streams: bool,
    /// Consumers can hold change records back from trimming.
    pub change_holds: bool,
    /// Items expire by a TTL attribute.
    pub expiry: bool,
    /// An index of several attributes per key works.
    pub multi_attribute_keys: bool,
}

impl Capabilities {
    /// Everything that the embedded engine can do, which is everything there is.
    pub const fn all() -> Self {
        Self {
            transactions: true,
            transact_items_max: crate::limits::TRANSACT_ITEMS_MAX,
            write_tokens: true,
            loses_answers: false,
            consistent_indexes: true,
            streams: true,
            change_holds: true,
            expiry: true,
            multi_attribute_keys: true,
        }
    }

    /// What Amazon DynamoDB can do.
    pub const fn dynamodb() -> Self {
        Self {
            write_tokens: false,
            loses_answers: true,
            consistent_indexes: false,
            change_holds: false,
            ..Self::all()
        }
    }
}
