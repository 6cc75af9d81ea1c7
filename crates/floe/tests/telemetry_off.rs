//! Without a subscriber for requests, the engine receives exactly the caller's requests. A separate binary, because a
//! subscriber affects its whole process.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "telemetry/collect.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod collect;

use std::sync::{Arc, Mutex};

use floe::telemetry::TracedEngine;
use floe_local::LocalEngine;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::{GetItem, GetItemOutput};
use floe_store::table::KeyKind;
use floe_store::{BoxFuture, Engine, Item, Result, TableDef, forward_to};
use tracing::Level;

use collect::{Collector, block_on, listen};

/// Records the requested capacity details, and the addresses of the returned futures.
struct RecordingEngine {
    inner: LocalEngine,
    details: Mutex<Vec<ReturnConsumedCapacity>>,
    futures: Mutex<Vec<usize>>,
}

impl Engine for RecordingEngine {
    forward_to!(self.inner; basics, tables, streams, batch_get_item, transact_get_items);
    forward_to!(self.inner; write_item, batch_write_item, transact_write_items, query, scan);

    fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        self.details.lock().unwrap().push(input.return_capacity);
        let future = self.inner.get_item(input);
        self.futures.lock().unwrap().push(address(&future));
        future
    }
}

fn address<T>(future: &BoxFuture<'_, T>) -> usize {
    let future: *const (dyn Future<Output = T> + Send) = &**future;
    future.cast::<()>().addr()
}

#[test]
fn requests_are_unchanged_without_a_subscriber() {
    let engine = Arc::new(RecordingEngine {
        inner: LocalEngine::memory().unwrap(),
        details: Mutex::default(),
        futures: Mutex::default(),
    });
    let traced = TracedEngine::client(engine.clone());
    let table = TableDef::builder("Orders", "id", KeyKind::S)
        .build()
        .unwrap();
    block_on(traced.create_table(table.into())).unwrap();
    let get = || GetItem::new("Orders", Item::new().with("id", "o-1"));

    let future = traced.get_item(get());
    assert_eq!(
        address(&future),
        engine.futures.lock().unwrap()[0],
        "the future of the engine is returned as it is"
    );
    block_on(future).unwrap();

    // The subscriber is not enabled for requests.
    let quiet = Collector::up_to(Level::INFO);
    listen(&quiet, traced.get_item(get())).unwrap();
    assert!(quiet.state().spans.is_empty());
    assert_eq!(
        *engine.details.lock().unwrap(),
        [ReturnConsumedCapacity::None; 2]
    );

    // The subscriber is enabled for requests.
    let all = Collector::default();
    let output = listen(&all, async { traced.get_item(get()).await }).unwrap();
    assert_eq!(
        output.consumed, None,
        "the caller did not request the capacity"
    );
    assert_eq!(all.requests(), ["GetItem"]);
    assert_eq!(
        engine.details.lock().unwrap()[2],
        ReturnConsumedCapacity::Total
    );
}
