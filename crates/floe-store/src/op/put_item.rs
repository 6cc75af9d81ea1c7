//! PutItem: sets the whole item.

use super::constraint::{enveloped, validate_table_name};
use super::keys::{Refused, Wording};
use super::values::Survey;
use super::write::{
    Applied, check_old, check_old_only, check_token, old_returned, write_operation,
};
use super::{keys, references};
use crate::error::Result;
use crate::expr::Condition;
use crate::item::Item;
use crate::table::TableDef;

write_operation! {
    /// Sets the whole item, replacing the one with the same key.
    pub struct PutItem {
        /// The item, with its key.
        pub item: Item,
    }

    /// Sets this item.
    pub fn new;
}

impl PutItem {
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
        keys::check_item_key(&table.key, &self.item, Wording::Item)?;
        keys::check_index_keys(table, &self.item, Refused::All)?;
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
            returned: old_returned(self.return_values, old),
        })
    }
}
