//! TransactGetItems: reads many items from one snapshot.

use std::collections::HashSet;

use super::constraint::Faults;
use super::get_item::projected;
use super::transact_write_items::{canceled, check_bytes, check_count, reason, repeated_item};
use super::values::check_values;
use super::{keys, missing_table, references};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::declare::operation;
use crate::error::{Result, ensure, ensure_none};
use crate::expr::Paths;
use crate::item::Item;
use crate::table::TableDef;

/// Reads up to 100 items from one snapshot.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactGetItems {
    /// The items to read.
    pub gets: Vec<TransactGet>,
    /// How much detail about the cost to return.
    pub return_capacity: ReturnConsumedCapacity,
}

impl TransactGetItems {
    /// Reads these items.
    pub fn new(gets: impl IntoIterator<Item = TransactGet>) -> Self {
        Self {
            gets: gets.into_iter().collect(),
            return_capacity: ReturnConsumedCapacity::None,
        }
    }

    /// Checks the request alone, without the tables.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        check_count(self.gets.len())?;
        Faults::check(|faults| {
            for (at, get) in self.gets.iter().enumerate() {
                let path = format_args!("transactItems.{}.member.get.tableName", at + 1);
                faults.table_name_at(&get.table_name, path);
            }
        })?;
        let mut keys = self.gets.iter().map(|get| &get.key);
        keys.try_for_each(check_values)?;
        let mut projections = self.gets.iter().filter_map(|get| get.projection.as_ref());
        projections.try_for_each(Paths::check)
    }

    /// Checks a valid request against its tables.
    ///
    /// # Errors
    ///
    /// [`ResourceNotFound`](crate::Error::ResourceNotFound) if a table does not exist,
    /// [`TransactionCanceled`](crate::Error::TransactionCanceled) if a key does not match its table,
    /// [`Validation`](crate::Error::Validation) if an item is read twice.
    pub fn check<'t>(&self, tables: impl Fn(&str) -> Option<&'t TableDef>) -> Result<()> {
        let mut fault = None;
        let mut seen = HashSet::with_capacity(self.gets.len());
        let mut repeated = false;
        for (at, get) in self.gets.iter().enumerate() {
            let table = tables(&get.table_name).ok_or_else(missing_table)?;
            if let Err(error) = get.check(table) {
                fault = fault.or(Some((at, error)));
            } else if let Some(key) = keys::KeyRef::new(table, &get.key) {
                repeated |= !seen.insert(key);
            }
        }
        ensure_none(fault, |(at, error)| {
            canceled(self.gets.len(), at, reason(error))
        })?;
        ensure(!repeated, repeated_item)
    }

    /// Checks the total size of the items found.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation) if it exceeds the limit of a transaction.
    pub fn check_bytes(bytes: usize) -> Result<()> {
        check_bytes(bytes)
    }
}

operation! {
    /// One item that [`TransactGetItems`] reads.
    pub struct TransactGet {
        /// The key: exactly the key attributes of the table.
        pub key: Item,
        ;
        /// Which parts of the item to return. Default: all.
        pub projection: Option<Paths> = None,
    }

    /// Reads the whole item.
    pub fn new;
}

impl TransactGet {
    /// Returns the part of an item that the response contains. Unlike in other operations, an item with an empty
    /// projection counts as missing.
    pub fn response_item(&self, item: Item) -> Option<Item> {
        let part = projected(self.projection.as_ref(), item);
        (!part.is_empty()).then_some(part)
    }

    fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        references::check_projection(table, self.projection.as_ref())
    }
}

/// The response of [`TransactGetItems`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactGetItemsOutput {
    /// The items in the order of the request; `None` if the item or all projected attributes are missing.
    pub items: Vec<Option<Item>>,
    /// The cost per table, if requested.
    pub consumed: Vec<ConsumedCapacity>,
}
