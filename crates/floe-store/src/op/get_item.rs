//! GetItem: reads one item by its key.

use super::constraint::validate_table_name;
use super::values::check_values;
use super::{keys, references};
use crate::capacity::{Consistency, ConsumedCapacity, ReturnConsumedCapacity};
use crate::declare::{operation, setters};
use crate::error::Result;
use crate::expr::Paths;
use crate::item::Item;
use crate::table::TableDef;

operation! {
    /// Reads one item by its key.
    pub struct GetItem {
        /// The key: exactly the key attributes of the table.
        pub key: Item,
        ;
        /// Which parts of the item to return. Default: all.
        pub projection: Option<Paths> = None,
        /// Whether the read is strongly consistent. Default: true.
        pub consistent: bool = true,
        /// How much detail about the cost to return.
        pub return_capacity: ReturnConsumedCapacity = ReturnConsumedCapacity::None,
    }

    /// A consistent read of the whole item.
    pub fn new;
}

impl GetItem {
    setters! {
        /// Makes the read eventually consistent, at half the price.
        eventual() => consistent = false;
        /// Returns only these parts.
        projection(paths: Paths) => projection = Some(paths);
    }

    /// The consistency for which the read is charged.
    pub const fn consistency(&self) -> Consistency {
        Consistency::from_consistent_read(self.consistent)
    }

    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        validate_table_name(&self.table_name)?;
        check_values(&self.key)?;
        self.projection.as_ref().map_or(Ok(()), Paths::check)
    }

    /// Checks a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        references::check_projection(table, self.projection.as_ref())
    }

    /// Returns the part of an item that the response contains.
    pub fn response_item(&self, item: Item) -> Item {
        projected(self.projection.as_ref(), item)
    }
}

/// Returns the parts of an item that a projection names, or the whole item without a projection.
pub(super) fn projected(projection: Option<&Paths>, item: Item) -> Item {
    match projection {
        Some(paths) => paths.project(&item),
        None => item,
    }
}

/// The response of [`GetItem`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GetItemOutput {
    /// The item, if it exists.
    pub item: Option<Item>,
    /// The cost, if requested.
    pub consumed: Option<ConsumedCapacity>,
}
