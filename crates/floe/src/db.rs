//! The database: an engine, with the clock, the random numbers and the settings that transactions need.

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
    /// The same engine, if it is the read cache.
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
    /// Opens the embedded engine in a directory, and creates the directory if it is missing.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the directory cannot be used or another process has it open.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::with_engine(Arc::new(LocalEngine::open(directory)?)))
    }

    /// Opens an embedded engine that keeps everything in memory.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if its threads cannot be started.
    pub fn memory() -> Result<Self> {
        Ok(Self::with_engine(Arc::new(LocalEngine::memory()?)))
    }

    /// Connects to Amazon DynamoDB, or to any server that speaks its protocol: a Floe server, DynamoDB Local,
    /// ScyllaDB's Alternator. Region and credentials come from the sources that the AWS tools use, unless the options
    /// set them. Requires the feature `aws`.
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
    /// [`Store`](crate::ErrorKind::Store) if no region is configured, or if the prefix is not a valid beginning of a
    /// table name. An unreachable store is reported by the first request.
    #[cfg(feature = "aws")]
    pub async fn connect(options: ConnectOptions) -> Result<Self> {
        let engine = floe_aws::AwsEngine::connect(options).await?;
        Ok(Self::with_engine(Arc::new(engine)))
    }

    /// A database on any engine.
    pub fn with_engine(engine: Arc<dyn Engine>) -> Self {
        Self::with_parts(engine, Env::system(), Arc::new(TokioTimer))
    }

    /// A database on any engine, with the given clock, random numbers and timer.
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

    /// Serves [eventual](crate::Tx::eventual) reads from memory where possible: see [`cache`](crate::cache).
    ///
    /// Only writes through the returned database and its clones are visible in the cache at once.
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

    /// Signs cursors with this key. By default the key is generated when the database is opened, and cursors of
    /// another process or from before a restart are rejected. Use 32 random bytes, keep them secret, and configure
    /// the same key in all processes that serve the same clients.
    #[must_use]
    pub fn with_cursor_key(self, key: &[u8]) -> Self {
        self.with(|inner| inner.cursor_key = CursorKey::new(key))
    }

    /// Sets a setting of a pattern. It replaces an earlier one of its type.
    pub(crate) fn with_setting<T: Any + Send + Sync>(self, setting: T) -> Self {
        self.with(|inner| inner.settings = inner.settings.with(setting))
    }

    /// Returns the setting of a pattern by its type.
    pub(crate) fn setting<T: Any + Default + Send + Sync>(&self) -> &T {
        self.inner.settings.get()
    }

    fn with(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = self.inner;
        change(Arc::make_mut(&mut inner));
        Self { inner }
    }

    /// Statistics of the read cache, if there is one.
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
