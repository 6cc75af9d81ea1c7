//! DeleteItem: deletes an item.

use super::constraint::{as_constraint_error, validate_table_name};
use super::values::check_values;
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
    /// Deletes an item. Deleting an item that does not exist is not an error.
    pub struct DeleteItem {
        /// The key: exactly the key attributes of the table.
        pub key: Item,
    }

    /// Deletes the item with this key.
    pub fn new;
}

impl DeleteItem {
    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        validate_table_name(&self.table_name)?;
        check_token(self.token.as_deref())?;
        check_return_values(self.return_values)?;
        self.validate_action().map_err(as_constraint_error)
    }

    /// Checks the action of a transaction alone, except for the table name, which the transaction has checked.
    pub(super) fn validate_action(&self) -> Result<()> {
        check_values(&self.key)?;
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }

    /// Checks a valid request against its table: the key, and the use of key attributes in the condition.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        references::check_condition(table, self.condition.as_ref())
    }

    /// Applies the write to the current item. The request must have passed [`check`](DeleteItem::check).
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) if the condition does not hold.
    pub fn apply(&self, _table: &TableDef, old: Option<&Item>) -> Result<AppliedWrite> {
        evaluate_condition(self.condition.as_ref(), old, self.return_old_on_failure)?;
        Ok(AppliedWrite {
            new: None,
            returned: returned_old_item(self.return_values, old),
        })
    }
}
