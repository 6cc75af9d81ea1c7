//! Limits of the feed, with their reasons.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// Maximum number of offsets in an epoch. Stored checkpoints depend on it, so it never changes.
pub const EPOCH_OFFSETS: u32 = 1_000_000;

/// Upper bound of the streams in an epoch, for any limits.
pub const EPOCH_STREAMS_CAP: usize = 1_000_000;

/// Upper bound of the size of an `Ingested` event, for any limits: an item holds 400 KB, including its name and
/// types.
pub const EVENT_BYTES_CAP: usize = 350 << 10;

/// Size of an event besides its text and body, as for the events of a Tip.
pub(crate) const EVENT_BYTES: usize = 40;

/// Maximum conflicts per batch of spans. More of them indicate too many ingesters.
pub(crate) const CONFLICTS_MAX: u32 = 100;

/// Maximum difference between the clock of an ingester and the clock that stamps change records.
pub(crate) const CLOCK_SKEW_MAX: Duration = Duration::from_secs(5 * 60);

/// Upper bound of the records that an indexer writes to epochs at once.
pub const BATCH_RECORDS_CAP: usize = 10_000;

/// Maximum number of partitions that an indexer writes concurrently.
pub(crate) const PARTITIONS_CONCURRENCY_MAX: usize = 16;

/// Default maximum number of streams loaded or handled concurrently.
pub(crate) const STREAMS_CONCURRENCY_MAX: usize = 16;

/// Default maximum attempts without progress before a stream is parked.
pub(crate) const ATTEMPTS_MAX: u32 = 5;

/// Default maximum number of events per call of a handler.
pub(crate) const CALL_EVENTS_MAX: usize = 100;

/// Maximum number of batches of a partition read ahead of the first incomplete one, which bounds memory. A stream
/// that is slower by more than this blocks the partition.
pub(crate) const BATCHES_AHEAD_MAX: usize = 256;

/// Maximum number of events of a partition read ahead of the handlers.
pub(crate) const EVENTS_AHEAD_MAX: u64 = 20_000;

/// Maximum stored length of the reason of a dead letter.
pub(crate) const REASON_CHARS_MAX: usize = 300;

/// Maximum attempts of a heartbeat that conflicts with other members.
pub(crate) const HEARTBEAT_ATTEMPTS_MAX: u32 = 20;

/// Consecutive empty reads after which an indexer has caught up. DynamoDB returns empty pages before the end.
pub(crate) const EMPTY_READS: u32 = 3;

/// Default pause after an empty read. Indexer and reader together are then less than a second behind a writer, and a
/// shard of DynamoDB allows five reads per second.
pub const POLL: Duration = Duration::from_millis(250);

/// Limits at which an epoch is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochLimits {
    /// Maximum size of the events. A reader may have to read the whole epoch.
    pub bytes_max: u64,
    /// Maximum number of `Ingested` events.
    pub version_max: u64,
    /// Maximum number of streams. An ingester keeps all of them in memory.
    pub streams_max: usize,
    /// Maximum size of one `Ingested` event, which must fit into an item. Larger batches are split.
    pub event_bytes_max: usize,
}

impl Default for EpochLimits {
    /// 1 MiB and 5,000 events per epoch, 100,000 streams, and 256 KiB per event.
    fn default() -> Self {
        Self {
            bytes_max: 1 << 20,
            version_max: 5_000,
            streams_max: 100_000,
            event_bytes_max: 256 << 10,
        }
    }
}

impl EpochLimits {
    /// Checks that epochs with these limits can be written and addressed by checkpoints.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if a limit is out of range.
    pub fn check(&self) -> Result<()> {
        let (streams, cap) = (self.streams_max, EPOCH_STREAMS_CAP);
        let (version, offsets) = (self.version_max, u64::from(EPOCH_OFFSETS));
        let (bytes, bytes_max) = (self.event_bytes_max, EVENT_BYTES_CAP);
        for (holds, fact) in [
            (streams <= cap, format!("streams_max={streams} max={cap}")),
            (
                version < offsets,
                format!("version_max={version} max={}", offsets - 1),
            ),
            (
                bytes <= bytes_max,
                format!("event_bytes_max={bytes} max={bytes_max}"),
            ),
        ] {
            if !holds {
                let message = format!("an epoch limit is too large: {fact}");
                return Err(Error::new(ErrorKind::InvalidUse, message));
            }
        }
        Ok(())
    }
}
