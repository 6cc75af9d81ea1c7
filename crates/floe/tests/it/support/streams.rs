//! Event streams on an engine that records and holds requests and loses responses, and a second process on the same
//! store.

use std::sync::Arc;

use floe::Db;
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, StreamName};
use floe_local::{LocalEngine, Options};
use floe_store::expr::KeyCondition;
use floe_store::op::Query;
use floe_store::{Capabilities, Engine, Env, Item};
use floe_testkit::fault::{FaultEngine, Faults};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

use super::gate::Gate;
use super::no_time::NoTime;

pub(crate) struct World {
    /// Records requests.
    pub recording: Arc<RecordingEngine>,
    /// Holds requests.
    pub gate: Arc<Gate>,
    /// Loses responses.
    pub faults: Arc<FaultEngine>,
    /// The engine without wrappers.
    pub engine: Arc<dyn Engine>,
    /// Uses the engine through all wrappers.
    pub store: EventStore,
    /// Another process, which uses the engine without wrappers.
    pub other: EventStore,
}

impl World {
    /// Creates a world whose Tips are calved beyond three events.
    pub(crate) async fn new(capabilities: Capabilities) -> Self {
        Self::with(capabilities, options()).await
    }

    pub(crate) async fn with(capabilities: Capabilities, options: EventStoreOptions) -> Self {
        let test = TestEnv::seeded(1);
        let local = Options::new().env(test.env.clone()).background(false);
        let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(local).unwrap());
        let faults = Arc::new(FaultEngine::new(engine.clone(), Faults::seeded(7)));
        let gate = Arc::new(Gate::new(faults.clone()));
        let recording = Arc::new(RecordingEngine::new(gate.clone()).claiming(capabilities));
        let store = |engine: Arc<dyn Engine>, seed| {
            let env = Env::manual(test.clock.clone(), seed);
            Db::with_parts(engine, env, Arc::new(NoTime)).event_store(options.clone())
        };
        let world = Self {
            store: store(recording.clone(), 2),
            other: store(engine.clone(), 3),
            recording,
            gate,
            faults,
            engine,
        };
        world.other.ensure_table().await.unwrap();
        world
    }

    /// Appends the events of a range of indexes one by one, in the other process.
    pub(crate) async fn append(&self, stream: &StreamName, indexes: std::ops::Range<u64>) {
        for index in indexes {
            let append = self
                .other
                .append(stream, Expected::Exact(index), [event(index)]);
            append.await.unwrap();
        }
    }

    /// Returns the items of a stream.
    pub(crate) async fn items(&self, stream: &StreamName) -> Vec<Item> {
        items_of(&*self.engine, "events", stream).await
    }
}

/// Returns the items of a stream in a table.
pub(crate) async fn items_of(engine: &dyn Engine, table: &str, stream: &StreamName) -> Vec<Item> {
    let condition = KeyCondition::partition("p", stream.as_str());
    let mut query = Query::new(table, condition);
    query.consistent = true;
    let page = engine.query(query).await.unwrap();
    assert_eq!(page.last_key, None);
    page.items
}

pub(crate) fn options() -> EventStoreOptions {
    EventStoreOptions::default().tip_events_max(3)
}

pub(crate) fn stream() -> StreamName {
    StreamName::new("Log", "a").unwrap()
}

/// Returns the event at this index, with a body whose length depends on it.
pub(crate) fn event(index: u64) -> EventData {
    EventData::new("Noted", format!("{index}{}", ".".repeat(index as usize)))
}
