//! TransactWriteItems: checks and writes many items, all or nothing.

use std::collections::{BTreeMap, HashSet};

use super::constraint::{Faults, length_at_least, length_at_most};
use super::values::check_values;
use super::write::{check_old, check_token, from_variants, key_of, of_each};
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
    /// The actions, each on an item of its own.
    pub actions: Vec<TransactWrite>,
    /// Makes the transaction apply once however often it is sent within ten minutes.
    pub token: Option<String>,
    /// How much to tell about the cost.
    pub return_capacity: ReturnConsumedCapacity,
    /// Whether to tell the sizes of item collections.
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
        /// Applies once however often it is sent with this token.
        token(token: impl Into<String>) => token = Some(token.into());
    }

    /// Checks the request alone, before the tables are looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        check_count(self.actions.len())?;
        check_token(self.token.as_deref())?;
        let mut faults = Faults::new();
        for (at, action) in self.actions.iter().enumerate() {
            let path = format_args!("transactItems.{}.member.{}", at + 1, action.member());
            faults.table_name_at(action.table_name(), format_args!("{path}.tableName"));
            // A single update may do nothing but make the item; in a transaction it must say something.
            if matches!(action, TransactWrite::Update(update) if update.update.is_empty()) {
                faults.add_null(format_args!("{path}.updateExpression"));
            }
        }
        faults.into_result()?;
        self.actions.iter().try_for_each(TransactWrite::validate)
    }

    /// Checks a valid request against its tables: what refuses the transaction as a whole, then what is wrong
    /// with one action for its table, which is a reason to cancel. DynamoDB stops at the first such action.
    ///
    /// # Errors
    ///
    /// [`ResourceNotFound`](Error::ResourceNotFound) when a table is not there,
    /// [`Validation`](Error::Validation) when an item is named twice, a key is empty, or the request is too
    /// large, [`TransactionCanceled`](Error::TransactionCanceled) when an action is wrong for its table.
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

/// Checks how many actions a transaction has.
pub(super) fn check_count(count: usize) -> Result<()> {
    Faults::check(|faults| {
        if count == 0 {
            faults.add("[]", "transactItems", length_at_least(1));
        } else if count > TRANSACT_ITEMS_MAX {
            faults.add_unseen("transactItems", length_at_most(TRANSACT_ITEMS_MAX));
        }
    })
}

pub(super) fn repeated_item() -> Error {
    Error::validation("Transaction request cannot include multiple operations on one item")
}

/// Checks the size of a transaction. The message says everything twice in DynamoDB, too.
pub(super) fn check_bytes(bytes: usize) -> Result<()> {
    const TOO_LARGE: &str = "Transaction payload size cannot exceed 4MB. Payload Size: ";
    ensure(bytes <= TRANSACT_BYTES_MAX, || {
        Error::validation(format!("{TOO_LARGE}: {TOO_LARGE}{bytes}"))
    })
}

/// Cancels a transaction of so many actions for what is wrong with one of them.
pub(super) fn canceled(count: usize, at: usize, reason: CancellationReason) -> Error {
    let mut reasons = vec![CancellationReason::none(); count];
    if let Some(faulty) = reasons.get_mut(at) {
        *faulty = reason;
    }
    Error::TransactionCanceled { reasons }
}

/// One action of a transaction.
///
/// Of the writes inside, the table, the key or item, the update, the condition and
/// `return_old_on_failure` count; what a single write can return besides is not part of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactWrite {
    /// Sets the whole item.
    Put(PutItem),
    /// Changes parts of an item, making it if it is not there.
    Update(UpdateItem),
    /// Removes an item.
    Delete(DeleteItem),
    /// Writes nothing, but must hold.
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
    /// The table that it is about.
    pub fn table_name(&self) -> &str {
        of_each!(self, [Put Update Delete Check], action => &action.table_name)
    }

    /// The item that carries the key: the whole item of a put, the key of the others.
    pub const fn key_item(&self) -> &Item {
        match self {
            Self::Put(put) => &put.item,
            Self::Update(update) => &update.key,
            Self::Delete(delete) => &delete.key,
            Self::Check(check) => &check.key,
        }
    }

    /// The key of the item that it is about.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) when the action has no key for this table, which
    /// [`check`](TransactWrite::check) tells too.
    pub fn key(&self, table: &TableDef) -> Result<Item> {
        key_of(table, self.key_item())
    }

    /// The member of DynamoDB's request that holds such an action.
    const fn member(&self) -> &'static str {
        match self {
            Self::Put(_) => "put",
            Self::Update(_) => "update",
            Self::Delete(_) => "delete",
            Self::Check(_) => "conditionCheck",
        }
    }

    /// Checks the action alone, as [`TransactWriteItems::validate`] does with each.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
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

    /// Checks a valid action against its table, as [`TransactWriteItems::check`] does with each.
    ///
    /// # Errors
    ///
    /// The reason to cancel the transaction.
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
            Self::Put(put) => keys::check_index_keys(table, &put.item, keys::Refused::Empty),
            Self::Update(update) => update.check_index_keys(table, keys::Refused::Empty),
            Self::Delete(_) | Self::Check(_) => Ok(()),
        }
    }

    /// What the action adds to the size of the transaction: what its request carries, not the item that it is
    /// about.
    fn payload_bytes(&self) -> usize {
        let update = match self {
            Self::Update(update) => update.payload_bytes(),
            _ => 0,
        };
        item_size(self.key_item()) + update
    }

    /// What the action makes of the item as it stands: the item after it, which for a check is the item
    /// as it was. The action has passed [`check`](TransactWriteItems::check). A put gives its item away, so that it can
    /// be applied once.
    ///
    /// # Errors
    ///
    /// The reason to cancel the transaction.
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
                check_old(Some(&check.condition), old, check.return_old_on_failure)
                    .map(|()| old.cloned())
            }
        };
        new.map_err(reason)
    }
}

/// The reason to cancel a transaction for which an error of one action stands.
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
        /// What must hold of the item as it stands; an item that is not there counts as empty.
        pub condition: Condition,
        ;
        /// Whether a failed condition returns the item as it stands.
        pub return_old_on_failure: bool = false,
    }

    /// This must hold of the item with this key.
    pub fn new;
}

/// What [`TransactWriteItems`] cost.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactWriteItemsOutput {
    /// What it cost per table, if asked.
    pub consumed: Vec<ConsumedCapacity>,
    /// The sizes of the item collections by table, if asked.
    pub collections: BTreeMap<String, Vec<ItemCollectionMetrics>>,
}
