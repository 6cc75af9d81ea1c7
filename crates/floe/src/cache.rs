//! The read cache: eventually consistent reads served from memory.
//!
//! [`CacheEngine`] wraps an engine, in the role that DAX has for DynamoDB, but inside the process.
//! [`Db::with_read_cache`](crate::Db::with_read_cache) wraps the engine of a database.
//!
//! # What is cached
//!
//! The cache serves `GetItem` and `BatchGetItem` requests that are eventually consistent, have no projection and do not
//! return their consumed capacity. The absence of an item is cached too. Everything else goes to the engine: consistent
//! reads, reads in transactions, queries, scans. Errors are never cached.
//!
//! # Guarantees
//!
//! - A write by another process is visible after the time to live at the latest, if the engine shows it by then.
//! - A write through this cache is visible to every read that begins after the response, however reads and writes
//!   overlap. A put caches the new item, an update its new image, a delete the absence. If the result of a write is
//!   uncertain (its response was lost, it was cancelled or rejected, it overlapped with another write, it was an update
//!   in a transaction), the item is invalidated and next read consistently, even by an eventual read. This holds while
//!   the cache remembers the key: for the time to live after the write, and while there is room.
//! - A write with an idempotency token only invalidates the item. The engine also reports success if the write was
//!   applied long ago and the item has changed since.
//! - A transaction whose condition failed invalidates its items, so that a retry reads them again.
//!
//! # Costs
//!
//! An update that returns nothing is changed to return the new image, which consumes no capacity but transfers the item.
//! An eventual read of an item that was invalidated by a write costs as much as a consistent one, once. The first put
//! into a table whose key is not known yet describes the table.
//!
//! `state` stores the items and decides what may be stored; `read` and `write` handle requests. Expiry is not handled
//! here: expired items are hidden by the layers above.

mod read;
mod state;
mod write;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::op::{CreateTable, UpdateTable, UpdateTimeToLive};
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};

use read::{batch_get_item, get_item};
use state::CacheState;
use write::{batch_write_item, transact_write_items, write_item};

/// Options of a read cache: its size and its time to live.
///
/// ```
/// use std::time::Duration;
/// use floe::cache::CacheOptions;
///
/// let options = CacheOptions::new().ttl(Duration::from_secs(30)).bytes_max(16 << 20);
/// assert_ne!(options, CacheOptions::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a cache takes them"]
pub struct CacheOptions {
    ttl: Duration,
    bytes_max: usize,
}

impl CacheOptions {
    /// The defaults: five minutes, 64 MB.
    pub const fn new() -> Self {
        Self {
            ttl: Duration::from_secs(5 * 60),
            bytes_max: 64 << 20,
        }
    }

    /// Time to live: the maximum delay until a write by another process is visible. Zero disables caching. Default: 5 minutes.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Maximum size in bytes: items and keys as DynamoDB counts them, and an overhead for each entry. Items that were
    /// accessed take several times as much memory. The least recently used are evicted first; an item larger than an
    /// eighth of the maximum is not cached. Default: 64 MB.
    pub const fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Statistics of a read cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Items and absences served from memory.
    pub hits: u64,
    /// Cacheable reads of items that were not cached, or too old.
    pub misses: u64,
    /// Cached items and absences.
    pub items: usize,
    /// Size of the cache in bytes, as [`CacheOptions::bytes_max`] counts them.
    pub bytes: usize,
}

/// An engine that serves eventual reads from memory where possible: see the [module](self).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), floe_store::Error> {
/// use std::sync::Arc;
/// use floe::cache::{CacheEngine, CacheOptions};
/// use floe_store::op::{CreateTable, GetItem, PutItem};
/// use floe_store::{Engine, Item, TableDef, table::KeyKind};
///
/// let engine = floe_local::LocalEngine::memory()?;
/// let cached = CacheEngine::new(Arc::new(engine), CacheOptions::new());
/// let table = TableDef::builder("Orders", "id", KeyKind::S).build()?;
/// cached.create_table(CreateTable::from(table)).await?;
///
/// let order = Item::new().with("id", "o-1").with("quantity", 3);
/// cached.write_item(PutItem::new("Orders", order.clone()).into()).await?;
/// let get = GetItem::new("Orders", Item::new().with("id", "o-1")).eventual();
/// assert_eq!(cached.get_item(get).await?.item, Some(order));
/// assert_eq!(cached.stats().hits, 1);
/// # Ok(())
/// # }
/// ```
pub struct CacheEngine {
    inner: Arc<dyn Engine>,
    options: CacheOptions,
    state: Mutex<CacheState>,
}

impl fmt::Debug for CacheEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheEngine")
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl CacheEngine {
    /// An empty cache in front of this engine. Writes that bypass the cache count as writes by another process.
    pub fn new(inner: Arc<dyn Engine>, options: CacheOptions) -> Self {
        Self {
            inner,
            options,
            state: Mutex::new(CacheState::new(options)),
        }
    }

    /// Returns the statistics.
    pub fn stats(&self) -> CacheStats {
        self.lock().stats()
    }

    /// Clears the cache, for example after writes that bypassed it. Keeps the counts of hits and misses.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Learns the key of a table from its description.
    fn learn_key(&self, description: &TableDescription) {
        let table = &description.definition;
        let names = table.key.attributes().map(|attribute| &attribute.name);
        self.lock().learn_key(&table.name, names);
    }

    /// Changes a table, and drops everything about it that was cached or began before the end of the change.
    async fn change(
        &self,
        table_name: String,
        change: impl for<'a> FnOnce(&'a dyn Engine) -> BoxFuture<'a, Result<TableDescription>> + Send,
    ) -> Result<TableDescription> {
        let _guard = DropTableGuard {
            cache: self,
            table_name,
        };
        change(&*self.inner).await
    }
}

/// Drops a table from the cache when its change has ended, also if the caller cancelled it.
struct DropTableGuard<'c> {
    cache: &'c CacheEngine,
    table_name: String,
}

impl Drop for DropTableGuard<'_> {
    fn drop(&mut self) {
        self.cache.lock().drop_table(&self.table_name);
    }
}

/// Methods that call the functions of the same names.
macro_rules! cached {
    ($($operation:ident($input:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $input) -> BoxFuture<'_, Result<$output>> {
            Box::pin($operation(self, input))
        }
    )*};
}

impl Engine for CacheEngine {
    forward_to!(self.inner; basics, streams);
    forward_to!(self.inner; transact_get_items, query, scan, list_tables, update_tags);

    each_operation!(cached; get_item, batch_get_item);
    each_operation!(cached; write_item, batch_write_item, transact_write_items);

    fn create_table(&self, input: CreateTable) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let name = input.table_name.clone();
            let made = self.change(name, |inner| inner.create_table(input)).await?;
            self.learn_key(&made);
            Ok(made)
        })
    }

    fn describe_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        Box::pin(async move {
            let description = self.inner.describe_table(table_name).await?;
            self.learn_key(&description);
            Ok(description)
        })
    }

    fn update_table(&self, input: UpdateTable) -> BoxFuture<'_, Result<TableDescription>> {
        let name = input.table_name.clone();
        Box::pin(self.change(name, |inner| inner.update_table(input)))
    }

    fn delete_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        let name = table_name.clone();
        Box::pin(self.change(name, |inner| inner.delete_table(table_name)))
    }

    fn update_time_to_live(
        &self,
        input: UpdateTimeToLive,
    ) -> BoxFuture<'_, Result<TableDescription>> {
        let name = input.table_name.clone();
        Box::pin(self.change(name, |inner| inner.update_time_to_live(input)))
    }
}
