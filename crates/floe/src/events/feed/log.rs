//! The storage interface of ingesters and readers: loading, appending and reading epochs and the index.
//!
//! [`TableLog`] stores them in a table. Tests have an implementation in memory with failures and concurrent writers.

use std::fmt;
use std::future::Future;

use floe_store::Timestamp;

use super::epoch::{EpochEvent, EpochState};
use super::index::{IndexEvent, IndexState};
use super::partition::Partition;
use crate::error::Result;

#[cfg(test)]
pub(crate) mod memory;
pub mod table;

pub use table::TableLog;

/// Storage for the epochs and the index of a feed.
///
/// A failed or dropped operation may have been applied; the caller loads again to find out.
pub trait EpochLog: Send + Sync {
    /// The position in a stream that an append expects to be unchanged.
    type Position: fmt::Debug + Send + Sync;

    /// Loads an epoch with all its events; an empty one if it does not exist.
    fn load_epoch(
        &self,
        partition: Partition,
        epoch: u32,
    ) -> impl Future<Output = Result<Loaded<EpochState, Self::Position>>> + Send;

    /// Reloads an epoch from a known state. An implementation may read only what is new.
    fn refresh_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        known: Loaded<EpochState, Self::Position>,
    ) -> impl Future<Output = Result<Loaded<EpochState, Self::Position>>> + Send {
        drop(known);
        self.load_epoch(partition, epoch)
    }

    /// Appends events to an epoch atomically, if it has not changed since it was loaded.
    fn append_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        events: &[EpochEvent],
        expected: &Self::Position,
    ) -> impl Future<Output = Result<Appended<Self::Position>>> + Send;

    /// Loads the index; an empty one if it does not exist.
    fn load_index(&self)
    -> impl Future<Output = Result<Loaded<IndexState, Self::Position>>> + Send;

    /// Appends an event to the index with `after` as its unfold, if the index has not changed since it was loaded.
    fn append_index(
        &self,
        event: &IndexEvent,
        after: &IndexState,
        expected: &Self::Position,
    ) -> impl Future<Output = Result<Appended<Self::Position>>> + Send;
}

/// Read access to the epochs of a feed.
pub trait EpochSource: Send + Sync {
    /// A page of the events of an epoch from this offset: at least one, if there are any.
    fn read_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        offset: u64,
    ) -> impl Future<Output = Result<EpochPage>> + Send;

    /// The index; an empty one if it does not exist.
    fn read_index(&self) -> impl Future<Output = Result<IndexState>> + Send;

    /// The number of events of an epoch.
    fn epoch_version(
        &self,
        partition: Partition,
        epoch: u32,
    ) -> impl Future<Output = Result<EpochVersion>> + Send;
}

/// A state and its position in the stream.
#[derive(Clone, Debug)]
pub struct Loaded<S, P> {
    /// The state.
    pub state: S,
    /// The position that an append expects.
    pub position: P,
}

/// The outcome of an append.
#[derive(Clone, Debug)]
pub enum Appended<P> {
    /// It was applied.
    Written {
        /// The position that the next append expects.
        position: P,
        /// The time stored with the events.
        time: Timestamp,
    },
    /// Another writer changed the stream. Nothing was written.
    Conflict,
}

/// Consecutive events of an epoch.
#[derive(Clone, Debug, Default)]
pub struct EpochPage {
    /// The events from the requested offset, with their times.
    pub events: Vec<(EpochEvent, Timestamp)>,
    /// Whether the epoch is closed and has no events after these.
    pub is_end: bool,
}

/// The number of events of an epoch, and whether it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EpochVersion {
    /// Number of events.
    pub version: u64,
    /// Whether it is closed.
    pub is_closed: bool,
}
