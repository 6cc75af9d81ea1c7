//! The limits of the feed, each with its reason.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// How many places an epoch has at most. Checkpoints that are stored depend on it, so it never changes.
pub const EPOCH_OFFSETS: u32 = 1_000_000;

/// How many streams an epoch takes, whatever its limits say.
pub const EPOCH_STREAMS_CAP: usize = 1_000_000;

/// How large an `Ingested` event may be, whatever the limits say: an item takes 400 KB, with its name and types.
pub const EVENT_BYTES_CAP: usize = 350 << 10;

/// What an event weighs besides its text and its body, as for the events of a Tip.
pub(crate) const EVENT_BYTES: usize = 40;

/// How often one batch of spans is decided again after somebody else was faster. Each time the others got ahead, so
/// this many are a sign of too many ingesters.
pub(crate) const CONFLICTS_MAX: u32 = 100;

/// By how much the clock of an ingester may differ from the one that stamps change records.
pub(crate) const CLOCK_SKEW_MAX: Duration = Duration::from_secs(5 * 60);

/// How many records an indexer brings to the epochs at once, at most.
pub const BATCH_RECORDS_CAP: usize = 10_000;

/// How many partitions an indexer writes to at once.
pub(crate) const PARTITIONS_AT_ONCE: usize = 16;

/// How many streams are loaded or handled at once, unless something else is said.
pub(crate) const STREAMS_AT_ONCE: usize = 16;

/// How often the events of a stream are given to a handler that does not get on, unless something else is said.
pub(crate) const TRIES_MAX: u32 = 5;

/// How many events of a stream are given to a handler at once, unless something else is said.
pub(crate) const HANDLED_AT_ONCE: usize = 100;

/// How many batches of a partition are read ahead of the first that is not done. A stream that is slower than the others
/// by more than this holds them up: what is read must be remembered.
pub(crate) const BATCHES_AHEAD: usize = 256;

/// How many events of a partition may wait for handlers before no more are read.
pub(crate) const EVENTS_AHEAD: u64 = 20_000;

/// How many streams of a partition may be parked: they are stored in one item, of 400 KB. If it is more, something else is
/// wrong than the streams.
pub(crate) const PARKED_MAX: usize = 500;

/// How much is kept of what a handler said of a stream that is parked.
pub(crate) const REASON_CHARS_MAX: usize = 300;

/// How often a beat is tried, because another member was faster.
pub(crate) const BEAT_ATTEMPTS: u32 = 20;

/// How often in a row an indexer must find nothing before it has caught up: DynamoDB gives empty pages before the end.
pub(crate) const EMPTY_ROUNDS: u32 = 3;

/// How long is waited where there is nothing new, unless something else is said. An indexer and a reader together come
/// within a second of a writer then, and a shard of DynamoDB bears five looks a second.
pub const POLL: Duration = Duration::from_millis(250);

/// When an epoch is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochLimits {
    /// The most that its events may weigh: who reads it may have to read it whole.
    pub bytes_max: u64,
    /// The most `Ingested` events.
    pub version_max: u64,
    /// The most streams: who writes to it remembers each.
    pub streams_max: usize,
    /// The most that one `Ingested` event may weigh: it must fit into an item. What is more goes into another event.
    pub event_bytes_max: usize,
}

impl Default for EpochLimits {
    /// 1 MiB of events, 5,000 of them, 100,000 streams, and 256 KiB an event.
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
    /// Checks that epochs within these limits can be written and named by checkpoints.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when a limit is beyond what there can be.
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
                let message = format!("an epoch cannot be that large: {fact}");
                return Err(Error::new(ErrorKind::InvalidUse, message));
            }
        }
        Ok(())
    }
}
