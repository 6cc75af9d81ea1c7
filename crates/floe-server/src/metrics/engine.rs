//! An engine that wraps another one and records the capacity consumed by each operation.
//!
//! It always requests the consumed capacity, and removes it from the output if the caller did not request it.

use std::sync::Arc;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::op::{WriteItem, WriteItemOutput};
use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};

use super::Metrics;

pub(crate) struct MeasuredEngine {
    inner: Arc<dyn Engine>,
    metrics: Arc<Metrics>,
}

impl MeasuredEngine {
    pub(crate) fn new(inner: Arc<dyn Engine>, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

/// Requests the consumed capacity. Returns whether the caller requested it too.
fn request_capacity(detail: &mut ReturnConsumedCapacity) -> bool {
    let is_requested = *detail != ReturnConsumedCapacity::None;
    if !is_requested {
        *detail = ReturnConsumedCapacity::Total;
    }
    is_requested
}

macro_rules! charge {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, mut input: $type) -> BoxFuture<'_, Result<$output>> {
            let is_requested = request_capacity(&mut input.return_capacity);
            Box::pin(async move {
                let response = self.inner.$operation(input).await;
                let mut output = response.inspect_err(|error| self.metrics.record_cancellation(error))?;
                self.metrics.record_capacity($name, &output.consumed);
                if !is_requested {
                    output.consumed = Default::default();
                }
                Ok(output)
            })
        }
    )*};
}

impl Engine for MeasuredEngine {
    forward_to!(self.inner; basics, tables, streams);

    fn write_item(&self, mut input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        let operation = input.operation();
        let is_requested = request_capacity(input.return_capacity_mut());
        Box::pin(async move {
            let mut output = self.inner.write_item(input).await?;
            self.metrics.record_capacity(operation, &output.consumed);
            if !is_requested {
                output.consumed = None;
            }
            Ok(output)
        })
    }

    each_operation!(charge; get_item, batch_get_item, transact_get_items, batch_write_item);
    each_operation!(charge; transact_write_items, query, scan);
}
