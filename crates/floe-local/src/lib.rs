//! The embedded engine of Floe: DynamoDB's tables in a directory, or in memory.
//!
//! [`LocalEngine`] is an [`Engine`] that needs no server, no account and no runtime of its own. It is
//! made for production on one machine: what it has answered survives a killed process and the loss of
//! power, transactions are serializable, and readers never wait for writers.
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
//! | module | what it does |
//! |---|---|
//! | `items` `transact` `query` `tables` `changes` | the operations: check, then read a snapshot or ask the committer |
//! | `request` `queue` `group` `commit` | takes all waiting writes, runs them in order, commits them with one sync, answers all |
//! | `apply` `indexes` `streams` `tokens` | what a write does besides the item: index entries, change records, expiry, tokens |
//! | `background` `jobs` | what is done in steps between commits: jobs on tables, expiry, forgetting tokens |
//! | `backup` `export` [`doctor`] | the whole store: copied, written as text, examined and repaired |
//! | `shared` `load` | what the parts share: the store, and what is kept in memory of it |
//! | `stored` `locks` | an item with its bytes; taking locks |
//! | `catalog` | the tables |
//! | `layout` | every byte that is stored |
//! | `gate` | whether writes are accepted: a full disk, a failed commit, a removed directory |
//! | `kv` `journal` `files` `seal` `dir` `fresh` `mirror` | the key-value store below, its recovery and its directory |
//!
//! Writes queue to one committer, which checks each condition against the state that all earlier
//! writes left and makes a whole group durable with one sync. So the cost of a sync is shared by all
//! who wait for it, and throughput grows with concurrency. In memory, where there is no sync, the
//! thread that writes first commits. Reads take the last published snapshot and run on the caller's
//! thread.
//!
//! # What it promises
//!
//! - A write that was answered with success is on the disk ([`Durability::Sync`]), with its index
//!   entries, its change record and its token, or none of it is.
//! - When a commit fails, its writes are answered with [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown). If the disk
//!   was full, later ones are answered with [`Unavailable`](floe_store::Error::Unavailable) until there is space again;
//!   otherwise with [`Storage`](floe_store::Error::Storage) until the engine is opened again. Reads go on.
//! - Writes that store more are refused before the disk is full ([`Options::disk_reserve_bytes`]), so that deletes still
//!   fit. [`Engine::health`] reports whether writes are accepted.
//! - Opening removes nothing that it did not make, and refuses a directory that holds anything else.
//! - Memory is bounded by [`Options::cache_bytes`] and [`Options::write_buffer_bytes`], not by the
//!   data.
//! - All limits of DynamoDB are kept, so that what runs here runs there.

#![forbid(unsafe_code)]

mod alarm;
mod answer;
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
mod moment;
mod options;
mod private;
mod query;
mod queue;
mod request;
mod scratch;
mod seal;
mod shared;
mod stored;
mod streams;
mod tables;
mod tokens;
mod transact;

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
use crate::engine::Running;
pub use crate::export::{ExportOptions, ExportReport, ImportOptions, ImportReport};
use crate::locks::lock;
pub use crate::options::{Durability, Options};

/// DynamoDB's tables in a directory, or in memory.
///
/// An engine runs on any executor; its own work is done on threads of its own. Dropping it waits for
/// the writes that have been given to it.
pub struct LocalEngine {
    running: Running,
}

impl LocalEngine {
    /// Opens the store in this directory, or makes one.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when the directory is in use by another engine, was written by a newer
    /// version, holds other files, or cannot be read.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(dir, Options::new())
    }

    /// Opens the store in this directory, or makes one, with these settings.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_with(dir: impl AsRef<Path>, options: Options) -> Result<Self> {
        let running = Running::open(dir.as_ref(), options)?;
        Ok(Self { running })
    }

    /// An empty store that lives as long as the engine.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when a thread cannot be started.
    pub fn memory() -> Result<Self> {
        Self::memory_with(Options::new())
    }

    /// An empty store that lives as long as the engine, with these settings.
    ///
    /// # Errors
    ///
    /// As [`memory`](Self::memory).
    pub fn memory_with(options: Options) -> Result<Self> {
        let running = Running::memory(options)?;
        Ok(Self { running })
    }

    /// Finishes the writes that wait, takes no further ones, and writes everything to the disk. Reads
    /// still work afterwards; the directory is free once the engine is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when a commit has failed before, or when the last sync fails.
    pub fn close(&self) -> Result<()> {
        self.running.close()
    }

    /// Does one step of the work that the engine otherwise does on its own: filling and removing
    /// indexes, removing expired items, trimming change records, forgetting tokens. `true` if there may
    /// be more to do at once. For tests that own the time, with [`Options::background`] off.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when the store cannot be read or written.
    pub fn run_background_once(&self) -> Result<bool> {
        background::step(&self.running.committer)
    }

    /// The bytes that the store takes on disk, its journals included; 0 in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when the sizes of files cannot be read.
    pub fn disk_bytes(&self) -> Result<u64> {
        self.running.shared().kv.disk_bytes()
    }

    /// What opening the store found: how much of an interrupted write it dropped.
    pub fn recovery(&self) -> Recovery {
        self.running.recovery
    }

    /// Why the last round of background work failed, if it did. It is tried again every second.
    pub fn background_error(&self) -> Option<Error> {
        lock(&self.running.shared().background_error).clone()
    }
}

/// Whether there is a store in this directory. Looks at nothing but the file that tells its format, and makes nothing.
///
/// # Errors
///
/// [`Error::Storage`] when the directory cannot be read.
pub fn is_store(dir: impl AsRef<Path>) -> Result<bool> {
    dir::Directory::is_store(dir.as_ref())
}

/// Operations that read when they are awaited: each with its input, and the function that reads it from what is shared.
macro_rules! reads {
    ($( $name:ident($input:ident: $type:ty) -> $output:ty = $part:ident::$read:ident($given:expr); )+) => {$(
        fn $name(&self, $input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move { $part::$read(self.running.shared(), $given) })
        }
    )+};
}

/// Operations that are given to the committer when they are awaited: each with its input, and the function that does so.
macro_rules! writes {
    ($( $name:ident($input:ident: $type:ty) -> $output:ty = $part:ident::$write:ident($given:expr); )+) => {$(
        fn $name(&self, $input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move { $part::$write(&self.running.committer, $given)?.await })
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
        query(query: Query) -> Page = query::query(&query);
        scan(scan: Scan) -> Page = query::scan(&scan);
        describe_table(name: String) -> TableDescription = tables::describe_table(&name);
        list_tables(list: ListTables) -> ListTablesOutput = tables::list_tables(&list);
        list_streams(list: ListStreams) -> ListStreamsOutput = changes::list_streams(&list);
        describe_stream(describe: DescribeStream) -> StreamDescription = changes::describe_stream(&describe);
        get_shard_iterator(get: GetShardIterator) -> String = changes::get_shard_iterator(&get);
        get_records(get: GetRecords) -> GetRecordsOutput = changes::get_records(&get);
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
