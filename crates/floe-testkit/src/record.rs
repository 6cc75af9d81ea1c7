//! An engine that wraps another one and records its requests, for tests of the requests that a call makes.
//!
//! ```
//! # async fn example(engine: std::sync::Arc<dyn floe_store::Engine>) {
//! use floe_store::{Engine, Item, op::GetItem};
//! use floe_testkit::record::RecordingEngine;
//!
//! let recording = RecordingEngine::new(engine);
//! let get = GetItem::new("Orders", Item::new().with("id", "o-1"));
//! recording.get_item(get).await.unwrap();
//! assert_eq!(recording.take(), [r#"GetItem Orders {"id": "o-1"}"#]);
//! # }
//! ```

use std::sync::{Arc, Mutex};

use floe_store::expr::{Condition, Renderer};
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, GetItem, GetItemOutput, TransactGetItems,
    TransactGetItemsOutput, TransactWrite, TransactWriteItems, TransactWriteItemsOutput, WriteItem,
    WriteItemOutput,
};
use floe_store::{BoxFuture, Capabilities, Engine, Item, Result, each_operation, forward_to};

use crate::lock::lock;

/// An engine that records its requests, one line each, with expressions as text.
pub struct RecordingEngine {
    inner: Arc<dyn Engine>,
    capabilities: Capabilities,
    requests: Mutex<Vec<String>>,
}

impl std::fmt::Debug for RecordingEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingEngine").finish_non_exhaustive()
    }
}

impl RecordingEngine {
    /// Wraps an engine.
    pub fn new(inner: Arc<dyn Engine>) -> Self {
        Self {
            capabilities: inner.capabilities(),
            inner,
            requests: Mutex::default(),
        }
    }

    /// Reports these capabilities instead of the engine's, to test how callers do without the others.
    #[must_use]
    pub fn claiming(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Returns the requests since the last call, in order, and clears them.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.requests))
    }

    fn record(&self, request: String) {
        lock(&self.requests).push(request);
    }
}

/// The text of an expression with its names and values instead of placeholders.
fn without_placeholders(text: String, renderer: &Renderer) -> String {
    // The longer placeholders first: `:v1` is the beginning of `:v10`.
    let names = renderer.names().iter().rev();
    let text = names.fold(text, |text, (placeholder, name)| {
        text.replace(placeholder, name)
    });
    let values = renderer.values().iter().rev();
    values.fold(text, |text, (placeholder, value)| {
        text.replace(placeholder, &format!("{value:?}"))
    })
}

fn condition_text(condition: Option<&Condition>) -> String {
    condition.map_or_else(String::new, |condition| {
        let mut renderer = Renderer::new();
        let text = renderer.condition(condition);
        format!(" IF {}", without_placeholders(text, &renderer))
    })
}

fn write_text(write: &WriteItem) -> String {
    match write {
        WriteItem::Put(put) => {
            let condition = condition_text(put.condition.as_ref());
            format!("PutItem {} {:?}{condition}", put.table_name, put.item)
        }
        WriteItem::Update(update) => {
            let mut renderer = Renderer::new();
            let text = renderer.update(&update.update);
            let text = without_placeholders(text, &renderer);
            let condition = condition_text(update.condition.as_ref());
            let (table, key) = (&update.table_name, &update.key);
            format!("UpdateItem {table} {key:?} {text}{condition}")
        }
        WriteItem::Delete(delete) => {
            let condition = condition_text(delete.condition.as_ref());
            format!(
                "DeleteItem {} {:?}{condition}",
                delete.table_name, delete.key
            )
        }
    }
}

fn action_text(action: &TransactWrite) -> String {
    match action {
        TransactWrite::Check(check) => {
            let condition = condition_text(Some(&check.condition));
            format!(
                "ConditionCheck {} {:?}{condition}",
                check.table_name, check.key
            )
        }
        TransactWrite::Put(put) => write_text(&WriteItem::Put(put.clone())),
        TransactWrite::Update(update) => write_text(&WriteItem::Update(update.clone())),
        TransactWrite::Delete(delete) => write_text(&WriteItem::Delete(delete.clone())),
    }
}

fn keys_text<'a>(keys: impl Iterator<Item = (&'a str, &'a Item)>) -> String {
    let keys = keys.map(|(table, key)| format!("{table} {key:?}"));
    keys.collect::<Vec<_>>().join(", ")
}

macro_rules! recorded {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            self.record($name.to_owned());
            self.inner.$operation(input)
        }
    )*};
}

impl Engine for RecordingEngine {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    forward_to!(self.inner; now, table_arn, health);

    fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        self.record(format!("GetItem {} {:?}", input.table_name, input.key));
        self.inner.get_item(input)
    }

    fn batch_get_item(&self, input: BatchGetItem) -> BoxFuture<'_, Result<BatchGetItemOutput>> {
        let keys = input.requests.iter().flat_map(|(table, request)| {
            let keys = request.keys.iter();
            keys.map(move |key| (table.as_str(), key))
        });
        self.record(format!("BatchGetItem {}", keys_text(keys)));
        self.inner.batch_get_item(input)
    }

    fn transact_get_items(
        &self,
        input: TransactGetItems,
    ) -> BoxFuture<'_, Result<TransactGetItemsOutput>> {
        let gets = input.gets.iter();
        let keys = gets.map(|get| (get.table_name.as_str(), &get.key));
        self.record(format!("TransactGetItems {}", keys_text(keys)));
        self.inner.transact_get_items(input)
    }

    fn write_item(&self, input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        self.record(write_text(&input));
        self.inner.write_item(input)
    }

    fn transact_write_items(
        &self,
        input: TransactWriteItems,
    ) -> BoxFuture<'_, Result<TransactWriteItemsOutput>> {
        let actions: Vec<_> = input.actions.iter().map(action_text).collect();
        self.record(format!("TransactWriteItems [{}]", actions.join("; ")));
        self.inner.transact_write_items(input)
    }

    each_operation!(recorded; batch_write_item, query, scan, tables, streams);
}
