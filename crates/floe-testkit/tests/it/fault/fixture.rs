//! An engine with faults.

use std::sync::Arc;

use floe_local::LocalEngine;
use floe_store::env::ManualClock;
use floe_store::op::{CreateTable, GetItem, PutItem};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{BoxFuture, Engine, Item, Result, TableDef};
use floe_testkit::Harness;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Lag};
use floe_testkit::model::ModelHarness;

pub(crate) const TABLE: &str = "Things";

/// A table with a sort key, a global and a local index, and a stream.
pub(crate) fn things() -> TableDef {
    TableDef::builder(TABLE, "shelf", KeyKind::S)
        .sort_key("place", KeyKind::N)
        .global_index(
            "by_color",
            [("color", KeyKind::S)],
            [("weight", KeyKind::N)],
            Projection::Include(vec!["note".into()]),
        )
        .local_index("by_weight", "weight", KeyKind::N, Projection::KeysOnly)
        .stream(StreamView::NewAndOldImages)
        .build()
        .unwrap()
}

/// An empty table in an engine with faults.
pub(crate) async fn engine(faults: Faults) -> Arc<FaultEngine> {
    with_clock(faults).await.0
}

/// As [`engine`], with the clock.
pub(crate) async fn with_clock(faults: Faults) -> (Arc<FaultEngine>, Arc<ManualClock>) {
    let harness = ModelHarness::new(1);
    let engine = FaultEngine::new(harness.engine(), faults);
    engine
        .create_table(CreateTable::from(things()))
        .await
        .unwrap();
    (Arc::new(engine), harness.clock().unwrap())
}

/// As [`engine`], on the embedded engine.
pub(crate) async fn local(faults: Faults) -> Arc<FaultEngine> {
    let inner = LocalEngine::memory().unwrap();
    let engine = FaultEngine::new(Arc::new(inner), faults);
    engine
        .create_table(CreateTable::from(things()))
        .await
        .unwrap();
    Arc::new(engine)
}

pub(crate) fn key(place: u64) -> Item {
    Item::new().with("shelf", "a").with("place", place)
}

pub(crate) fn thing(place: u64, note: u64) -> Item {
    key(place).with("note", note)
}

pub(crate) async fn put(engine: &dyn Engine, item: Item) -> Result<()> {
    engine
        .write_item(PutItem::new(TABLE, item).into())
        .await
        .map(drop)
}

/// The current item, regardless of faults.
pub(crate) async fn current_item(engine: &FaultEngine, key: Item) -> Option<Item> {
    engine
        .inner()
        .get_item(GetItem::new(TABLE, key))
        .await
        .unwrap()
        .item
}

/// The number of faults of a kind in the log.
pub(crate) fn count(engine: &FaultEngine, kind: FaultKind) -> usize {
    engine
        .faults()
        .iter()
        .filter(|fault| fault.kind == kind)
        .count()
}

/// Checks that a count is close to the rate times the number of tries.
#[track_caller]
pub(crate) fn assert_near(count: usize, rate: f64, tries: usize) {
    let measured = count as f64 / tries as f64;
    assert!(
        (measured - rate).abs() < 0.03,
        "measured={measured} rate={rate} tries={tries}"
    );
}

/// A model in a wrapper that tracks all writes and injects no faults.
pub(crate) struct QuietHarness {
    model: ModelHarness,
    engine: Arc<FaultEngine>,
}

impl QuietHarness {
    pub(crate) fn new(seed: u64) -> Self {
        let model = ModelHarness::new(seed);
        let faults = Faults::seeded(seed)
            .index_lag(0.0, Lag::Operations(100))
            .stale_reads(0.0, Lag::Operations(100))
            .monotonic_reads();
        let engine = Arc::new(FaultEngine::new(model.engine(), faults));
        Self { model, engine }
    }
}

impl Harness for QuietHarness {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn clock(&self) -> Option<Arc<ManualClock>> {
        self.model.clock()
    }

    fn sweep(&self) -> BoxFuture<'_, Result<()>> {
        self.model.sweep()
    }

    fn reopen(&mut self) -> BoxFuture<'_, Result<()>> {
        self.model.reopen()
    }
}
