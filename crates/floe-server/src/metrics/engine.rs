//! An engine around the engine that notes what each operation has consumed.
//!
//! The engine is always asked for it; a caller that did not ask does not see it.

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

/// Asks what is consumed. Whether the caller wants to know, too.
fn ask(detail: &mut ReturnConsumedCapacity) -> bool {
    let is_asked = *detail != ReturnConsumedCapacity::None;
    if !is_asked {
        *detail = ReturnConsumedCapacity::Total;
    }
    is_asked
}

macro_rules! charge {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, mut input: $type) -> BoxFuture<'_, Result<$output>> {
            let is_asked = ask(&mut input.return_capacity);
            Box::pin(async move {
                let answer = self.inner.$operation(input).await;
                let mut output = answer.inspect_err(|error| self.metrics.cancel(error))?;
                self.metrics.charge($name, &output.consumed);
                if !is_asked {
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
        let is_asked = ask(input.return_capacity_mut());
        Box::pin(async move {
            let mut output = self.inner.write_item(input).await?;
            self.metrics.charge(operation, &output.consumed);
            if !is_asked {
                output.consumed = None;
            }
            Ok(output)
        })
    }

    each_operation!(charge; get_item, batch_get_item, transact_get_items, batch_write_item);
    each_operation!(charge; transact_write_items, query, scan);
}
