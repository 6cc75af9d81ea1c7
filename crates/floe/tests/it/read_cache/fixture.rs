//! A store with a read cache, and a record of the requests between them.

use std::sync::Arc;

use floe::cache::{CacheEngine, CacheOptions};
use floe_local::{LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::expr::Update;
use floe_store::op::*;
use floe_store::table::KeyKind;
use floe_store::{BoxFuture, Engine, Item, Result, TableDef};
use floe_testkit::Harness;
use floe_testkit::fault::{FaultEngine, Faults};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

use super::gate::Gate;

/// A request passes through cache, recording, fault engine, gate and store, in this order.
pub(crate) struct World {
    pub(crate) cache: Arc<CacheEngine>,
    pub(crate) faults: Arc<FaultEngine>,
    pub(crate) gate: Arc<Gate>,
    recording: Arc<RecordingEngine>,
    /// The store itself, as another process uses it.
    pub(crate) other: Arc<dyn Engine>,
    pub(crate) time: TestEnv,
}

/// Creates a store with the tables `Plain` and `Second`, which the cache does not know yet.
pub(crate) async fn world() -> World {
    world_with(Faults::seeded(1), CacheOptions::new(), |_| {}).await
}

pub(crate) async fn world_with(
    faults: Faults,
    options: CacheOptions,
    change: impl FnOnce(&mut Gate),
) -> World {
    let time = TestEnv::seeded(1);
    let settings = Options::new().env(time.env.clone()).background(false);
    let other: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(settings).unwrap());
    let mut gate = Gate::new(other.clone());
    change(&mut gate);
    let gate = Arc::new(gate);
    let faults = Arc::new(FaultEngine::new(gate.clone(), faults));
    let recording = Arc::new(RecordingEngine::new(faults.clone()));
    // The fault engine keeps old versions only of tables that were created through it.
    for table in ["Plain", "Second"] {
        let table = TableDef::builder(table, "id", KeyKind::S).build().unwrap();
        faults.create_table(CreateTable::from(table)).await.unwrap();
    }
    World {
        cache: Arc::new(CacheEngine::new(recording.clone(), options)),
        faults,
        gate,
        recording,
        other,
        time,
    }
}

pub(crate) fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

pub(crate) fn item(id: &str, version: i64) -> Item {
    key(id).with("v", version)
}

pub(crate) fn put(id: &str, version: i64) -> PutItem {
    PutItem::new("Plain", item(id, version))
}

pub(crate) fn update(id: &str, version: i64) -> UpdateItem {
    UpdateItem::new("Plain", key(id), Update::new().set("v", version))
}

pub(crate) fn delete(id: &str) -> DeleteItem {
    DeleteItem::new("Plain", key(id))
}

pub(crate) fn get(id: &str) -> GetItem {
    GetItem::new("Plain", key(id)).eventual()
}

/// Returns an eventual batch read of one table.
pub(crate) fn batch<'a>(ids: impl IntoIterator<Item = &'a str>) -> BatchGetItem {
    let mut batch = BatchGetItem::new().keys("Plain", ids.into_iter().map(key));
    for request in batch.requests.values_mut() {
        request.consistent = false;
    }
    batch
}

/// Returns the version of an item, 0 if it is missing.
pub(crate) fn version_of(item: Option<&Item>) -> i64 {
    let version = item.and_then(|item| item.get("v")?.as_n()?.to_i64());
    version.unwrap_or(0)
}

pub(crate) async fn eventual(engine: &dyn Engine, id: &str) -> i64 {
    let output = engine.get_item(get(id)).await.unwrap();
    version_of(output.item.as_ref())
}

impl World {
    /// Writes through the cache.
    pub(crate) async fn write(&self, write: impl Into<WriteItem>) {
        self.cache.write_item(write.into()).await.unwrap();
    }

    /// Writes without the cache, as another process does.
    pub(crate) async fn write_elsewhere(&self, write: impl Into<WriteItem>) {
        self.other.write_item(write.into()).await.unwrap();
    }

    /// Writes a transaction through the cache.
    pub(crate) async fn transact(&self, actions: impl IntoIterator<Item = TransactWrite>) {
        let request = TransactWriteItems::new(actions);
        self.cache.transact_write_items(request).await.unwrap();
    }

    /// Returns the version that an eventual read sees.
    pub(crate) async fn sees(&self, id: &str) -> i64 {
        eventual(&*self.cache, id).await
    }

    /// Returns the version that an eventual read sees, and the number of its requests.
    pub(crate) async fn sees_for(&self, id: &str) -> (i64, usize) {
        self.requests();
        let version = self.sees(id).await;
        (version, self.requests().len())
    }

    /// Returns the requests that reached the store since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.recording.take()
    }
}

/// A cache under the contract suite. Removals by background work count as those of another process, so the cache is
/// cleared after them.
pub(crate) struct Cached {
    local: Arc<LocalEngine>,
    cache: Arc<CacheEngine>,
    gate: Arc<Gate>,
    clock: Arc<ManualClock>,
}

impl Cached {
    pub(crate) fn new(seed: u64, makes_eventual: bool) -> Self {
        let time = TestEnv::seeded(seed);
        let settings = Options::new().env(time.env).background(false);
        let local = Arc::new(LocalEngine::memory_with(settings).unwrap());
        let cache = Arc::new(CacheEngine::new(local.clone(), CacheOptions::new()));
        let mut gate = Gate::new(cache.clone());
        gate.makes_eventual = makes_eventual;
        Self {
            local,
            cache,
            gate: Arc::new(gate),
            clock: time.clock,
        }
    }
}

impl Harness for Cached {
    fn engine(&self) -> Arc<dyn Engine> {
        self.gate.clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        Some(self.clock.clone())
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async {
            while self.local.run_background_once()? {}
            self.cache.clear();
            Ok(())
        })
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        // Data in memory lives as long as the engine.
        Box::pin(async { Ok(()) })
    }
}
