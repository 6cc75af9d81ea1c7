//! BatchWriteItem: puts and deletes many items, independently.

use std::collections::{BTreeMap, HashSet};

use super::batch_get_item::{TABLE_NAMES_CONSTRAINT, duplicate_keys};
use super::constraint::{Faults, is_valid_name};
use super::values::ItemChecker;
use super::write::key_of;
use super::{ItemCollectionMetrics, keys, missing_table};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::{Error, Result, ensure};
use crate::item::Item;
use crate::limits::{BATCH_WRITE_BYTES_MAX, BATCH_WRITE_ITEMS_MAX};
use crate::table::TableDef;

/// Puts and deletes up to 25 items in several tables. The writes are independent: some may be applied and others not.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BatchWriteItem {
    /// The writes to each table, with unique keys.
    pub requests: BTreeMap<String, Vec<BatchWrite>>,
    /// How much detail about the cost to return.
    pub return_capacity: ReturnConsumedCapacity,
    /// Whether to return the sizes of item collections.
    pub return_collection: bool,
}

/// One write of a [`BatchWriteItem`].
#[derive(Clone, Debug, PartialEq)]
pub enum BatchWrite {
    /// Puts the whole item.
    Put(Item),
    /// Deletes the item with this key.
    Delete(Item),
}

impl BatchWriteItem {
    /// Creates a request without writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a put of this item.
    #[must_use]
    pub fn put(self, table_name: impl Into<String>, item: Item) -> Self {
        self.push(table_name.into(), BatchWrite::Put(item))
    }

    /// Adds a delete of this key.
    #[must_use]
    pub fn delete(self, table_name: impl Into<String>, key: Item) -> Self {
        self.push(table_name.into(), BatchWrite::Delete(key))
    }

    fn push(mut self, table_name: String, write: BatchWrite) -> Self {
        self.requests.entry(table_name).or_default().push(write);
        self
    }

    /// Checks the request alone, without tables.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        self.validate_counts()?;
        let mut bytes = 0;
        for write in self.requests.values().flatten() {
            bytes += write.validate()?;
        }
        ensure(bytes <= BATCH_WRITE_BYTES_MAX, || {
            Error::validation(
                "Item collection too large: aggregate size of items in BatchWriteItem exceeds 16MB \
                 limit",
            )
        })
    }

    fn validate_counts(&self) -> Result<()> {
        ensure(!self.requests.is_empty(), || {
            Error::validation("The requestItems parameter is required for BatchWriteItem")
        })?;
        let mut faults = Faults::new();
        let total: usize = self.requests.values().map(Vec::len).sum();
        if total > BATCH_WRITE_ITEMS_MAX || self.requests.values().any(Vec::is_empty) {
            faults.add_hidden("requestItems", WRITES_CONSTRAINT);
        } else if !self.requests.keys().all(|name| is_valid_name(name)) {
            faults.add_hidden("requestItems", TABLE_NAMES_CONSTRAINT);
        }
        faults.into_result()
    }

    /// Checks a valid request against its tables: the primary keys, their uniqueness, and the keys of indexes.
    ///
    /// # Errors
    ///
    /// [`ResourceNotFound`](Error::ResourceNotFound) if a table does not exist,
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn check<'t>(&self, tables: impl Fn(&str) -> Option<&'t TableDef>) -> Result<()> {
        for (name, writes) in &self.requests {
            let table = tables(name).ok_or_else(missing_table)?;
            let mut seen = HashSet::with_capacity(writes.len());
            for write in writes {
                write.check(table)?;
                let key = keys::KeyRef::new(table, write.key_item());
                ensure(key.is_none_or(|key| seen.insert(key)), duplicate_keys)?;
            }
        }
        Ok(())
    }
}

/// The constraint for the number of writes, per table and in total.
pub const WRITES_CONSTRAINT: &str = "Map value must satisfy constraint: [Member must have length less than \
    or equal to 25, Member must have length greater than or equal to 1]";

impl BatchWrite {
    /// Returns the item that contains the key: the whole item of a put, the key of a delete.
    pub const fn key_item(&self) -> &Item {
        match self {
            Self::Put(item) | Self::Delete(item) => item,
        }
    }

    /// Checks the write alone, like [`BatchWriteItem::validate`], and returns its size.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<usize> {
        let checker = ItemChecker::of(self.key_item());
        checker.check()?;
        if let Self::Put(_) = self {
            checker.check_size()?;
        }
        Ok(checker.bytes())
    }

    /// Returns the key of the written item.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) if the write has no key for this table.
    pub fn key(&self, table: &TableDef) -> Result<Item> {
        key_of(table, self.key_item())
    }

    /// Checks the write against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        match self {
            Self::Put(item) => {
                keys::check_item_key(&table.key, item, keys::Wording::Key)?;
                keys::check_index_keys(table, item, keys::RejectedFaults::All)
            }
            Self::Delete(key) => keys::check_key(&table.key, key),
        }
    }

    /// Returns the item after the write; `None` if it was deleted.
    pub fn apply(self) -> Option<Item> {
        match self {
            Self::Put(item) => Some(item),
            Self::Delete(_) => None,
        }
    }
}

/// The response of [`BatchWriteItem`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BatchWriteItemOutput {
    /// The writes that were not applied; send them again.
    pub unprocessed: BTreeMap<String, Vec<BatchWrite>>,
    /// The cost per table, if requested.
    pub consumed: Vec<ConsumedCapacity>,
    /// The sizes of the item collections by table, if requested.
    pub collections: BTreeMap<String, Vec<ItemCollectionMetrics>>,
}
