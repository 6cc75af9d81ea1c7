//! The embedded engine of Floe: DynamoDB's tables in a directory, or in memory.
//!
//! [`LocalEngine`] is an [`Engine`] that needs no server, no account and no async runtime. It is meant for production
//! on one machine: acknowledged writes survive a killed process and power loss, transactions are serializable, and
//! readers never wait for writers.
//!
//! ```
//! use floe_local::LocalEngine;
//! use floe_store::expr::{Condition, KeyCondition, KeyOp};
//! use floe_store::op::{CreateTable, GetItem, PutItem, Query};
//! use floe_store::table::KeyKind;
//! use floe_store::{Engine, Item, TableDef, Value};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let engine = LocalEngine::open(dir.path())?;
//!
//! let orders = TableDef::builder("Orders", "customer", KeyKind::S)
//!     .sort_key("placed", KeyKind::N)
//!     .build()?;
//! engine.create_table(CreateTable::from(orders)).await?;
//!
//! for placed in [10, 20, 30] {
//!     let order = Item::new().with("customer", "c-1").with("placed", placed);
//!     let new = Condition::attribute_not_exists("customer");
//!     engine.write_item(PutItem::new("Orders", order).condition(new).into()).await?;
//! }
//!
//! let recent = KeyCondition::partition("customer", "c-1").and("placed", KeyOp::Ge(20.into()));
//! let page = engine.query(Query::new("Orders", recent)).await?;
//! assert_eq!(page.count, 2);
//!
//! drop(engine);
//! let engine = LocalEngine::open(dir.path())?;
//! let key = Item::new().with("customer", "c-1").with("placed", 10);
//! let found = engine.get_item(GetItem::new("Orders", key)).await?;
//! assert_eq!(found.item.and_then(|item| item.get("placed").cloned()), Some(Value::from(10)));
//! # Ok(())
//! # }
//! ```
//!
//! # How it works
//!
//! Data flows down:
//!
//! | module | responsibility |
//! |---|---|
//! | `items` `transact` `query` `tables` `changes` | the operations: validate, then read a snapshot or send a request to
//! the committer |
//! | `request` `queue` `group` `commit` | takes all waiting writes, runs them in order, commits them with one sync,
//! responds to all |
//! | `apply` `indexes` `streams` `tokens` | what a write stores besides the item: index entries, change records, expiry
//! entries, tokens |
//! | `background` `jobs` | work done in steps between commits: jobs on tables, expiry, removal of old tokens |
//! | `backup` `export` [`doctor`] | operations on the whole store: copy, export as text, check and repair |
//! | `shared` `load` | state shared by the modules: the store, and what is cached of it in memory |
//! | `turns` | lets other tasks of the caller's thread run |
//! | `stored` `locks` | an item with its stored bytes; acquiring locks |
//! | `catalog` | the tables |
//! | `layout` | the encoding of everything that is stored |
//! | `gate` | whether writes are accepted: disk almost full, failed commit, removed directory |
//! | `kv` `journal` `files` `seal` `dir` `fresh` `mirror` | the key-value store, its recovery and its directory |
//!
//! One committer runs all queued writes. It checks each condition against the state left by all earlier writes and
//! makes a whole group durable with one sync. The writes of a group share the cost of the sync, so throughput grows
//! with concurrency. In memory there is no sync, and the first thread that writes commits. Reads use the latest
//! published snapshot and run on the caller's thread.
//!
//! # Guarantees
//!
//! - A write that succeeded is on disk ([`Durability::Sync`]) with its index entries, its change record and its token.
//!   A write that failed stored none of them.
//! - When a commit fails, its writes return [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown). Later writes return
//!   [`Unavailable`](floe_store::Error::Unavailable) until there is space again if the disk was full, otherwise
//!   [`Storage`](floe_store::Error::Storage) until the engine is reopened. Reads still work.
//! - Writes that add data are rejected before the disk is full ([`Options::disk_reserve_bytes`]), so that deletes still
//!   fit. [`Engine::health`] reports whether writes are accepted.
//! - Opening never removes files that the engine did not create, and rejects a directory that contains other files.
//! - Memory is bounded by [`Options::cache_bytes`] and [`Options::write_buffer_bytes`], independent of the amount of
//!   data.
//! - All limits of DynamoDB are enforced, so that what works here works there.

#![forbid(unsafe_code)]

mod apply;
mod background;
mod backup;
mod catalog;
mod changes;
mod commit;
mod dir;
pub mod doctor;
mod engine;
mod export;
mod files;
mod fresh;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod gate;
mod group;
mod indexes;
mod items;
mod jobs;
mod journal;
mod kv;
mod layout;
mod load;
mod locks;
mod mirror;
mod options;
mod private;
mod query;
mod queue;
mod request;
mod response;
mod scratch;
mod seal;
mod shared;
mod store_snapshot;
mod stored;
mod streams;
mod tables;
mod tokens;
mod transact;
mod turns;
mod wakeup;

use std::path::Path;

use floe_store::env::Timestamp;
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, BatchWriteItem, BatchWriteItemOutput, CreateTable,
    DescribeStream, GetItem, GetItemOutput, GetRecords, GetRecordsOutput, GetShardIterator,
    HoldChanges, ListStreams, ListStreamsOutput, ListTables, ListTablesOutput, Page, Query, Scan,
    StreamDescription, TransactGetItems, TransactGetItemsOutput, TransactWriteItems,
    TransactWriteItemsOutput, UpdateTable, UpdateTags, UpdateTimeToLive, WriteItem,
    WriteItemOutput,
};
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Capabilities, Engine, Error, Health, Result};

pub use crate::backup::BackupReport;
pub use crate::engine::Recovery;
use crate::engine::RunningEngine;
pub use crate::export::{ExportOptions, ExportReport, ImportOptions, ImportReport};
use crate::locks::lock;
pub use crate::options::{Durability, Options};

/// DynamoDB's tables in a directory, or in memory.
///
/// Runs on any executor; background work and commits run on threads of the engine. Dropping it waits for the writes
/// that were already submitted.
pub struct LocalEngine {
    running: RunningEngine,
}

impl LocalEngine {
    /// Opens the store in a directory, or creates one.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when the directory is in use by another engine, was written by a newer
    /// version, holds other files, or cannot be read.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(dir, Options::new())
    }

    /// Opens the store in a directory, or creates one, with options.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        let running = RunningEngine::open(dir.as_ref(), options)?;
        Ok(Self { running })
    }

    /// Creates an empty store in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when a thread cannot be started.
    pub fn memory() -> Result<Self> {
        Self::memory_with(Options::new())
    }

    /// Creates an empty store in memory, with options.
    ///
    /// # Errors
    ///
    /// As [`memory`](Self::memory).
    pub fn memory_with(options: Options) -> Result<Self> {
        let running = RunningEngine::memory(options)?;
        Ok(Self { running })
    }

    /// Completes the queued writes, rejects new ones, and writes everything to disk. Reads still work afterwards; the
    /// directory stays locked until the engine is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if an earlier commit failed, or if the last sync fails.
    pub fn close(&self) -> Result<()> {
        self.running.close()
    }

    /// Runs one step of the background work: filling and removing indexes, removing expired items, trimming change
    /// records, removing old tokens. Returns whether more work may be left. For tests that control the time, with
    /// [`Options::background`] off.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when the store cannot be read or written.
    pub fn run_background_once(&self) -> Result<bool> {
        background::step(&self.running.committer)
    }

    /// Bytes of disk space that the store uses, including its journals; 0 in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the file sizes cannot be read.
    pub fn disk_bytes(&self) -> Result<u64> {
        self.running.shared().kv.disk_bytes()
    }

    /// What opening the store recovered: how many bytes of an interrupted write it dropped.
    pub fn recovery(&self) -> Recovery {
        self.running.recovery
    }

    /// The error of the last round of background work, if it failed. The work is retried every second.
    pub fn background_error(&self) -> Option<Error> {
        lock(&self.running.shared().background_error).clone()
    }
}

/// Whether a directory contains a store. Only checks for the format file, and creates nothing.
///
/// # Errors
///
/// [`Error::Storage`] if the directory cannot be read.
pub fn is_store(dir: impl AsRef<Path>) -> Result<bool> {
    dir::Directory::is_store(dir.as_ref())
}

/// Read operations: name, input, and the function that reads from the shared state. It runs when the future is polled.
/// `items` is the number of items that the operation has read.
macro_rules! reads {
    ($(
        $name:ident($input:ident: $type:ty) -> $output:ty = $part:ident::$read:ident($given:expr)
        $(, items = |$read_output:ident| $items:expr)?;
    )+) => {$(
        fn $name(&self, $input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                turns::take_turn().await;
                let output = $part::$read(self.running.shared(), $given)?;
                $(
                    let $read_output = &output;
                    turns::record_items($items);
                )?
                Ok(output)
            })
        }
    )+};
}

/// Write operations: name, input, and the function that submits it to the committer. It runs when the future is polled.
macro_rules! writes {
    ($( $name:ident($input:ident: $type:ty) -> $output:ty = $part:ident::$write:ident($given:expr); )+) => {$(
        fn $name(&self, $input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                turns::take_turn().await;
                $part::$write(&self.running.committer, $given)?.await
            })
        }
    )+};
}

impl Engine for LocalEngine {
    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn now(&self) -> Timestamp {
        self.running.shared().options.env.now()
    }

    fn health(&self) -> Health {
        self.running.committer.health()
    }

    fn table_arn(&self, table_name: &str) -> Option<String> {
        Some(self.running.shared().options.table_arn(table_name))
    }

    reads! {
        get_item(get: GetItem) -> GetItemOutput = items::get_item(&get);
        batch_get_item(batch: BatchGetItem) -> BatchGetItemOutput = items::batch_get_item(batch);
        transact_get_items(gets: TransactGetItems) -> TransactGetItemsOutput = transact::transact_get_items(&gets);
        query(query: Query) -> Page = query::query(&query), items = |page| page.scanned_count;
        scan(scan: Scan) -> Page = query::scan(&scan), items = |page| page.scanned_count;
        describe_table(name: String) -> TableDescription = tables::describe_table(&name);
        list_tables(list: ListTables) -> ListTablesOutput = tables::list_tables(&list);
        list_streams(list: ListStreams) -> ListStreamsOutput = changes::list_streams(&list);
        describe_stream(describe: DescribeStream) -> StreamDescription = changes::describe_stream(&describe);
        get_shard_iterator(get: GetShardIterator) -> String = changes::get_shard_iterator(&get);
        get_records(get: GetRecords) -> GetRecordsOutput = changes::get_records(&get), items = |read| read.records.len();
    }

    writes! {
        write_item(write: WriteItem) -> WriteItemOutput = items::write_item(write);
        batch_write_item(batch: BatchWriteItem) -> BatchWriteItemOutput = items::batch_write_item(batch);
        transact_write_items(writes: TransactWriteItems) -> TransactWriteItemsOutput
            = transact::transact_write_items(writes);
        create_table(create: CreateTable) -> TableDescription = tables::create_table(&create);
        update_table(update: UpdateTable) -> TableDescription = tables::update_table(update);
        update_time_to_live(update: UpdateTimeToLive) -> TableDescription = tables::update_time_to_live(update);
        update_tags(update: UpdateTags) -> () = tables::update_tags(update);
        hold_changes(hold: HoldChanges) -> () = changes::hold_changes(&hold);
    }

    fn delete_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move { tables::delete_table(&self.running.committer, table_name).await })
    }
}

impl std::fmt::Debug for LocalEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tables = self.running.shared().catalog.names();
        f.debug_struct("LocalEngine")
            .field("tables", &tables)
            .finish_non_exhaustive()
    }
}
