//! The read cache: eventual reads answered from memory.
//!
//! [`CacheEngine`] is an engine around an engine, in the role that DAX has for DynamoDB, but inside the
//! process. [`Db::with_read_cache`](crate::Db::with_read_cache) puts one around the engine of a database.
//!
//! # What is answered from memory
//!
//! `GetItem` and `BatchGetItem` that are not consistent, want whole items and do not ask for their cost.
//! That there is no item is remembered as well. Everything else goes to the engine: consistent reads,
//! reads in transactions, queries, scans. An error is never remembered.
//!
//! # What it promises
//!
//! - What another process wrote is seen after the time to live at the latest, if the engine shows it by
//!   then.
//! - What was written through this cache is seen by every read that begins after the answer, however
//!   reads and writes overlap. A put leaves the new item, an update its new image, a delete that there is
//!   none. Where it is not certain what a write has left (its answer was lost, it was cancelled or refused,
//!   it overlapped with another, it was an update in a transaction), the item is forgotten and next read
//!   consistently, even by an eventual read. This holds as long as the key is remembered: among
//!   the writes of the last time to live, as many as there is room for.
//! - A write with a token also leaves nothing but that the item must be read again. The engine answers it
//!   with success, too, if it was applied long ago and the item was changed since.
//! - A transaction whose condition failed has its items read again, so that running it again is not in
//!   vain.
//!
//! # What it costs
//!
//! An update that returns nothing is sent so that it returns the new image, which costs no capacity but
//! brings the item over the wire. An eventual read of an item that was forgotten because it was written
//! costs as much as a consistent one, once. The first put into a table whose key has not been seen
//! describes the table.
//!
//! What is where: `shelf` keeps the items and knows what may be kept, `read` and `write` take requests
//! past it. What is not here: expiry. An item that has expired is hidden above.

mod read;
mod shelf;
mod write;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::op::{CreateTable, UpdateTable, UpdateTimeToLive};
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};

use read::{batch_get_item, get_item};
use shelf::Shelf;
use write::{batch_write_item, transact_write_items, write_item};

/// How much a read cache holds, and for how long.
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

    /// How old an answer may be: how late a write of another process may be seen. Zero keeps nothing.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How many bytes to hold: items and keys as DynamoDB counts them, and a little for each entry. In
    /// memory, items that have been looked at take some times as much. The least recently used go first;
    /// an item larger than an eighth of the bound is not held.
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

/// What a read cache has done and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CacheStats {
    /// Items, and absences of items, that were answered from memory.
    pub hits: u64,
    /// Those that could have been and were not there, or too old.
    pub misses: u64,
    /// How many items and absences it holds.
    pub items: usize,
    /// How many bytes it holds, as [`CacheOptions::bytes_max`] counts them.
    pub bytes: usize,
}

/// An engine that answers eventual reads from memory where it can: see the [module](self).
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
    shelf: Mutex<Shelf>,
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
    /// An empty cache in front of this engine. What is written to the engine past the cache counts as
    /// written by another process.
    pub fn new(inner: Arc<dyn Engine>, options: CacheOptions) -> Self {
        Self {
            inner,
            options,
            shelf: Mutex::new(Shelf::new(options)),
        }
    }

    /// What it has done and what it holds.
    pub fn stats(&self) -> CacheStats {
        self.lock().stats()
    }

    /// Forgets everything, as after a change that went past it. The counts of hits and misses go on.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of the key of a table that the engine has described.
    fn learn_key(&self, description: &TableDescription) {
        let table = &description.definition;
        let names = table.key.attributes().map(|attribute| &attribute.name);
        self.lock().learn_key(&table.name, names);
    }

    /// Changes a table, of which nothing is kept that was known or begun before the end.
    async fn change(
        &self,
        table_name: String,
        change: impl for<'a> FnOnce(&'a dyn Engine) -> BoxFuture<'a, Result<TableDescription>> + Send,
    ) -> Result<TableDescription> {
        let _forgets = Forgets {
            cache: self,
            table_name,
        };
        change(&*self.inner).await
    }
}

/// Forgets a table when its change has ended, also if nobody waited for the end.
struct Forgets<'c> {
    cache: &'c CacheEngine,
    table_name: String,
}

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        self.cache.lock().drop_table(&self.table_name);
    }
}

/// Methods that the functions of the same names do.
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
