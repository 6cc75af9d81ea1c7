//! DeleteItem: removes an item.

use super::constraint::{enveloped, validate_table_name};
use super::values::check_values;
use super::write::{
    Applied, check_old, check_old_only, check_token, old_returned, write_operation,
};
use super::{keys, references};
use crate::error::Result;
use crate::expr::Condition;
use crate::item::Item;
use crate::table::TableDef;

write_operation! {
    /// Removes an item. Removing one that is not there is no error.
    pub struct DeleteItem {
        /// The key: exactly the key attributes of the table.
        pub key: Item,
    }

    /// Removes the item with this key.
    pub fn new;
}

impl DeleteItem {
    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        validate_table_name(&self.table_name)?;
        check_token(self.token.as_deref())?;
        check_old_only(self.return_values)?;
        self.validate_action().map_err(enveloped)
    }

    /// Checks the action of a transaction alone; the transaction has checked the name of the table.
    pub(super) fn validate_action(&self) -> Result<()> {
        check_values(&self.key)?;
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }

    /// Checks a valid request against its table: the key, and the condition's use of key attributes.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        references::check_condition(table, self.condition.as_ref())
    }

    /// What the write makes of the item as it stands. The request has passed
    /// [`check`](DeleteItem::check).
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) when the condition does not
    /// hold.
    pub fn apply(&self, _table: &TableDef, old: Option<&Item>) -> Result<Applied> {
        check_old(self.condition.as_ref(), old, self.return_old_on_failure)?;
        Ok(Applied {
            new: None,
            returned: old_returned(self.return_values, old),
        })
    }
}
