//! The settings of an engine.

use std::time::Duration;

use floe_store::Env;
use floe_store::limits::STREAM_RETENTION;

use crate::kv::KvOptions;

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// When it is on the disk: what was answered survives the loss of power.
    #[default]
    Sync,
    /// When the operating system has it: what was answered survives the death of the process, but the
    /// last writes before a loss of power may be missing. What is left is always whole: no half
    /// transaction, no index that disagrees with its table.
    Relaxed,
}

/// The settings of an engine.
///
/// ```
/// use floe_local::{Durability, LocalEngine, Options};
///
/// let options = Options::new().durability(Durability::Relaxed).cache_bytes(16 << 20);
/// let engine = LocalEngine::memory_with(options)?;
/// # engine.close()?;
/// # Ok::<(), floe_store::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) env: Env,
    pub(crate) durability: Durability,
    /// Those of the key-value store.
    pub(crate) kv: KvOptions,
    pub(crate) region: String,
    pub(crate) account: String,
    pub(crate) stream_retention: Duration,
    pub(crate) background: bool,
    pub(crate) disk_reserve_bytes: Option<u64>,
}

/// Setters that do nothing but set: what they take, and what the setting becomes.
macro_rules! setters {
    ($( $(#[$doc:meta])* $name:ident($taken:ident: $type:ty) => $($setting:ident).+ = $value:expr; )+) => {$(
        $(#[$doc])*
        #[must_use]
        pub const fn $name(mut self, $taken: $type) -> Self {
            self.$($setting).+ = $value;
            self
        }
    )+};
}

impl Options {
    /// The defaults: the system's clock, synced writes, 128 MB of cache, 64 MB of write buffers, change
    /// records kept for 24 hours.
    pub fn new() -> Self {
        Self {
            env: Env::system(),
            durability: Durability::Sync,
            kv: KvOptions {
                cache_bytes: 128 << 20,
                write_buffer_bytes: 64 << 20,
            },
            region: "local".to_owned(),
            account: "000000000000".to_owned(),
            stream_retention: STREAM_RETENTION,
            background: true,
            disk_reserve_bytes: None,
        }
    }

    /// Where time and ids come from.
    #[must_use]
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// The region that stands in resource names.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// The account that stands in resource names.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }

    setters! {
        /// When a write is answered.
        durability(durability: Durability) => durability = durability;

        /// Memory for data that was read from disk.
        cache_bytes(bytes: u64) => kv.cache_bytes = bytes;

        /// Memory for writes that are not yet in sorted files, over all tables; at least 1 MB. Up to
        /// twice as much is held while files are being written.
        write_buffer_bytes(bytes: u64) => kv.write_buffer_bytes = if bytes < 1 << 20 { 1 << 20 } else { bytes };

        /// How long change records are kept that no consumer holds.
        stream_retention(retention: Duration) => stream_retention = retention;

        /// Whether the engine fills indexes, removes expired items and trims change records on its own.
        /// Without it, they wait for [`LocalEngine::run_background_once`](crate::LocalEngine::run_background_once).
        background(on: bool) => background = on;

        /// Free disk space below which writes that store more are refused, so that deletes and the journal still fit.
        /// Default: 256 MB, or an eighth of a file system that is smaller than 2 GB.
        disk_reserve_bytes(bytes: u64) => disk_reserve_bytes = Some(bytes);
    }

    /// The resource name of a table.
    pub(crate) fn table_arn(&self, table_name: &str) -> String {
        let (region, account) = (&self.region, &self.account);
        format!("arn:aws:dynamodb:{region}:{account}:table/{table_name}")
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
