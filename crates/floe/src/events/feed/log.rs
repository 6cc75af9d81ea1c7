//! What ingesters and readers need of a store: epochs and the index, loaded, appended to and read.
//!
//! [`TableLog`] keeps them in a table. Tests have one in memory, with failures and others who come in between.

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

/// Where the epochs and the index of a feed are written.
///
/// Whatever fails may have been done or not; who calls loads again and finds out. A future that is dropped is the same.
pub trait EpochLog: Send + Sync {
    /// What must not have changed between a load and an append.
    type Position: fmt::Debug + Send + Sync;

    /// Loads an epoch, with everything that was appended before; an empty one if there is none.
    fn load_epoch(
        &self,
        partition: Partition,
        epoch: u32,
    ) -> impl Future<Output = Result<Loaded<EpochState, Self::Position>>> + Send;

    /// Loads an epoch of which something is known. A store may read no more than what is new.
    fn refresh_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        known: Loaded<EpochState, Self::Position>,
    ) -> impl Future<Output = Result<Loaded<EpochState, Self::Position>>> + Send {
        drop(known);
        self.load_epoch(partition, epoch)
    }

    /// Appends events to an epoch, all or none, if it is as it was loaded.
    fn append_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        events: &[EpochEvent],
        expected: &Self::Position,
    ) -> impl Future<Output = Result<Appended<Self::Position>>> + Send;

    /// Loads the index; an empty one if there is none.
    fn load_index(&self)
    -> impl Future<Output = Result<Loaded<IndexState, Self::Position>>> + Send;

    /// Appends an event to the index and keeps `after` beside it, if it is as it was loaded.
    fn append_index(
        &self,
        event: &IndexEvent,
        after: &IndexState,
        expected: &Self::Position,
    ) -> impl Future<Output = Result<Appended<Self::Position>>> + Send;
}

/// Where the epochs of a feed are read.
pub trait EpochSource: Send + Sync {
    /// The events of an epoch from this offset on, as many as the store gives at once: some, if there are any.
    fn read_epoch(
        &self,
        partition: Partition,
        epoch: u32,
        offset: u64,
    ) -> impl Future<Output = Result<EpochPage>> + Send;

    /// The index; an empty one if there is none.
    fn read_index(&self) -> impl Future<Output = Result<IndexState>> + Send;

    /// How many events an epoch has.
    fn epoch_version(
        &self,
        partition: Partition,
        epoch: u32,
    ) -> impl Future<Output = Result<EpochVersion>> + Send;
}

/// A state, and where its stream stands.
#[derive(Clone, Debug)]
pub struct Loaded<S, P> {
    /// What is known.
    pub state: S,
    /// What an append expects.
    pub position: P,
}

/// What became of an append.
#[derive(Clone, Debug)]
pub enum Appended<P> {
    /// It was applied.
    Written {
        /// What the next append expects.
        position: P,
        /// When the events were written, as they tell it themselves.
        time: Timestamp,
    },
    /// Somebody else was faster. Nothing was written.
    Conflict,
}

/// Some events of an epoch, side by side.
#[derive(Clone, Debug, Default)]
pub struct EpochPage {
    /// The events, from the offset that was asked for, and when each was written.
    pub events: Vec<(EpochEvent, Timestamp)>,
    /// Whether the epoch is closed and has no events after these.
    pub is_end: bool,
}

/// How far an epoch has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EpochVersion {
    /// How many events it has.
    pub version: u64,
    /// Whether it is closed.
    pub is_closed: bool,
}
