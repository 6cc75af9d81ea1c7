//! Options of an engine.

use std::time::Duration;

use floe_store::Env;
use floe_store::limits::STREAM_RETENTION;

use crate::kv::KvOptions;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Durability {
    /// Once it is on disk: acknowledged writes survive power loss.
    #[default]
    Sync,
    /// Once the operating system has it: acknowledged writes survive a killed process, but power loss may lose the
    /// latest ones. The rest is always consistent: no partial transaction, no index that disagrees with its table.
    Relaxed,
}

/// Options of an engine.
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
    /// Options of the key-value store.
    pub(crate) kv: KvOptions,
    pub(crate) region: String,
    pub(crate) account: String,
    pub(crate) stream_retention: Duration,
    pub(crate) background: bool,
    pub(crate) disk_reserve_bytes: Option<u64>,
}

/// Plain setters: argument, field, and value of the field.
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
    /// Returns the defaults: the system clock, synced writes, 128 MB of cache, 64 MB of write buffers, change records
    /// kept for 24 hours.
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

    /// Source of time and ids. Default: the system's.
    #[must_use]
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Region in resource names. Default: `local`.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// Account in resource names. Default: `000000000000`.
    #[must_use]
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }

    setters! {
        /// When a write is acknowledged. Default: [`Durability::Sync`].
        durability(durability: Durability) => durability = durability;

        /// Memory in bytes for caching data read from disk. Default: 128 MB.
        cache_bytes(bytes: u64) => kv.cache_bytes = bytes;

        /// Memory in bytes for writes that are not yet in sorted files, over all tables. Minimum: 1 MB. Default: 64 MB.
        /// Up to twice as much is used while files are being written.
        write_buffer_bytes(bytes: u64) => kv.write_buffer_bytes = if bytes < 1 << 20 { 1 << 20 } else { bytes };

        /// How long change records are kept that no consumer holds. Default: 24 hours.
        stream_retention(retention: Duration) => stream_retention = retention;

        /// Whether a thread of the engine fills indexes, removes expired items and trims change records. If off, this
        /// work waits for [`LocalEngine::run_background_once`](crate::LocalEngine::run_background_once). Default: on.
        background(on: bool) => background = on;

        /// Free disk space in bytes below which writes that add data are rejected, so that deletes and the journal
        /// still fit. Default: 256 MB, or an eighth of a file system smaller than 2 GB.
        disk_reserve_bytes(bytes: u64) => disk_reserve_bytes = Some(bytes);
    }

    /// The ARN of a table.
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
