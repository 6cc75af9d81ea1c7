//! The trait that stores implement.
//!
//! An engine is used as `Arc<dyn Engine>`. Wrappers (fault injection, caches, metrics, tracing) are engines that wrap
//! an engine. [`Capabilities`] states in advance which features an engine supports.

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

/// How long a running engine with [write tokens](Capabilities::write_tokens) remembers the tokens of single writes.
pub const WRITE_TOKEN_RETENTION: Duration = Duration::from_secs(30);

/// A store of tables with DynamoDB's operations.
///
/// # Guarantees of every engine
///
/// - A request that DynamoDB rejects is rejected with the same error. If a request has several faults, the same one is
///   reported: the checks of [`op`](crate::op) run before anything is read or written.
/// - An acknowledged write survives a crash of the process.
/// - A failed write changed nothing, unless [`Error::may_have_applied`] says otherwise.
/// - Conditions see every write that was acknowledged before.
/// - [`transact_write_items`](Engine::transact_write_items) is applied as a whole or not at all, once per token, and is
///   serializable with all other writes.
/// - [`transact_get_items`](Engine::transact_get_items), and each page of a query of one partition, reads a single
///   snapshot.
pub trait Engine: Send + Sync {
    /// Returns what this engine supports.
    fn capabilities(&self) -> Capabilities;

    /// Returns the engine's current time.
    fn now(&self) -> Timestamp;

    /// Returns the ARN that a table of this name has or would have, if the engine knows it.
    fn table_arn(&self, table_name: &str) -> Option<String> {
        let _ = table_name;
        None
    }

    /// Returns whether the engine accepts writes, and if not, why. Cheap enough for a health check every second.
    fn health(&self) -> Health {
        Health::Ready
    }

    /// Reads one item by its key.
    fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>>;

    /// Reads up to 100 items by their keys from several tables. May return some and list the other keys as unprocessed.
    fn batch_get_item(&self, input: BatchGetItem) -> BoxFuture<'_, Result<BatchGetItemOutput>>;

    /// Reads up to 100 items from a single snapshot.
    fn transact_get_items(
        &self,
        input: TransactGetItems,
    ) -> BoxFuture<'_, Result<TransactGetItemsOutput>>;

    /// Puts, updates or deletes one item, if its condition holds.
    fn write_item(&self, input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>>;

    /// Puts and deletes up to 25 items independently. May apply some and list the others as unprocessed.
    fn batch_write_item(
        &self,
        input: BatchWriteItem,
    ) -> BoxFuture<'_, Result<BatchWriteItemOutput>>;

    /// Checks, puts, updates and deletes up to 100 items: all of them or none.
    fn transact_write_items(
        &self,
        input: TransactWriteItems,
    ) -> BoxFuture<'_, Result<TransactWriteItemsOutput>>;

    /// Reads a page of the items of one partition key, in the order of the sort key.
    fn query(&self, input: Query) -> BoxFuture<'_, Result<Page>>;

    /// Reads a page of a table or an index, or of one segment of it.
    fn scan(&self, input: Scan) -> BoxFuture<'_, Result<Page>>;

    /// Creates a table.
    fn create_table(&self, input: CreateTable) -> BoxFuture<'_, Result<TableDescription>>;

    /// Describes a table.
    fn describe_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>>;

    /// Adds or removes indexes, enables or disables the stream, changes settings.
    fn update_table(&self, input: UpdateTable) -> BoxFuture<'_, Result<TableDescription>>;

    /// Deletes a table with all its data.
    fn delete_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>>;

    /// Lists the names of tables in order, page by page.
    fn list_tables(&self, input: ListTables) -> BoxFuture<'_, Result<ListTablesOutput>>;

    /// Enables or disables expiry.
    fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> BoxFuture<'_, Result<TableDescription>>;

    /// Adds and removes tags of a table. [`TableDescription`] lists the tags.
    fn update_tags(&self, input: UpdateTags) -> BoxFuture<'_, Result<()>>;

    /// Lists the change streams.
    fn list_streams(&self, input: ListStreams) -> BoxFuture<'_, Result<ListStreamsOutput>>;

    /// Describes a change stream and its shards.
    fn describe_stream(&self, input: DescribeStream) -> BoxFuture<'_, Result<StreamDescription>>;

    /// Returns a position in a shard to read from.
    fn get_shard_iterator(&self, input: GetShardIterator) -> BoxFuture<'_, Result<String>>;

    /// Reads change records from a position.
    fn get_records(&self, input: GetRecords) -> BoxFuture<'_, Result<GetRecordsOutput>>;

    /// Protects a consumer's unread change records from being trimmed, if the engine [supports
    /// it](Capabilities::change_holds).
    fn hold_changes(&self, input: HoldChanges) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            Err(Error::Unsupported(format!(
                "this engine cannot hold change records for a consumer: consumer={}",
                input.consumer
            )))
        })
    }
}

/// Whether an engine accepts writes. Reads are always served.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Reads and writes are served.
    Ready,
    /// The store was opened read-only because its file system is read-only.
    ReadOnly,
    /// Writes are rejected.
    WritesRefused {
        /// The original cause, for the operator. It may name files.
        reason: String,
    },
}

/// The features of an engine beyond the basic operations on items.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Whether transactions over several items are supported.
    pub transactions: bool,
    /// Maximum number of items in one transaction.
    pub transact_items_max: usize,
    /// Whether single writes accept a token, so that a retry to the same running engine [within 30
    /// s](WRITE_TOKEN_RETENTION) is applied once.
    pub write_tokens: bool,
    /// Whether the response to a write can be lost while the engine keeps running: there is a real or simulated network
    /// between. For an engine in the same process an outcome is unknown only if the engine has failed, and it then
    /// accepts no further writes.
    pub loses_responses: bool,
    /// Whether a query of an index sees every write that was acknowledged before it.
    pub consistent_indexes: bool,
    /// Whether tables can have change streams.
    pub streams: bool,
    /// Whether consumers can protect change records from being trimmed.
    pub change_holds: bool,
    /// Whether items expire by a TTL attribute.
    pub expiry: bool,
    /// Whether index keys can have several attributes.
    pub multi_attribute_keys: bool,
}

impl Capabilities {
    /// All features. The embedded engine has all of them.
    pub const fn all() -> Self {
        Self {
            transactions: true,
            transact_items_max: crate::limits::TRANSACT_ITEMS_MAX,
            write_tokens: true,
            loses_responses: false,
            consistent_indexes: true,
            streams: true,
            change_holds: true,
            expiry: true,
            multi_attribute_keys: true,
        }
    }

    /// The features of Amazon DynamoDB.
    pub const fn dynamodb() -> Self {
        Self {
            write_tokens: false,
            loses_responses: true,
            consistent_indexes: false,
            change_holds: false,
            ..Self::all()
        }
    }
}
