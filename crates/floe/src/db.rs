//! The database: an engine, and what a transaction needs besides it.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "aws")]
pub use floe_aws::ConnectOptions;
#[cfg(feature = "eventbridge")]
pub use floe_aws::EventBridge;
use floe_local::LocalEngine;
pub use floe_store::env::Timer;
use floe_store::{BoxFuture, Engine, Env};

use crate::cache::{CacheEngine, CacheOptions, CacheStats};
use crate::cursor::CursorKey;
use crate::error::Result;
use crate::settings::Settings;
use crate::telemetry::TracedEngine;

/// A database of models.
///
/// Cheap to clone: copies share the engine.
#[derive(Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    engine: Arc<dyn Engine>,
    env: Env,
    timer: Arc<dyn Timer>,
    /// The engine once more, if it is a cache around the engine that was given.
    cache: Option<Arc<CacheEngine>>,
    cursor_key: CursorKey,
    settings: Settings,
}

/// The timer of the tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

impl Db {
    /// Opens the embedded engine on a directory, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the directory cannot be used or another process has it.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::with_engine(Arc::new(LocalEngine::open(directory)?)))
    }

    /// An embedded engine that keeps everything in memory.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when its threads cannot be started.
    pub fn memory() -> Result<Self> {
        Ok(Self::with_engine(Arc::new(LocalEngine::memory()?)))
    }

    /// Connects to Amazon DynamoDB, or to anything that speaks its protocol: a Floe server, DynamoDB Local,
    /// ScyllaDB's Alternator. Region and credentials come from where the AWS tools take them, unless the options
    /// say otherwise. Needs the feature `aws`.
    ///
    /// ```no_run
    /// use floe::db::ConnectOptions;
    /// use floe::{Db, Error, Model};
    ///
    /// #[derive(Model)]
    /// struct Product {
    ///     #[model(key)]
    ///     name: String,
    ///     price: u32,
    /// }
    ///
    /// # async fn example() -> Result<(), Error> {
    /// let options = ConnectOptions::new()
    ///     .region("eu-central-1")
    ///     .profile("shop")
    ///     .table_prefix("shop-prod-");
    /// let db = Db::connect(options).await?;
    /// db.ensure_tables(&[Product::SCHEMA]).await?;
    /// db.transact(async |tx| tx.create(Product { name: "tea".to_owned(), price: 3 }).map(drop))
    ///     .await?;
    ///
    /// // The same program, on a laptop: `floe serve --memory`.
    /// let db = Db::connect(ConnectOptions::local("http://127.0.0.1:8000")).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when no region is known, or when the prefix is none that a table's name can
    /// begin with. Whether the store can be reached shows with the first request.
    #[cfg(feature = "aws")]
    pub async fn connect(options: ConnectOptions) -> Result<Self> {
        let engine = floe_aws::AwsEngine::connect(options).await?;
        Ok(Self::with_engine(Arc::new(engine)))
    }

    /// A database on any engine.
    pub fn with_engine(engine: Arc<dyn Engine>) -> Self {
        Self::with_parts(engine, Env::system(), Arc::new(TokioTimer))
    }

    /// A database on any engine, with time and randomness of one's own.
    pub fn with_parts(engine: Arc<dyn Engine>, env: Env, timer: Arc<dyn Timer>) -> Self {
        let random: Vec<u8> = (0..4).flat_map(|_| env.next_u64().to_ne_bytes()).collect();
        Self {
            inner: Arc::new(Inner {
                engine: Arc::new(TracedEngine::client(engine)),
                env,
                timer,
                cache: None,
                cursor_key: CursorKey::new(&random),
                settings: Settings::default(),
            }),
        }
    }

    /// Answers [eventual](crate::Tx::eventual) reads from memory where it can: see [`cache`](crate::cache).
    ///
    /// What is written through the returned database and its copies, and only that, is seen at once.
    ///
    /// ```
    /// use floe::{Db, Error, Model, Tx, cache::CacheOptions};
    ///
    /// #[derive(Model)]
    /// struct Product {
    ///     #[model(key)]
    ///     name: String,
    ///     price: u32,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let db = Db::memory()?.with_read_cache(CacheOptions::new());
    /// db.ensure_tables(&[Product::SCHEMA]).await?;
    /// let create = async |tx: &Tx| tx.create(Product { name: "tea".to_owned(), price: 3 }).map(drop);
    /// db.transact(create).await?;
    ///
    /// let price = async |tx: &Tx| {
    ///     let tea = tx.eventual().get::<Product>("tea").await?;
    ///     Ok::<_, Error>(tea.map(|tea| *tea.price))
    /// };
    /// assert_eq!(db.transact(price).await?, Some(3));
    /// assert_eq!(db.transact(price).await?, Some(3));
    /// let stats = db.read_cache().expect("there is one");
    /// assert_eq!((stats.misses, stats.hits), (0, 2));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_read_cache(self, options: CacheOptions) -> Self {
        let cache = Arc::new(CacheEngine::new(self.inner.engine.clone(), options));
        self.with(|inner| {
            inner.engine = cache.clone();
            inner.cache = Some(cache);
        })
    }

    /// The same database, whose cursors are signed with this key. Without it the key is made up when the
    /// database is opened, and cursors of another process or from before a restart are refused. Keep it
    /// secret, 32 random bytes long, and the same for all who serve the same clients.
    #[must_use]
    pub fn with_cursor_key(self, key: &[u8]) -> Self {
        self.with(|inner| inner.cursor_key = CursorKey::new(key))
    }

    /// The same database with a setting of a pattern, in place of an earlier one of its type.
    pub(crate) fn with_setting<T: Any + Send + Sync>(self, setting: T) -> Self {
        self.with(|inner| inner.settings = inner.settings.with(setting))
    }

    /// The setting of a pattern, by its type.
    pub(crate) fn setting<T: Any + Default + Send + Sync>(&self) -> &T {
        self.inner.settings.get()
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = self.inner;
        change(Arc::make_mut(&mut inner));
        Self { inner }
    }

    /// What the read cache has done and what it holds, if there is one.
    pub fn read_cache(&self) -> Option<CacheStats> {
        self.inner.cache.as_ref().map(|cache| cache.stats())
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.inner.engine
    }

    pub(crate) fn env(&self) -> &Env {
        &self.inner.env
    }

    pub(crate) fn timer(&self) -> &dyn Timer {
        &*self.inner.timer
    }

    pub(crate) fn cursor_key(&self) -> &CursorKey {
        &self.inner.cursor_key
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").finish_non_exhaustive()
    }
}
