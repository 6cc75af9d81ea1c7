//! TransactGetItems: reads many items as of one moment.

use std::collections::HashSet;

use super::constraint::{Faults, table_name_faults};
use super::transact_write_items::{check_bytes, count_faults, repeated_item};
use super::values::check_values;
use super::{keys, missing_table, references};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::{CancellationCode, CancellationReason, Error, Result};
use crate::expr::Paths;
use crate::item::Item;
use crate::table::TableDef;

/// Reads up to 100 items as of one moment.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactGetItems {
    /// The items to read.
    pub gets: Vec<TransactGet>,
    /// How much to tell about the cost.
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

    /// Checks the request alone, before the tables are looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        count_faults(self.gets.len()).into_result()?;
        let mut faults = Faults::new();
        for (at, get) in self.gets.iter().enumerate() {
            let path = format_args!("transactItems.{}.member.get.tableName", at + 1);
            table_name_faults(&mut faults, &get.table_name, path);
        }
        faults.into_result()?;
        for get in &self.gets {
            check_values(&get.key)?;
        }
        for get in &self.gets {
            get.projection.as_ref().map_or(Ok(()), Paths::check)?;
        }
        Ok(())
    }

    /// Checks a valid request against its tables.
    ///
    /// # Errors
    ///
    /// [`ResourceNotFound`](Error::ResourceNotFound) when a table is not there,
    /// [`TransactionCanceled`](Error::TransactionCanceled) when a key is none of its table,
    /// [`Validation`](Error::Validation) when an item is read twice.
    pub fn check<'t>(&self, tables: impl Fn(&str) -> Option<&'t TableDef>) -> Result<()> {
        let mut faults = Vec::new();
        let mut seen = HashSet::with_capacity(self.gets.len());
        let mut repeated = false;
        for (at, get) in self.gets.iter().enumerate() {
            let table = tables(&get.table_name).ok_or_else(missing_table)?;
            if let Err(error) = get.check(table) {
                faults.push((at, error));
            } else if let Some(key) = keys::KeyRef::new(table, &get.key) {
                repeated |= !seen.insert(key);
            }
        }
        if !faults.is_empty() {
            return Err(canceled(self.gets.len(), faults));
        }
        if repeated {
            return Err(repeated_item());
        }
        Ok(())
    }

    /// Checks the size of the items that were found, all together.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) when they are more than a transaction may read.
    pub fn check_bytes(bytes: usize) -> Result<()> {
        check_bytes(bytes)
    }
}

/// Cancels a transaction of so many reads for the faults at these places.
fn canceled(count: usize, faults: Vec<(usize, Error)>) -> Error {
    let mut reasons = vec![CancellationReason::none(); count];
    for (at, error) in faults {
        if let Some(reason) = reasons.get_mut(at) {
            *reason = CancellationReason::new(CancellationCode::ValidationError, error.to_string());
        }
    }
    Error::TransactionCanceled { reasons }
}

/// One item that [`TransactGetItems`] reads.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactGet {
    /// The table.
    pub table_name: String,
    /// The key: exactly the key attributes of the table.
    pub key: Item,
    /// Which parts of the item to return; all if absent.
    pub projection: Option<Paths>,
}

impl TransactGet {
    /// Reads the whole item.
    pub fn new(table_name: impl Into<String>, key: Item) -> Self {
        Self {
            table_name: table_name.into(),
            key,
            projection: None,
        }
    }

    /// The part of an item that the answer holds.
    pub fn answer(&self, item: Item) -> Item {
        match &self.projection {
            Some(paths) => paths.project(&item),
            None => item,
        }
    }

    fn check(&self, table: &TableDef) -> Result<()> {
        keys::check_key(&table.key, &self.key)?;
        references::check_projection(table, self.projection.as_ref())
    }
}

/// What [`TransactGetItems`] found.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TransactGetItemsOutput {
    /// The items in the order of the request; `None` where there is none.
    pub items: Vec<Option<Item>>,
    /// What it cost per table, if asked.
    pub consumed: Vec<ConsumedCapacity>,
}
