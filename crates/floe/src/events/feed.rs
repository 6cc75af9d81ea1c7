//! The feed: everything appended to the streams of a table, in one order that can be read repeatedly.
//!
//! Change records are kept for a day, and are ordered per item only. An indexer therefore records in separate streams,
//! the epochs, which events were appended to which stream. Any number of readers can read the epochs from the beginning
//! at any time.
//!
//! ```text
//! change record ──source──▶ spans ──partition──▶ ingester ──decides with──▶ epoch ──▶ $AppendsEpoch-0_7
//!                                                    └──advances──▶ index ──▶ $AppendsIndex-0
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`source`] | the span of appended events in a change record |
//! | [`span`] | adjacent events of one stream |
//! | [`partition`] | assigns streams to partitions |
//! | [`epoch`] | the state of an epoch, and which spans it accepts |
//! | [`index`] | the current epoch of each partition |
//! | [`indexer`] | reads the changes of a table and passes them to ingesters |
//! | [`settings`] | settings that are fixed when the feed starts |
//! | [`ingester`] | writes spans into the epochs of a partition, concurrently with other ingesters |
//! | [`reader`] | reads the epochs of a partition from a checkpoint |
//! | [`subscription`] | reads a partition and loads the events |
//! | [`consumer`] | passes events to handlers, and stores checkpoints and dead letters |
//! | [`log`] | the storage interface of ingesters and readers |
//! | [`checkpoint`] | a position in the feed of a partition |
//! | [`limits`] | limits of epochs and consumers |
//!
//! The layout is that of Equinox and Propulsion, so both sides can read each other's data.

pub mod checkpoint;
pub mod consumer;
pub mod epoch;
pub mod index;
pub mod indexer;
pub mod ingester;
mod json;
mod lag;
pub mod limits;
pub mod log;
pub mod partition;
pub mod reader;
pub mod settings;
pub mod source;
pub mod span;
mod stored_state;
pub mod subscription;
mod telemetry;

pub use checkpoint::Checkpoint;
pub use consumer::{
    ConsumerGroup, FeedConsumer, FeedSummary, Handled, ParkedStream, ViewTransaction, WorkerNotice,
    WorkerSummary,
};
pub use epoch::Gap;
pub use indexer::{ChangeIngester, Indexer, IndexerOptions, IndexerSummary};
pub use ingester::{IngestOutcome, Ingester};
pub use lag::Lag;
pub use limits::EpochLimits;
pub use log::TableLog;
pub use partition::{Partition, Partitions};
pub use reader::{FeedBatch, Filter, Reader};
pub use span::Span;
pub use subscription::{EventBatch, Feed, Subscription};
