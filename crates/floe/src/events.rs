//! The event store: events are stored in streams, and states are derived from them.
//!
//! ```
//! use floe::events::{Access, Decider};
//! use floe::{Db, Error, Event};
//!
//! #[derive(Clone, Debug, PartialEq, Event)]
//! enum AccountEvent {
//!     Deposited { cents: u64 },
//!     Withdrawn { cents: u64 },
//!     Snapshot { cents: u64 },
//! }
//!
//! enum Account {}
//!
//! impl Decider for Account {
//!     const CATEGORY: &'static str = "Account";
//!     type Id = str;
//!     type Event = AccountEvent;
//!     type State = u64;
//!
//!     fn initial() -> u64 {
//!         0
//!     }
//!
//!     fn evolve(balance: u64, event: &AccountEvent) -> u64 {
//!         match event {
//!             AccountEvent::Deposited { cents } => balance + cents,
//!             AccountEvent::Withdrawn { cents } => balance - cents,
//!             AccountEvent::Snapshot { cents } => *cents,
//!         }
//!     }
//!
//!     fn access() -> Access<Self> {
//!         Access::Snapshot {
//!             is_origin: |event| matches!(event, AccountEvent::Snapshot { .. }),
//!             to_snapshot: |balance| AccountEvent::Snapshot { cents: *balance },
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.events().ensure_table().await?;
//! let ann = db.stream::<Account>("ann");
//! ann.transact(|_| Ok::<_, Error>([AccountEvent::Deposited { cents: 500 }])).await?;
//!
//! // Decides on the current state; decides again after a conflict with another writer.
//! let paid = ann
//!     .transact(|balance| {
//!         let enough = *balance >= 200;
//!         Ok::<_, Error>((enough, enough.then_some(AccountEvent::Withdrawn { cents: 200 })))
//!     })
//!     .await?;
//! assert!(paid);
//! assert_eq!(ann.query(|balance| *balance).await?, 300);
//! # Ok(())
//! # }
//! ```
//!
//! # How a stream is stored
//!
//! A short stream is one item, the Tip. Events are appended to the Tip with one write. When the Tip becomes too large, its
//! events are moved into an immutable batch (they *calve*), in the same transaction as the append. Besides its events, the
//! Tip holds *unfolds*: a snapshot of the state, replaced by each append, so that loading takes one read regardless of the
//! length of the stream. The items are those of Equinox, whose programs can use the same table: see `stored.rs`.
//! `docs/events-cost.md` compares the cost with one item per event.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`store`] | appending to streams, their versions and names |
//! | [`read`] | reading events forward and backward |
//! | [`decider`], [`typed`] | events and states as types of the program |
//! | [`stream`] | a stream of a decider: load, decide, append |
//! | [`access`], [`cache`] | loading states, and keeping them in memory |
//! | [`harness`] | tests of deciders without a store |
//! | [`feed`] | everything appended to any stream, in order, readable from any checkpoint |
//! | [`options`], [`limits`], [`codec`] | how a store keeps its streams |
//! | [`transaction`] | streams in transactions with models |
//! | [`keys`] | names of streams |
//!
//! Internally, `changes` records appends, `compile` turns them into requests, `stored` knows the attributes of items,
//! and `reads` loads them.

pub mod access;
pub mod archive;
pub mod cache;
mod changes;
pub mod coalesce;
pub mod codec;
pub(crate) mod compile;
pub mod decider;
pub mod event;
pub mod feed;
pub mod harness;
pub mod keys;
pub mod limits;
pub mod options;
pub mod parts;
mod position;
pub mod prune;
pub mod read;
mod reads;
mod send;
pub mod store;
pub(crate) mod stored;
pub mod stream;
#[doc(hidden)]
pub mod support;
mod telemetry;
pub mod transaction;
pub mod typed;

pub use cache::Caching;
pub use coalesce::Appender;
pub use codec::Compression;
pub use decider::{Access, Decider, Decision};
pub use event::{EventData, Recorded};
pub use keys::{StreamId, StreamName};
pub use limits::TipLimits;
pub use options::EventStoreOptions;
pub use prune::Pruned;
pub use store::{EventStore, Expected};
pub use stream::{Load, Stream};
pub use typed::{Event, Metadata, Unknown};
