//! While nobody listens to requests, nothing is asked of the engine besides what the caller asks. These tests are alone in
//! their process: whoever listens in it is heard by all.

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

/// Notes what is asked about capacity, and where the futures are that it gives out.
struct Asked {
    inner: LocalEngine,
    details: Mutex<Vec<ReturnConsumedCapacity>>,
    given: Mutex<Vec<usize>>,
}

impl Engine for Asked {
    forward_to!(self.inner; basics, tables, streams, batch_get_item, transact_get_items);
    forward_to!(self.inner; write_item, batch_write_item, transact_write_items, query, scan);

    fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        self.details.lock().unwrap().push(input.return_capacity);
        let future = self.inner.get_item(input);
        self.given.lock().unwrap().push(address(&future));
        future
    }
}

fn address<T>(future: &BoxFuture<'_, T>) -> usize {
    let future: *const (dyn Future<Output = T> + Send) = &**future;
    future.cast::<()>().addr()
}

#[test]
fn nothing_is_asked_besides_while_nobody_listens() {
    let asked = Arc::new(Asked {
        inner: LocalEngine::memory().unwrap(),
        details: Mutex::default(),
        given: Mutex::default(),
    });
    let traced = TracedEngine::client(asked.clone());
    let table = TableDef::builder("Orders", "id", KeyKind::S)
        .build()
        .unwrap();
    block_on(traced.create_table(table.into())).unwrap();
    let get = || GetItem::new("Orders", Item::new().with("id", "o-1"));

    let future = traced.get_item(get());
    assert_eq!(
        address(&future),
        asked.given.lock().unwrap()[0],
        "the future of the engine is handed through"
    );
    block_on(future).unwrap();

    // Somebody listens, but not to this.
    let quiet = Collector::up_to(Level::INFO);
    listen(&quiet, traced.get_item(get())).unwrap();
    assert!(quiet.state().spans.is_empty());
    assert_eq!(
        *asked.details.lock().unwrap(),
        [ReturnConsumedCapacity::None; 2]
    );

    // Somebody listens.
    let all = Collector::default();
    let output = listen(&all, async { traced.get_item(get()).await }).unwrap();
    assert_eq!(output.consumed, None, "who did not ask is not told");
    assert_eq!(all.requests(), ["GetItem"]);
    assert_eq!(
        asked.details.lock().unwrap()[2],
        ReturnConsumedCapacity::Total
    );
}
