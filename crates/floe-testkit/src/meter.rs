//! An engine that wraps another one and adds up the consumed capacity, for tests of the cost of calls.
//!
//! ```
//! # async fn example(engine: std::sync::Arc<dyn floe_store::Engine>) {
//! use floe_store::capacity::Units;
//! use floe_store::{Engine, Item, op::GetItem};
//! use floe_testkit::meter::MeteredEngine;
//!
//! let metered = MeteredEngine::new(engine);
//! let get = GetItem::new("Orders", Item::new().with("id", "o-1"));
//! metered.get_item(get).await.unwrap();
//! let spent = metered.take();
//! assert_eq!((spent.requests, spent.read), (1, Units::whole(1)));
//! # }
//! ```

use std::sync::{Arc, Mutex};

use floe_store::capacity::{ConsumedCapacity, ReturnConsumedCapacity, Units};
use floe_store::op::{WriteItem, WriteItemOutput};
use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};

use crate::lock::lock;

/// Consumed capacity. A failed request counts as a request, but not its capacity, because the error does not report
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Spent {
    /// Number of requests of any kind.
    pub requests: u64,
    /// Read units.
    pub read: Units,
    /// Write units.
    pub write: Units,
}

/// An engine that requests the consumed capacity of each item operation and adds it up.
pub struct MeteredEngine {
    inner: Arc<dyn Engine>,
    spent: Mutex<Spent>,
}

impl std::fmt::Debug for MeteredEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MeteredEngine").finish_non_exhaustive()
    }
}

impl MeteredEngine {
    /// Wraps an engine.
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Self {
            inner,
            spent: Mutex::default(),
        }
    }

    /// Returns the capacity consumed since the last call, and resets it.
    pub fn take(&self) -> Spent {
        std::mem::take(&mut *lock(&self.spent))
    }

    fn count(&self) {
        lock(&self.spent).requests += 1;
    }

    fn charge<'c>(&self, consumed: impl IntoIterator<Item = &'c ConsumedCapacity>) {
        let mut spent = lock(&self.spent);
        for cost in consumed {
            spent.read += cost.read;
            spent.write += cost.write;
        }
    }
}

macro_rules! charge {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, mut input: $type) -> BoxFuture<'_, Result<$output>> {
            self.count();
            input.return_capacity = ReturnConsumedCapacity::Total;
            Box::pin(async move {
                let output = self.inner.$operation(input).await?;
                self.charge(&output.consumed);
                Ok(output)
            })
        }
    )*};
}

macro_rules! count {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            self.count();
            self.inner.$operation(input)
        }
    )*};
}

impl Engine for MeteredEngine {
    forward_to!(self.inner; basics);

    fn write_item(&self, mut input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        self.count();
        *input.return_capacity_mut() = ReturnConsumedCapacity::Total;
        Box::pin(async move {
            let output = self.inner.write_item(input).await?;
            self.charge(&output.consumed);
            Ok(output)
        })
    }

    each_operation!(charge; get_item, batch_get_item, transact_get_items, batch_write_item);
    each_operation!(charge; transact_write_items, query, scan);
    each_operation!(count; tables, streams);
}
