//! The feed: what was appended to the streams of a table, told once more in one order.
//!
//! The changes of a table are kept for a day, and come in an order that holds per item alone. So an indexer writes
//! down, in streams of their own, which events were appended to which stream. These can be read from the beginning at
//! any time, by anybody, as often as it takes.
//!
//! ```text
//! change record ──source──▶ spans ──partition──▶ ingester ──decides by──▶ epoch ──▶ $AppendsEpoch-0_7
//!                                                    └──moves on by──▶ index ──▶ $AppendsIndex-0
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`source`] | from a change record to the span of events that it brought |
//! | [`span`] | events that were appended to one stream, side by side |
//! | [`partition`] | which chain of epochs a stream belongs to |
//! | [`epoch`] | what an epoch knows, and what it takes of the spans that are brought to it |
//! | [`index`] | which epoch of each partition is written to |
//! | [`indexer`] | reads the changes of a table, and brings them to the ingesters |
//! | [`settings`] | what must stay the same as long as there is a feed |
//! | [`ingester`] | writes spans into the epochs of a partition, however many others do |
//! | [`reader`] | reads the epochs of a partition from a checkpoint on |
//! | [`subscription`] | reads a partition, and loads what the events say |
//! | [`consumer`] | gives events to handlers, and remembers how far it has come |
//! | [`log`] | what ingesters and readers need of a store |
//! | [`checkpoint`] | a place in the feed of a partition |
//! | [`limits`] | how large epochs become |
//!
//! The layout is that of Equinox and Propulsion, so that each can read what the other has written.

pub mod checkpoint;
pub mod consumer;
pub mod epoch;
pub mod index;
pub mod indexer;
pub mod ingester;
mod kept;
mod lag;
pub mod limits;
pub mod log;
pub mod partition;
pub mod reader;
pub mod settings;
pub mod source;
pub mod span;
pub mod subscription;
mod telemetry;

pub use checkpoint::Checkpoint;
pub use consumer::{Consumed, Consumer, ConsumerGroup, Delivery, Handled, Notice, Parked, Worked};
pub use epoch::Gap;
pub use indexer::{Indexed, Indexer, IndexerOptions, Intake};
pub use ingester::{Ingester, Taken};
pub use lag::Lag;
pub use limits::EpochLimits;
pub use log::TableLog;
pub use partition::{Partition, Partitions};
pub use reader::{FeedBatch, Filter, Reader};
pub use span::Span;
pub use subscription::{EventBatch, Feed, Subscription};
