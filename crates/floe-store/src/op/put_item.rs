//! PutItem: sets the whole item.

use super::constraint::{enveloped, validate_table_name};
use super::values::Survey;
use super::write_item::{check_old, check_old_only, check_token};
use super::{Applied, ReturnValues, keys, references};
use crate::capacity::ReturnConsumedCapacity;
use crate::error::Result;
use crate::expr::Condition;
use crate::item::Item;
use crate::table::TableDef;

/// Sets the whole item, replacing the one with the same key.
#[derive(Clone, Debug, PartialEq)]
pub struct PutItem {
    /// The table.
    pub table_name: String,
    /// The item, with its key.
    pub item: Item,
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

impl PutItem {
    /// Sets this item.
    pub fn new(table_name: impl Into<String>, item: Item) -> Self {
        Self {
            table_name: table_name.into(),
            item,
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
        let survey = Survey::of(&self.item);
        survey.check().map_err(enveloped)?;
        self.check_condition().map_err(enveloped)?;
        check_old_only(self.return_values)?;
        survey.check_size()
    }

    /// Checks the action of a transaction alone; the transaction has checked the name of the table.
    pub(super) fn validate_action(&self) -> Result<()> {
        let survey = Survey::of(&self.item);
        survey.check()?;
        survey.check_size()?;
        self.check_condition()
    }

    fn check_condition(&self) -> Result<()> {
        self.condition.as_ref().map_or(Ok(()), Condition::check)
    }

    /// Checks a valid request against its table: the key, the keys of indexes, and the condition's use
    /// of them.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_item_key(&table.key, &self.item)?;
        keys::check_index_keys(table, &self.item)?;
        references::check_condition(table, self.condition.as_ref())
    }

    /// What the write makes of the item as it stands. The request has passed
    /// [`check`](PutItem::check). It gives its item away, so that it can be applied once.
    ///
    /// # Errors
    ///
    /// [`ConditionalCheckFailed`](crate::Error::ConditionalCheckFailed) when the condition does not
    /// hold.
    pub fn apply(&mut self, _table: &TableDef, old: Option<&Item>) -> Result<Applied> {
        check_old(self.condition.as_ref(), old, self.return_old_on_failure)?;
        Ok(Applied {
            new: Some(std::mem::take(&mut self.item)),
            returned: match self.return_values {
                ReturnValues::AllOld => old.cloned(),
                _ => None,
            },
        })
    }
}
