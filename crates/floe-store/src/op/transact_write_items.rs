//! TransactWriteItems: checks and writes many items, all or nothing.

use std::collections::{BTreeMap, HashSet};

use super::constraint::{Faults, length_at_least, length_at_most};
use super::values::check_values;
use super::write::{check_token, evaluate_condition, from_variants, key_of, match_variants};
use super::{
    DeleteItem, ItemCollectionMetrics, PutItem, UpdateItem, WriteItem, keys, missing_table,
    references,
};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::declare::{operation, setters};
use crate::error::{CancellationCode, CancellationReason, Error, Result, ensure};
use crate::expr::Condition;
use crate::item::Item;
use crate::limits::{TRANSACT_BYTES_MAX, TRANSACT_ITEMS_MAX};
use crate::size::item_size;
use crate::table::TableDef;

/// Checks and writes up to 100 items, all or nothing.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactWriteItems {
    /// The actions, each on a different item.
    pub actions: Vec<TransactWrite>,
    /// The idempotency token: requests with the same token within ten minutes are applied once.
    pub token: Option<String>,
    /// How much detail about the cost to return.
    pub return_capacity: ReturnConsumedCapacity,
    /// Whether to return the sizes of item collections.
    pub return_collection: bool,
}

impl TransactWriteItems {
    /// A transaction of these actions.
    pub fn new(actions: impl IntoIterator<Item = TransactWrite>) -> Self {
        Self {
            actions: actions.into_iter().collect(),
            ..Self::default()
        }
    }

    setters! {
        /// Sets the idempotency token.
        token(token: impl Into<String>) => token = Some(token.into());
    }

    /// Checks the request alone, without the tables.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        check_count(self.actions.len())?;
        check_token(self.token.as_deref())?;
        let mut faults = Faults::new();
        for (at, action) in self.actions.iter().enumerate() {
            let path = format_args!("transactItems.{}.member.{}", at + 1, action.member());
            faults.table_name_at(action.table_name(), format_args!("{path}.tableName"));
            // A single update may be empty and only create the item; in a transaction an expression is required.
            if matches!(action, TransactWrite::Update(update) if update.update.is_empty()) {
                faults.add_null(format_args!("{path}.updateExpression"));
            }
        }
        faults.into_result()?;
        self.actions.iter().try_for_each(TransactWrite::validate)
    }

    /// Checks a valid request against its tables: first what rejects the transaction as a whole, then the faults of
    /// single actions, which are reasons for cancellation. DynamoDB stops at the first action with a fault.
    ///
    /// # Errors
    ///
    /// [`ResourceNotFound`](Error::ResourceNotFound) if a table does not exist, [`Validation`](Error::Validation) if an
    /// item occurs twice, a key is empty, or the request is too large,
    /// [`TransactionCanceled`](Error::TransactionCanceled) if an action does not match its table.
    pub fn check<'t>(&self, tables: impl Fn(&str) -> Option<&'t TableDef>) -> Result<()> {
        let mut seen = HashSet::with_capacity(self.actions.len());
        let mut bytes = 0;
        for action in &self.actions {
            let table = tables(action.table_name()).ok_or_else(missing_table)?;
            let key = keys::KeyRef::new(table, action.key_item());
            ensure(key.is_none_or(|key| seen.insert(key)), repeated_item)?;
            bytes += action.payload_bytes();
        }
        check_bytes(bytes)?;
        for action in &self.actions {
            if let Some(table) = tables(action.table_name()) {
                action.check_filled(table)?;
            }
        }
        for (at, action) in self.actions.iter().enumerate() {
            let checked = tables(action.table_name()).map_or(Ok(()), |table| action.check(table));
            checked.map_err(|reason| canceled(self.actions.len(), at, reason))?;
        }
        Ok(())
    }
}

/// Checks the number of actions of a transaction.
pub(super) fn check_count(count: usize) -> Result<()> {
    Faults::check(|faults| {
        if count == 0 {
            faults.add("[]", "transactItems", length_at_least(1));
        } else if count > TRANSACT_ITEMS_MAX {
            faults.add_hidden("transactItems", length_at_most(TRANSACT_ITEMS_MAX));
        }
    })
}

pub(super) fn repeated_item() -> Error {
    Error::validation("Transaction request cannot include multiple operations on one item")
}

/// Checks the size of a transaction. DynamoDB's message also repeats itself.
pub(super) fn check_bytes(bytes: usize) -> Result<()> {
    const TOO_LARGE: &str = "Transaction payload size cannot exceed 4MB. Payload Size: ";
    ensure(bytes <= TRANSACT_BYTES_MAX, || {
        Error::validation(format!("{TOO_LARGE}: {TOO_LARGE}{bytes}"))
    })
}

/// Cancels a transaction of `count` actions because of the action at index `at`.
pub(super) fn canceled(count: usize, at: usize, reason: CancellationReason) -> Error {
    let mut reasons = vec![CancellationReason::none(); count];
    if let Some(faulty) = reasons.get_mut(at) {
        *faulty = reason;
    }
    Error::TransactionCanceled { reasons }
}

/// One action of a transaction.
///
/// Only the table, the key or item, the update, the condition and `return_old_on_failure` of a write apply in a
/// transaction; other return values are ignored.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactWrite {
    /// Puts the whole item.
    Put(PutItem),
    /// Changes parts of an item, creating it if it does not exist.
    Update(UpdateItem),
    /// Deletes an item.
    Delete(DeleteItem),
    /// Checks a condition without writing.
    Check(ConditionCheck),
}

impl From<WriteItem> for TransactWrite {
    fn from(write: WriteItem) -> Self {
        match write {
            WriteItem::Put(put) => put.into(),
            WriteItem::Update(update) => update.into(),
            WriteItem::Delete(delete) => delete.into(),
        }
    }
}

impl TransactWrite {
    /// Returns the table of the item.
    pub fn table_name(&self) -> &str {
        match_variants!(self, [Put Update Delete Check], action => &action.table_name)
    }

    /// Returns the item that contains the key: the whole item of a put, the key of other actions.
    pub const fn key_item(&self) -> &Item {
        match self {
            Self::Put(put) => &put.item,
            Self::Update(update) => &update.key,
            Self::Delete(delete) => &delete.key,
            Self::Check(check) => &check.key,
        }
    }

    /// Returns the key of the item.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) if the action has no key for this table, which [`check`](TransactWrite::check)
    /// reports as well.
    pub fn key(&self, table: &TableDef) -> Result<Item> {
        key_of(table, self.key_item())
    }

    /// The member of DynamoDB's request for such an action.
    const fn member(&self) -> &'static str {
        match self {
            Self::Put(_) => "put",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
            Self::Check(_) => "conditionCheck",
        }
    }

    /// Checks the action alone, like [`TransactWriteItems::validate`].
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::Put(put) => put.validate_action(),
            Self::Update(update) => update.validate_action(),
            Self::Delete(delete) => delete.validate_action(),
            Self::Check(check) => {
                check_values(&check.key)?;
                check.condition.check()
            }
        }
    }

    /// Checks a valid action against its table, like [`TransactWriteItems::check`].
    ///
    /// # Errors
    ///
    /// The reason for cancelling the transaction.
    pub fn check(&self, table: &TableDef) -> Result<(), CancellationReason> {
        let result = match self {
            Self::Put(put) => put.check(table),
            Self::Update(update) => update.check_action(table),
            Self::Delete(delete) => delete.check(table),
            Self::Check(check) => keys::check_key(&table.key, &check.key)
                .and_then(|()| references::check_condition(table, Some(&check.condition))),
        };
        result.map_err(reason)
    }

    fn check_filled(&self, table: &TableDef) -> Result<()> {
        keys::check_key_filled(&table.key, self.key_item())?;
        match self {
            Self::Put(put) => {
                keys::check_index_keys(table, &put.item, keys::RejectedFaults::EmptyOnly)
            }
            Self::Update(update) => update.check_index_keys(table, keys::RejectedFaults::EmptyOnly),
            Self::Delete(_) | Self::Check(_) => Ok(()),
        }
    }

    /// Returns the action's share of the transaction's size: the content of the request, not the stored item.
    fn payload_bytes(&self) -> usize {
        let update = match self {
            Self::Update(update) => update.payload_bytes(),
            _ => 0,
        };
        item_size(self.key_item()) + update
    }

    /// Applies the action to the current item and returns the item after it, which a check leaves unchanged. The action
    /// must have passed [`check`](TransactWriteItems::check). A put moves its item out, so it can be applied only once.
    ///
    /// # Errors
    ///
    /// The reason for cancelling the transaction.
    pub fn apply(
        &mut self,
        table: &TableDef,
        old: Option<&Item>,
    ) -> Result<Option<Item>, CancellationReason> {
        let new = match self {
            Self::Put(put) => put.apply(table, old).map(|applied| applied.new),
            Self::Update(update) => update.apply(table, old).map(|applied| applied.new),
            Self::Delete(delete) => delete.apply(table, old).map(|applied| applied.new),
            Self::Check(check) => {
                evaluate_condition(Some(&check.condition), old, check.return_old_on_failure)
                    .map(|()| old.cloned())
            }
        };
        new.map_err(reason)
    }
}

/// Converts an error of one action into a reason for cancellation.
pub(super) fn reason(error: Error) -> CancellationReason {
    let message = error.to_string();
    match error {
        Error::ConditionalCheckFailed { item } => CancellationReason {
            item: item.map(|item| *item),
            ..CancellationReason::new(CancellationCode::ConditionalCheckFailed, message)
        },
        _ => CancellationReason::new(CancellationCode::ValidationError, message),
    }
}

from_variants!(
    TransactWrite: Put(PutItem), Update(UpdateItem), Delete(DeleteItem), Check(ConditionCheck)
);

operation! {
    /// A condition on an item that the transaction does not write.
    pub struct ConditionCheck {
        /// The key: exactly the key attributes of the table.
        pub key: Item,
        /// The condition on the current item; a missing item counts as empty.
        pub condition: Condition,
        ;
        /// Whether a failed condition returns the current item.
        pub return_old_on_failure: bool = false,
    }

    /// Requires this condition of the item with this key.
    pub fn new;
}

/// The response of [`TransactWriteItems`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactWriteItemsOutput {
    /// The cost per table, if requested.
    pub consumed: Vec<ConsumedCapacity>,
    /// The sizes of the item collections by table, if requested.
    pub collections: BTreeMap<String, Vec<ItemCollectionMetrics>>,
}
