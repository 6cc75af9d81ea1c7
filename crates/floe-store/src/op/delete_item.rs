//! DeleteItem: removes an item.

use super::constraint::{enveloped, validate_table_name};
use super::values::check_values;
use super::write_item::{check_old, check_old_only, check_token};
use super::{Applied, ReturnValues, keys, references};
use crate::capacity::ReturnConsumedCapacity;
use crate::error::Result;
use crate::expr::Condition;
use crate::item::Item;
use crate::table::TableDef;

/// Removes an item. Removing one that is not there is no error.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteItem {
    /// The table.
    pub table_name: String,
    /// The key: exactly the key attributes of the table.
    pub key: Item,
    /// What must hold of the item as it stands; an item that is not there counts as empty.
    pub condition: Option<Condition>,
    /// Which attributes to return.
    pub return_values: ReturnValues,
    /// Whether a failed condition returns the item as it stands.
    pub return_old_on_failure: bool,
    /// How much to tell about the cost.
    pub return_capacity: ReturnConsumedCapacity,
    /// Whether to tell the size of the item collection.
    pub return_collection: bool,
    /// Makes the write apply once however often it is sent, where the engine
    /// [can](crate::Capabilities::write_tokens).
    pub token: Option<String>,
}

impl DeleteItem {
    /// Removes the item with this key.
    pub fn new(table_name: impl Into<String>, key: Item) -> Self {
        Self {
            table_name: table_name.into(),
            key,
            condition: None,
            return_values: ReturnValues::None,
            return_old_on_failure: false,
            return_capacity: ReturnConsumedCapacity::None,
            return_collection: false,
            token: None,
        }
    }

    /// Writes only if this holds.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.condition = Some(condition);
        self
    }

    /// Returns these attributes.
    #[must_use]
    pub fn return_values(mut self, which: ReturnValues) -> Self {
        self.return_values = which;
        self
    }

    /// Returns the item as it stands when the condition fails.
    #[must_use]
    pub fn return_old_on_failure(mut self) -> Self {
        self.return_old_on_failure = true;
        self
    }

    /// Applies once however often it is sent with this token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

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
            returned: match self.return_values {
                ReturnValues::AllOld => old.cloned(),
                _ => None,
            },
        })
    }
}
