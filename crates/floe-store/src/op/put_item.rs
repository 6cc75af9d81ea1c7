//! PutItem: puts a whole item.

use super::constraint::{as_constraint_error, validate_table_name};
use super::keys::{RejectedFaults, Wording};
use super::values::ItemChecker;
use super::write::{
    AppliedWrite, check_return_values, check_token, evaluate_condition, returned_old_item,
    write_operation,
};
use super::{keys, references};
use crate::error::Result;
use crate::expr::Condition;
use crate::item::Item;
use crate::table::TableDef;

write_operation! {
    /// Puts the whole item, replacing one with the same key.
    pub struct PutItem {
        /// The item, including its key.
        pub item: Item,
    }

    /// Puts this item.
    pub fn new;
}

impl PutItem {
    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        validate_table_name(&self.table_name)?;
        check_token(self.token.as_deref())?;
        let checker = ItemChecker::of(&self.item);
        checker.check().map_err(as_constraint_error)?;
        self.check_condition().map_err(as_constraint_error)?;
        check_return_values(self.return_values)?;
        checker.check_size()
    }

    /// Checks the action of a transaction alone, except for the table name, which the transaction has checked.
    pub(super) fn validate_action(&self) -> Result<()> {
        let checker = ItemChecker::of(&self.item);
        checker.check()?;
        checker.check_size()?;
        self.check_condition()
    }

    fn check_condition(&self) -> Result<()> {
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }

    /// Checks a valid request against its table: the primary key, the keys of indexes, and the use of key attributes in
    /// the condition.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_item_key(&table.key, &self.item, Wording::Item)?;
        keys::check_index_keys(table, &self.item, RejectedFaults::All)?;
        references::check_condition(table, self.condition.as_ref())
    }

    /// Applies the write to the current item. The request must have passed [`check`](PutItem::check). Moves the item
    /// out, so it can be applied only once.
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) if the condition does not hold.
    pub fn apply(&mut self, _table: &TableDef, old: Option<&Item>) -> Result<AppliedWrite> {
        evaluate_condition(self.condition.as_ref(), old, self.return_old_on_failure)?;
        Ok(AppliedWrite {
            new: Some(std::mem::take(&mut self.item)),
            returned: returned_old_item(self.return_values, old),
        })
    }
}
