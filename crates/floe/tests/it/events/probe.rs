//! An engine around an engine that tells what it was asked and what that cost, and lets others write in between.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use floe_store::capacity::{ConsumedCapacity, ReturnConsumedCapacity, Units};
use floe_store::expr::Renderer;
use floe_store::op::*;
use floe_store::{BoxFuture, Engine, Result, forward_to};
use floe_testkit::record::RecordingEngine;

/// What happens before a write: it is told how many writes were before.
type Hook = Arc<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>;

/// What requests cost: units of reading and of writing.
pub(crate) type Cost = (Units, Units);

pub(crate) struct Probe {
    inner: RecordingEngine,
    /// What is to be told of reads, in their order, besides what is recorded.
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

    /// All requests since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut reads = self.reads.lock().unwrap();
        let told = |line: String| match line.starts_with("Query") || line.starts_with("GetItem") {
            true => reads.pop_front().unwrap(),
            false => line,
        };
        self.inner.take().into_iter().map(told).collect()
    }

    /// What all requests since the last time have cost.
    pub(crate) fn take_cost(&self) -> Cost {
        std::mem::take(&mut *self.cost.lock().unwrap())
    }

    /// Does this before each write from now on.
    pub(crate) fn before_writes(
        &self,
        hook: impl Fn(u64) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        *self.writes.lock().unwrap() = 0;
        *self.hook.lock().unwrap() = Some(Arc::new(hook));
    }

    /// Lets writes pass again.
    pub(crate) fn undisturbed(&self) {
        *self.hook.lock().unwrap() = None;
    }

    async fn disturb(&self) {
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
            self.disturb().await;
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
            self.disturb().await;
            let output = self.inner.transact_write_items(input).await?;
            self.charge(&output.consumed);
            Ok(output)
        })
    }
}
