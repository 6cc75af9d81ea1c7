//! GetItem: reads one item by its key.

use super::constraint::validate_table_name;
use super::values::check_values;
use super::{keys, references};
use crate::capacity::{Consistency, ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::Result;
use crate::expr::Paths;
use crate::item::Item;
use crate::table::TableDef;

/// Reads one item by its key.
#[derive(Clone, Debug, PartialEq)]
pub struct GetItem {
    /// The table.
    pub table_name: String,
    /// The key: exactly the key attributes of the table.
    pub key: Item,
    /// Which parts of the item to return; all if absent.
    pub projection: Option<Paths>,
    /// Whether the read sees every write answered before.
    pub consistent: bool,
    /// How much to tell about the cost.
    pub return_capacity: ReturnConsumedCapacity,
}

impl GetItem {
    /// A consistent read of the whole item.
    pub fn new(table_name: impl Into<String>, key: Item) -> Self {
        Self {
            table_name: table_name.into(),
            key,
            projection: None,
            consistent: true,
            return_capacity: ReturnConsumedCapacity::None,
        }
    }

    /// Accepts data that is a little behind, at half the price.
    #[must_use]
    pub fn eventual(mut self) -> Self {
        self.consistent = false;
        self
    }

    /// Returns only these parts.
    #[must_use]
    pub fn projection(mut self, paths: Paths) -> Self {
        self.projection = Some(paths);
        self
    }

    /// The consistency, for which the read is charged.
    pub const fn consistency(&self) -> Consistency {
        Consistency::of_read(self.consistent)
    }

    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        validate_table_name(&self.table_name)?;
        check_values(&self.key)?;
        self.projection.as_ref().map_or(Ok(()), Paths::check)
    }

    /// Checks a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        references::check_projection(table, self.projection.as_ref())
    }

    /// The part of an item that the answer holds.
    pub fn answer(&self, item: Item) -> Item {
        match &self.projection {
            Some(paths) => paths.project(&item),
            None => item,
        }
    }
}

/// What [`GetItem`] found.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GetItemOutput {
    /// The item, if there is one.
    pub item: Option<Item>,
    /// What it cost, if asked.
    pub consumed: Option<ConsumedCapacity>,
}
