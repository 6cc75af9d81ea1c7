//! Planted bugs, each of which a check must find: a check that misses a bug proves nothing.
//!
//! Most are an engine wrapper that misbehaves in one way ([`FlawedEngine`]); the others are implemented by the checks.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use floe_store::error::CancellationCode;
use floe_store::expr::Condition;
use floe_store::op::{
    GetItem, GetItemOutput, GetRecords, GetRecordsOutput, Page, Query, Scan, TransactGetItems,
    TransactGetItemsOutput, TransactWrite, TransactWriteItems, TransactWriteItemsOutput, WriteItem,
    WriteItemOutput,
};
use floe_store::{BoxFuture, CancellationReason, Engine, Error, Item, Result, forward_to};

use super::figures::Verdict;
use crate::Failure;

macro_rules! bugs {
    ($($bug:ident: $name:literal, $describe:literal;)*) => {
        /// A planted bug.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Bug {
            $(#[doc = $describe] $bug,)*
        }

        impl Bug {
            const ALL: &[Self] = &[$(Self::$bug,)*];

            /// The name on the command line.
            pub(super) const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            /// A short description.
            pub(super) const fn describe(self) -> &'static str {
                match self {
                    $(Self::$bug => $describe,)*
                }
            }
        }
    };
}

bugs! {
    EarlyAck: "early-ack", "a write is reported as acknowledged before the engine responds";
    SplitTransaction: "split-transaction", "transactions are executed item by item";
    SkippedIndex: "skipped-index", "an index lacks an entry";
    LogGap: "log-gap", "the change log lacks a record";
    StaleRead: "stale-read", "some reads return an older state of an item";
    AckFailed: "ack-failed", "writes that failed in the storage are acknowledged";
    WrongAnswer: "wrong-answer", "some results are changed";
    Relaxed: "relaxed", "writes are acknowledged before they are synced";
    UndefinedAttribute: "undefined-attribute", "a template lacks the definition of a key attribute";
    DroppedCondition: "dropped-condition", "some writes ignore their conditions";
    FalseConflict: "false-conflict", "some writes are rejected although their conditions hold";
    NoAnswer: "no-answer", "some writes never complete";
    ForgetfulServer: "forgetful-server", "a killed server loses all data";
    WrongChecksum: "wrong-checksum", "responses have wrong checksums";
    NoLimits: "no-limits", "the server has no limits and no deadlines";
    EarlyCheckpoint: "early-checkpoint", "a consumer stores its checkpoint before events are handled";
    EarlyPosition: "early-position", "an indexer stores its position before epochs are written";
    SplitView: "split-view", "a view stores its checkpoint in a separate commit";
    EarlyTombstone: "early-tombstone", "a tombstone is written before the handler runs";
    WideRight: "wide-right", "a function may perform any action on a table";
    ClearsForeign: "clears-foreign", "opening a directory removes the data in it";
    LeakedTables: "leaked-tables", "deleted tables leave their items behind";
    HiddenDamage: "hidden-damage", "detected damage is not reported";
    Leak: "leak", "deleted items stay on the disk";
}

/// Runs a check once. With a planted bug, runs it with successive seeds until the bug shows, at most `runs_max` times,
/// because a kill must hit the right moment.
pub(super) fn until_found(
    planted: Option<Bug>,
    seed: u64,
    runs_max: u64,
    run: impl Fn(u64) -> Result<Verdict, Failure>,
) -> Result<Verdict, Failure> {
    let last = seed + planted.map_or(0, |_| runs_max - 1);
    for seed in seed..last {
        let verdict = run(seed)?;
        if verdict.is_met {
            return Ok(verdict);
        }
    }
    run(last)
}

impl FromStr for Bug {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let bug = Self::ALL.iter().find(|bug| bug.name() == name);
        bug.copied().ok_or("unknown planted bug")
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// An engine with a planted bug. Bugs that are planted elsewhere change nothing.
pub(super) struct FlawedEngine {
    inner: Arc<dyn Engine>,
    bug: Bug,
    calls: AtomicU64,
    seen: Mutex<HashMap<Item, GetItemOutput>>,
}

impl FlawedEngine {
    /// One in this many calls is affected.
    const PERIOD: u64 = 20;

    /// Plants the bug, if any.
    pub(super) fn plant(inner: Arc<dyn Engine>, bug: Option<Bug>) -> Arc<dyn Engine> {
        match bug {
            None => inner,
            Some(bug) => Arc::new(Self {
                inner,
                bug,
                calls: AtomicU64::new(0),
                seen: Mutex::default(),
            }),
        }
    }

    /// Whether this bug is planted and affects this call.
    fn applies(&self, bug: Bug) -> bool {
        self.bug == bug
            && self.calls.fetch_add(1, Ordering::Relaxed) % Self::PERIOD == Self::PERIOD - 1
    }

    /// Stores the result of a read, and returns that of the previous read of the key.
    fn remember(&self, key: Item, output: &GetItemOutput) -> Option<GetItemOutput> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(key, output.clone())
    }

    /// Applies the bugs of conditions and responses of writes.
    async fn apply_write_bugs(
        &self,
        conditions: Vec<&mut Option<Condition>>,
        refusal: Error,
    ) -> Result<()> {
        if self.applies(Bug::DroppedCondition) {
            conditions
                .into_iter()
                .for_each(|condition| *condition = None);
        }
        if self.applies(Bug::NoAnswer) {
            std::future::pending::<()>().await;
        }
        if self.applies(Bug::FalseConflict) {
            Err(refusal)
        } else {
            Ok(())
        }
    }

    fn drop_index_entry(&self, is_index: bool, mut page: Page) -> Page {
        if is_index && self.bug == Bug::SkippedIndex {
            page.count -= usize::from(page.items.pop().is_some());
        }
        page
    }
}

impl Engine for FlawedEngine {
    forward_to!(self.inner; basics, batch_get_item, batch_write_item, tables);
    forward_to!(self.inner; list_streams, describe_stream, get_shard_iterator, hold_changes);

    fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        Box::pin(async move {
            let key = input.key.clone();
            let output = self.inner.get_item(input).await?;
            let before = self.remember(key, &output);
            let stale = before.filter(|_| self.applies(Bug::StaleRead));
            Ok(stale.unwrap_or(output))
        })
    }

    fn transact_get_items(
        &self,
        input: TransactGetItems,
    ) -> BoxFuture<'_, Result<TransactGetItemsOutput>> {
        if self.bug != Bug::SplitTransaction {
            return self.inner.transact_get_items(input);
        }
        Box::pin(async move {
            let mut output = TransactGetItemsOutput::default();
            for get in input.gets {
                let get = GetItem::new(get.table_name, get.key);
                output.items.push(self.inner.get_item(get).await?.item);
            }
            Ok(output)
        })
    }

    fn write_item(&self, input: WriteItem) -> BoxFuture<'_, Result<WriteItemOutput>> {
        Box::pin(async move {
            let mut input = input;
            let condition = match &mut input {
                WriteItem::Put(put) => &mut put.condition,
                WriteItem::Update(update) => &mut update.condition,
                WriteItem::Delete(delete) => &mut delete.condition,
            };
            let refusal = Error::ConditionalCheckFailed { item: None };
            self.apply_write_bugs(vec![condition], refusal).await?;
            match self.inner.write_item(input).await {
                Err(Error::Storage(_) | Error::OutcomeUnknown(_)) if self.bug == Bug::AckFailed => {
                    Ok(WriteItemOutput::default())
                }
                result => result,
            }
        })
    }

    fn transact_write_items(
        &self,
        input: TransactWriteItems,
    ) -> BoxFuture<'_, Result<TransactWriteItemsOutput>> {
        Box::pin(async move {
            let mut input = input;
            let conditions = input.actions.iter_mut().filter_map(condition_mut);
            self.apply_write_bugs(conditions.collect(), canceled())
                .await?;
            if self.bug != Bug::SplitTransaction {
                return self.inner.transact_write_items(input).await;
            }
            for action in input.actions {
                let write = match action {
                    TransactWrite::Put(put) => WriteItem::Put(put),
                    TransactWrite::Update(update) => WriteItem::Update(update),
                    TransactWrite::Delete(delete) => WriteItem::Delete(delete),
                    TransactWrite::Check(_) => continue,
                };
                let written = self.inner.write_item(write).await;
                written.map_err(|error| match error {
                    Error::ConditionalCheckFailed { .. } => canceled(),
                    other => other,
                })?;
            }
            Ok(TransactWriteItemsOutput::default())
        })
    }

    fn query(&self, input: Query) -> BoxFuture<'_, Result<Page>> {
        Box::pin(async move {
            let is_index = input.index_name.is_some();
            let page = self.inner.query(input).await?;
            Ok(self.drop_index_entry(is_index, page))
        })
    }

    fn scan(&self, input: Scan) -> BoxFuture<'_, Result<Page>> {
        Box::pin(async move {
            let is_index = input.index_name.is_some();
            let page = self.inner.scan(input).await?;
            Ok(self.drop_index_entry(is_index, page))
        })
    }

    fn get_records(&self, input: GetRecords) -> BoxFuture<'_, Result<GetRecordsOutput>> {
        Box::pin(async move {
            let mut output = self.inner.get_records(input).await?;
            // Not the last one, whose absence would not be noticed until another record follows.
            if self.bug == Bug::LogGap && output.records.len() > 2 {
                output.records.remove(1);
            }
            Ok(output)
        })
    }
}

/// The condition of a write. A condition check has no optional condition.
const fn condition_mut(action: &mut TransactWrite) -> Option<&mut Option<Condition>> {
    match action {
        TransactWrite::Put(put) => Some(&mut put.condition),
        TransactWrite::Update(update) => Some(&mut update.condition),
        TransactWrite::Delete(delete) => Some(&mut delete.condition),
        TransactWrite::Check(_) => None,
    }
}

fn canceled() -> Error {
    let code = CancellationCode::ConditionalCheckFailed;
    Error::TransactionCanceled {
        reasons: vec![CancellationReason::new(
            code,
            "The conditional request failed",
        )],
    }
}
