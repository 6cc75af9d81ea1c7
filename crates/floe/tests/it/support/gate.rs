//! An engine that wraps another one and holds requests until the test releases them.

use std::sync::{Arc, Mutex};

use floe_store::op::*;
use floe_store::table::TableDescription;
use floe_store::{BoxFuture, Engine, Error, Result, each_operation, forward_to};
use tokio::sync::oneshot;

/// Wraps an engine and holds requests.
pub(crate) struct Gate {
    inner: Arc<dyn Engine>,
    doors: Mutex<Vec<Door>>,
    /// Makes every read eventual that does not request its consumed capacity.
    pub(crate) makes_eventual: bool,
    /// Rejects `DescribeTable`.
    pub(crate) is_secretive: bool,
}

/// Where a request is held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Side {
    /// Before it reaches the engine.
    Before,
    /// After the engine has responded.
    After,
}

struct Door {
    operation: &'static str,
    side: Side,
    arrived: oneshot::Sender<()>,
    opened: oneshot::Receiver<()>,
}

/// A request that is held, or will be.
pub(crate) struct Held {
    arrived: oneshot::Receiver<()>,
    opened: oneshot::Sender<()>,
}

impl Held {
    /// Waits until the request is held.
    pub(crate) async fn arrived(&mut self) {
        (&mut self.arrived).await.unwrap();
    }

    /// Releases the request.
    pub(crate) fn open(self) {
        self.opened.send(()).unwrap();
    }
}

impl Gate {
    pub(crate) fn new(inner: Arc<dyn Engine>) -> Self {
        Self {
            inner,
            doors: Mutex::default(),
            makes_eventual: false,
            is_secretive: false,
        }
    }

    /// Holds the next request of this operation.
    pub(crate) fn hold(&self, operation: &'static str, side: Side) -> Held {
        let (arrived, seen) = oneshot::channel();
        let (open, opened) = oneshot::channel();
        self.doors.lock().unwrap().push(Door {
            operation,
            side,
            arrived,
            opened,
        });
        Held {
            arrived: seen,
            opened: open,
        }
    }

    fn door(&self, operation: &str) -> Option<Door> {
        let mut doors = self.doors.lock().unwrap();
        let at = doors.iter().position(|door| door.operation == operation)?;
        Some(doors.remove(at))
    }

    async fn pass<T>(&self, operation: &str, request: BoxFuture<'_, Result<T>>) -> Result<T> {
        let Some(door) = self.door(operation) else {
            return request.await;
        };
        if door.side == Side::Before {
            door.arrived.send(()).unwrap();
            door.opened.await.unwrap();
            return request.await;
        }
        let answer = request.await;
        door.arrived.send(()).unwrap();
        door.opened.await.unwrap();
        answer
    }
}

macro_rules! gated {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(self.pass(stringify!($operation), self.inner.$operation(input)))
        }
    )*};
}

impl Engine for Gate {
    forward_to!(self.inner; basics);

    fn get_item(&self, mut input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        if self.makes_eventual && !input.return_capacity.is_wanted() {
            input.consistent = false;
        }
        Box::pin(self.pass("get_item", self.inner.get_item(input)))
    }

    fn batch_get_item(&self, mut input: BatchGetItem) -> BoxFuture<'_, Result<BatchGetItemOutput>> {
        let asked = input.requests.clone();
        if self.makes_eventual && !input.return_capacity.is_wanted() {
            for request in input.requests.values_mut() {
                request.consistent = false;
            }
        }
        Box::pin(async move {
            let request = self.inner.batch_get_item(input);
            let mut output = self.pass("batch_get_item", request).await?;
            for (table, unprocessed) in &mut output.unprocessed {
                unprocessed.consistent = asked[table].consistent;
            }
            Ok(output)
        })
    }

    fn describe_table(&self, table_name: String) -> BoxFuture<'_, Result<TableDescription>> {
        if self.is_secretive {
            let denied = Error::Unsupported("not allowed".to_owned());
            return Box::pin(async move { Err(denied) });
        }
        self.inner.describe_table(table_name)
    }

    each_operation!(gated; transact_get_items, write_item, batch_write_item, transact_write_items);
    each_operation!(gated; query, scan, create_table, update_table, delete_table, list_tables);
    each_operation!(gated; update_time_to_live, update_tags, streams);
}
