//! An engine that wraps another engine, records requests and their cost, and runs a hook before writes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use floe_store::capacity::{ConsumedCapacity, ReturnConsumedCapacity, Units};
use floe_store::expr::Renderer;
use floe_store::op::*;
use floe_store::{BoxFuture, Engine, Result, forward_to};
use floe_testkit::record::RecordingEngine;

/// Runs before a write. Its argument is the number of earlier writes.
type Hook = Arc<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>;

/// The cost of requests: read units and write units.
pub(crate) type Cost = (Units, Units);

pub(crate) struct Probe {
    inner: RecordingEngine,
    /// Descriptions of reads, in order, which replace the recorded ones.
    reads: Mutex<VecDeque<String>>,
    cost: Mutex<Cost>,
    hook: Mutex<Option<Hook>>,
    writes: Mutex<u64>,
}

impl Probe {
    pub(crate) fn new(inner: Arc<dyn Engine>) -> Self {
        Self {
            inner: RecordingEngine::new(inner),
            reads: Mutex::default(),
            cost: Mutex::default(),
            hook: Mutex::default(),
            writes: Mutex::default(),
        }
    }

    /// Returns the requests since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut reads = self.reads.lock().unwrap();
        let describe = |line: String| {
            if line.starts_with("Query") || line.starts_with("GetItem") {
                reads.pop_front().unwrap()
            } else {
                line
            }
        };
        self.inner.take().into_iter().map(describe).collect()
    }

    /// Returns the cost of the requests since the last call.
    pub(crate) fn take_cost(&self) -> Cost {
        std::mem::take(&mut *self.cost.lock().unwrap())
    }

    /// Runs the hook before each write from now on.
    pub(crate) fn before_writes(
        &self,
        hook: impl Fn(u64) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        *self.writes.lock().unwrap() = 0;
        *self.hook.lock().unwrap() = Some(Arc::new(hook));
    }

    /// Removes the hook.
    pub(crate) fn remove_hook(&self) {
        *self.hook.lock().unwrap() = None;
    }

    async fn run_hook(&self) {
        let hook = self.hook.lock().unwrap().clone();
        let Some(hook) = hook else { return };
        let number = {
            let mut writes = self.writes.lock().unwrap();
            *writes += 1;
            *writes - 1
        };
        hook(number).await;
    }

    fn charge<'c>(&self, consumed: impl IntoIterator<Item = &'c ConsumedCapacity>) {
        let mut cost = self.cost.lock().unwrap();
        for consumed in consumed {
            cost.0 += consumed.read;
            cost.1 += consumed.write;
        }
    }
}

fn query_text(query: &Query) -> String {
    let mut renderer = Renderer::new();
    let text = renderer.key_condition(&query.key_condition);
    let names = renderer.names().iter().rev();
    let text = names.fold(text, |text, (placeholder, name)| {
        text.replace(placeholder, name)
    });
    let values = renderer.values().iter().rev();
    let text = values.fold(text, |text, (placeholder, value)| {
        text.replace(placeholder, &format!("{value:?}"))
    });
    let order = if query.forward { "" } else { " backward" };
    let limit = query
        .limit
        .map_or_else(String::new, |limit| format!(" limit {limit}"));
    let eventual = if query.consistent { "" } else { " eventual" };
    format!("Query {} {text}{order}{limit}{eventual}", query.table_name)
}

impl Engine for Probe {
    forward_to!(self.inner; basics, tables, streams);
    forward_to!(self.inner; batch_get_item, transact_get_items, batch_write_item, scan);

    fn get_item(&self, mut input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        let eventual = if input.consistent { "" } else { " eventual" };
        let text = format!("GetItem {} {:?}{eventual}", input.table_name, input.key);
        self.reads.lock().unwrap().push_back(text);
        input.return_capacity = ReturnConsumedCapacity::Total;
        Box::pin(async move {
            let output = self.inner.get_item(input).await?;
            self.charge(&output.consumed);
            Ok(output)
        })
    }

    fn query(&self, mut input: Query) -> BoxFuture<'_, Result<Page>> {
        self.reads.lock().unwrap().push_back(query_text(&input));
        input.return_capacity = ReturnConsumedCapacity::Total;
        Box::pin(async move {
            let output = self.inner.query(input).await?;
            self.charge(&output.consumed);
            Ok(output)
        })
    }

    fn write_item(&self, mut input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        *input.return_capacity_mut() = ReturnConsumedCapacity::Total;
        Box::pin(async move {
            self.run_hook().await;
            let output = self.inner.write_item(input).await?;
            self.charge(&output.consumed);
            Ok(output)
        })
    }

    fn transact_write_items(
        &self,
        mut input: TransactWriteItems,
    ) -> BoxFuture<'_, Result<TransactWriteItemsOutput>> {
        input.return_capacity = ReturnConsumedCapacity::Total;
        Box::pin(async move {
            self.run_hook().await;
            let output = self.inner.transact_write_items(input).await?;
            self.charge(&output.consumed);
            Ok(output)
        })
    }
}
