//! A [simulation](super::world) with an event store and its feed.

use std::num::NonZeroU32;
use std::ops::{Deref, DerefMut};

use floe::events::feed::{EpochLimits, IndexerOptions, Partitions};
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, StreamName};
use floe_testkit::fault::Faults;

pub(crate) use super::world::Pause;
use super::world::World;

/// A simulation with an event store.
pub(crate) struct Sim {
    world: World,
    pub(crate) store: EventStore,
}

impl Deref for Sim {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Sim {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

impl Sim {
    /// Creates a simulation with an empty store and without faults.
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(World::new(seed))
    }

    /// Creates a simulation with an empty store. Faults start when they are
    /// [resumed](floe_testkit::fault::FaultEngine::resume).
    pub(crate) fn with_faults(seed: u64, faults: Faults) -> Self {
        Self::of(World::with_faults(seed, faults))
    }

    fn of(mut world: World) -> Self {
        let options = EventStoreOptions::new("shop").tip_events_max(4);
        let store = world.db.event_store(options);
        let created = store.clone();
        world.wait(async move {
            created.ensure_table().await.unwrap();
            created.ensure_feed().await.unwrap();
        });
        Self { world, store }
    }

    /// Appends events to streams, and indexes them.
    pub(crate) fn append(&mut self, partitions: u32, events: &[(&str, u64)]) {
        let events: Vec<(StreamName, u64)> = events
            .iter()
            .map(|(stream, count)| (StreamName::parse(stream).unwrap(), *count))
            .collect();
        let store = self.store.clone();
        self.wait(async move {
            for (stream, count) in events {
                let events = (0..count).map(|_| EventData::new("Added", "{}"));
                let appended = store.append(&stream, Expected::Any, events);
                appended.await.unwrap();
            }
            let mut limits = EpochLimits::default();
            limits.version_max = 4;
            let options = IndexerOptions::new()
                .partitions(Partitions::new(NonZeroU32::new(partitions).unwrap()))
                .batch_max(3)
                .limits(limits);
            let mut indexer = store.indexer(options).unwrap();
            indexer.run_until_caught_up().await.unwrap();
        });
    }
}
