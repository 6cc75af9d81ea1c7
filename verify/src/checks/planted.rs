//! Bugs to plant, each of which a check must find: what a check cannot find, it does not prove.
//!
//! Most are an engine around the engine that misbehaves in one way ([`Flawed`]); the others are
//! choices that a check makes itself when told.

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

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A client reports a write as acknowledged before the engine has answered.
    EarlyAck,
    /// Transactions are carried out one item after the other.
    SplitTransaction,
    /// An index lacks an entry.
    SkippedIndex,
    /// The change log lacks a record.
    LogGap,
    /// Some reads show an item as it was before.
    StaleRead,
    /// Writes that the storage failed are acknowledged.
    AckFailed,
    /// An answer is wrong.
    WrongAnswer,
    /// Writes are acknowledged before they are synced.
    Relaxed,
    /// A template names an attribute in a key that it does not define.
    UndefinedAttribute,
    /// Some writes are applied without looking at their conditions.
    DroppedCondition,
    /// Some writes are refused though their conditions hold.
    FalseConflict,
    /// Some writes are never answered.
    NoAnswer,
    /// A server keeps nothing of what it acknowledged when it is killed.
    ForgetfulServer,
    /// The checksum of an answer is wrong.
    WrongChecksum,
    /// The server has no limits and no deadlines.
    NoLimits,
    /// A consumer stores its checkpoint before the events are handled.
    EarlyCheckpoint,
    /// An indexer stores how far it has read before the epochs are written.
    EarlyPosition,
    /// A view stores its checkpoint apart from what it writes.
    SplitView,
    /// A tombstone is written before the handler has acted.
    EarlyTombstone,
    /// A function may do anything with a table.
    WideRight,
    /// Opening a directory removes what is in it under the name of a store's data.
    ClearsForeign,
    /// Deleted tables leave their items on the disk.
    LeakedTables,
    /// Damage that is found is not reported.
    HiddenDamage,
    /// What is deleted stays on the disk.
    Leak,
}

impl Bug {
    const ALL: [Self; 24] = [
        Self::EarlyAck,
        Self::SplitTransaction,
        Self::SkippedIndex,
        Self::LogGap,
        Self::StaleRead,
        Self::AckFailed,
        Self::WrongAnswer,
        Self::Relaxed,
        Self::UndefinedAttribute,
        Self::DroppedCondition,
        Self::FalseConflict,
        Self::NoAnswer,
        Self::ForgetfulServer,
        Self::WrongChecksum,
        Self::NoLimits,
        Self::EarlyCheckpoint,
        Self::EarlyPosition,
        Self::SplitView,
        Self::EarlyTombstone,
        Self::WideRight,
        Self::ClearsForeign,
        Self::LeakedTables,
        Self::HiddenDamage,
        Self::Leak,
    ];

    /// The name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::EarlyAck => "early-ack",
            Self::SplitTransaction => "split-transaction",
            Self::SkippedIndex => "skipped-index",
            Self::LogGap => "log-gap",
            Self::StaleRead => "stale-read",
            Self::AckFailed => "ack-failed",
            Self::WrongAnswer => "wrong-answer",
            Self::Relaxed => "relaxed",
            Self::UndefinedAttribute => "undefined-attribute",
            Self::DroppedCondition => "dropped-condition",
            Self::FalseConflict => "false-conflict",
            Self::NoAnswer => "no-answer",
            Self::ForgetfulServer => "forgetful-server",
            Self::WrongChecksum => "wrong-checksum",
            Self::NoLimits => "no-limits",
            Self::EarlyCheckpoint => "early-checkpoint",
            Self::EarlyPosition => "early-position",
            Self::SplitView => "split-view",
            Self::EarlyTombstone => "early-tombstone",
            Self::WideRight => "wide-right",
            Self::ClearsForeign => "clears-foreign",
            Self::LeakedTables => "leaked-tables",
            Self::HiddenDamage => "hidden-damage",
            Self::Leak => "leak",
        }
    }

    /// What is wrong, in a few words.
    pub(super) const fn describe(self) -> &'static str {
        match self {
            Self::EarlyAck => "a write is reported before the engine has answered",
            Self::SplitTransaction => "transactions are carried out item by item",
            Self::SkippedIndex => "an index lacks an entry",
            Self::LogGap => "the change log lacks a record",
            Self::StaleRead => "some reads show an item as it was before",
            Self::AckFailed => "writes that the storage failed are acknowledged",
            Self::WrongAnswer => "some answers are changed",
            Self::Relaxed => "writes are acknowledged before they are synced",
            Self::UndefinedAttribute => "a template does not define an attribute of a key",
            Self::DroppedCondition => "some writes are applied whatever their conditions say",
            Self::FalseConflict => "some writes are refused though their conditions hold",
            Self::NoAnswer => "some writes are never answered",
            Self::ForgetfulServer => "a server that is killed keeps nothing",
            Self::WrongChecksum => "the checksums of answers are wrong",
            Self::NoLimits => "the server has no limits and no deadlines",
            Self::EarlyCheckpoint => "a consumer stores its checkpoint before events are handled",
            Self::EarlyPosition => "an indexer stores its position before epochs are written",
            Self::SplitView => "a view stores its checkpoint apart from what it writes",
            Self::EarlyTombstone => "a tombstone is written before the handler has acted",
            Self::WideRight => "a function may do anything with a table",
            Self::ClearsForeign => "opening a directory removes the data in it",
            Self::LeakedTables => "deleted tables leave their items behind",
            Self::HiddenDamage => "damage that is found is not reported",
            Self::Leak => "what is deleted stays on the disk",
        }
    }
}

impl FromStr for Bug {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let bug = Self::ALL.into_iter().find(|bug| bug.name() == name);
        bug.ok_or("no such planted bug")
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// An engine with a bug. Bugs that are no matter of the engine change nothing.
pub(super) struct Flawed {
    inner: Arc<dyn Engine>,
    bug: Bug,
    calls: AtomicU64,
    seen: Mutex<HashMap<Item, GetItemOutput>>,
}

impl Flawed {
    /// Every so many calls of the kind that the bug is in go wrong.
    const PERIOD: u64 = 20;

    /// Plants the bug, if there is one.
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

    /// Whether this call goes wrong, with this bug.
    fn strikes(&self, bug: Bug) -> bool {
        self.bug == bug
            && self.calls.fetch_add(1, Ordering::Relaxed) % Self::PERIOD == Self::PERIOD - 1
    }

    /// What was read of the key before, which is replaced by what is read now.
    fn remember(&self, key: Item, output: &GetItemOutput) -> Option<GetItemOutput> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(key, output.clone())
    }

    /// Lets the bugs strike that are about conditions and answers of writes.
    async fn hinder(&self, conditions: Vec<&mut Option<Condition>>, refusal: Error) -> Result<()> {
        if self.strikes(Bug::DroppedCondition) {
            conditions
                .into_iter()
                .for_each(|condition| *condition = None);
        }
        if self.strikes(Bug::NoAnswer) {
            std::future::pending::<()>().await;
        }
        match self.strikes(Bug::FalseConflict) {
            true => Err(refusal),
            false => Ok(()),
        }
    }

    fn tamper(&self, is_index: bool, mut page: Page) -> Page {
        if is_index && self.bug == Bug::SkippedIndex {
            page.count -= usize::from(page.items.pop().is_some());
        }
        page
    }
}

impl Engine for Flawed {
    forward_to!(self.inner; basics, batch_get_item, batch_write_item, tables);
    forward_to!(self.inner; list_streams, describe_stream, get_shard_iterator, hold_changes);

    fn get_item(&self, input: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
        Box::pin(async move {
            let key = input.key.clone();
            let output = self.inner.get_item(input).await?;
            let before = self.remember(key, &output);
            let stale = before.filter(|_| self.strikes(Bug::StaleRead));
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
            self.hinder(vec![condition], refusal).await?;
            match self.inner.write_item(input).await {
                Err(Error::Storage(_) | Error::OutcomeUnknown(_)) if self.bug == Bug::AckFailed => {
                    Ok(WriteItemOutput::default())
                }
                answer => answer,
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
            self.hinder(conditions.collect(), canceled()).await?;
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
            Ok(self.tamper(is_index, page))
        })
    }

    fn scan(&self, input: Scan) -> BoxFuture<'_, Result<Page>> {
        Box::pin(async move {
            let is_index = input.index_name.is_some();
            let page = self.inner.scan(input).await?;
            Ok(self.tamper(is_index, page))
        })
    }

    fn get_records(&self, input: GetRecords) -> BoxFuture<'_, Result<GetRecordsOutput>> {
        Box::pin(async move {
            let mut output = self.inner.get_records(input).await?;
            // Not the last, whose lack nothing would tell as long as nothing follows.
            if self.bug == Bug::LogGap && output.records.len() > 2 {
                output.records.remove(1);
            }
            Ok(output)
        })
    }
}

/// The condition of a write; a check is nothing but its condition.
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
