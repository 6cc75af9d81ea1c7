//! An engine that wraps another one and records commit stamps: which commits were sent, and which were applied, even if
//! their responses were lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use floe::model::schema::STAMP_ATTRIBUTE;
use floe_store::expr::{SetOperand, SetValue};
use floe_store::op::{
    TransactWrite, TransactWriteItems, TransactWriteItemsOutput, UpdateItem, WriteItem,
    WriteItemOutput,
};
use floe_store::{BoxFuture, Capabilities, Engine, Result, Value, forward_to};

/// Commit stamps, and how often each was recorded.
pub(crate) type Stamps = HashMap<String, u32>;

/// Which commits are recorded.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Notes {
    /// All commits that are sent.
    Sent,
    /// Commits that the inner engine applied.
    Applied,
}

/// An engine that records commit stamps.
pub(crate) struct Ledger {
    inner: Arc<dyn Engine>,
    capabilities: Capabilities,
    notes: Notes,
    stamps: Mutex<Stamps>,
}

impl Ledger {
    pub(crate) fn new(inner: Arc<dyn Engine>, notes: Notes) -> Self {
        Self {
            capabilities: inner.capabilities(),
            inner,
            notes,
            stamps: Mutex::default(),
        }
    }

    /// Reports these capabilities instead of those of the inner engine.
    pub(crate) fn claiming(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Returns the stamps recorded since the last call.
    pub(crate) fn take(&self) -> Stamps {
        std::mem::take(&mut *self.stamps.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn noting<T>(&self, stamp: String, answer: BoxFuture<'_, Result<T>>) -> Result<T> {
        if self.notes == Notes::Sent {
            self.note(stamp);
            return answer.await;
        }
        let answer = answer.await;
        if answer.is_ok() {
            self.note(stamp);
        }
        answer
    }

    fn note(&self, stamp: String) {
        let mut stamps = self.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        *stamps.entry(stamp).or_default() += 1;
    }
}

/// Returns the stamp that an update writes.
fn stamp(update: &UpdateItem) -> String {
    let mut sets = update.update.set.iter();
    let set = sets.find(|(path, _)| path.root().as_str() == STAMP_ATTRIBUTE);
    match set {
        Some((_, SetValue::Operand(SetOperand::Value(Value::S(stamp))))) => stamp.to_string(),
        _ => panic!("an update without a stamp: {update:?}"),
    }
}

impl Engine for Ledger {
    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    forward_to!(self.inner; now, table_arn, tables, streams);
    forward_to!(self.inner; get_item, batch_get_item, transact_get_items, batch_write_item, query, scan);

    fn write_item(&self, input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        let WriteItem::Update(update) = &input else {
            return self.inner.write_item(input);
        };
        let stamp = stamp(update);
        Box::pin(self.noting(stamp, self.inner.write_item(input)))
    }

    fn transact_write_items(
        &self,
        input: TransactWriteItems,
    ) -> BoxFuture<'_, Result<TransactWriteItemsOutput>> {
        let updates = input.actions.iter().map(|action| match action {
            TransactWrite::Update(update) => stamp(update),
            other => panic!("only updates are expected: {other:?}"),
        });
        let mut stamps: Vec<String> = updates.collect();
        stamps.dedup();
        assert_eq!(stamps.len(), 1, "a commit has one stamp: {stamps:?}");
        let stamp = stamps.remove(0);
        Box::pin(self.noting(stamp, self.inner.transact_write_items(input)))
    }
}
