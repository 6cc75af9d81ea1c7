//! BatchWriteItem: puts and deletes many items, each on its own.

use std::collections::{BTreeMap, HashSet};

use super::batch_get_item::{TABLE_NAMES_CONSTRAINT, duplicate_keys};
use super::constraint::{Faults, is_name};
use super::values::Survey;
use super::write::key_of;
use super::{ItemCollectionMetrics, keys, missing_table};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::{Error, Result, ensure};
use crate::item::Item;
use crate::limits::{BATCH_WRITE_BYTES_MAX, BATCH_WRITE_ITEMS_MAX};
use crate::table::TableDef;

/// Puts and deletes up to 25 items in several tables. Each is on its own: some may be done and others not.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BatchWriteItem {
    /// The writes of each table, each key once.
    pub requests: BTreeMap<String, Vec<BatchWrite>>,
    /// How much to tell about the cost.
    pub return_capacity: ReturnConsumedCapacity,
    /// Whether to tell the sizes of item collections.
    pub return_collection: bool,
}

/// One write of a [`BatchWriteItem`].
#[derive(Clone, Debug, PartialEq)]
pub enum BatchWrite {
    /// Sets the whole item.
    Put(Item),
    /// Removes the item with this key.
    Delete(Item),
}

impl BatchWriteItem {
    /// A request that writes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts this item, too.
    #[must_use]
    pub fn put(self, table_name: impl Into<String>, item: Item) -> Self {
        self.push(table_name.into(), BatchWrite::Put(item))
    }

    /// Deletes the item with this key, too.
    #[must_use]
    pub fn delete(self, table_name: impl Into<String>, key: Item) -> Self {
        self.push(table_name.into(), BatchWrite::Delete(key))
    }

    fn push(mut self, table_name: String, write: BatchWrite) -> Self {
        self.requests.entry(table_name).or_default().push(write);
        self
    }

    /// Checks the request alone, before the tables are looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
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
            faults.add_unseen("requestItems", WRITES_CONSTRAINT);
        } else if !self.requests.keys().all(|name| is_name(name)) {
            faults.add_unseen("requestItems", TABLE_NAMES_CONSTRAINT);
        }
        faults.into_result()
    }

    /// Checks a valid request against its tables: the keys, each once, and the keys of indexes.
    ///
    /// # Errors
    ///
    /// [`ResourceNotFound`](Error::ResourceNotFound) when a table is not there,
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
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

/// What the number of writes must satisfy, of each table and of all tables together.
pub const WRITES_CONSTRAINT: &str = "Map value must satisfy constraint: [Member must have length less than \
    or equal to 25, Member must have length greater than or equal to 1]";

impl BatchWrite {
    /// The item that carries the key: the whole item of a put, the key of a delete.
    pub const fn key_item(&self) -> &Item {
        match self {
            Self::Put(item) | Self::Delete(item) => item,
        }
    }

    /// Checks the write alone, as [`BatchWriteItem::validate`] does with each, and tells its size.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<usize> {
        let survey = Survey::of(self.key_item());
        survey.check()?;
        if let Self::Put(_) = self {
            survey.check_size()?;
        }
        Ok(survey.bytes())
    }

    /// The key of the item that it writes.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) when the write has no key for this table.
    pub fn key(&self, table: &TableDef) -> Result<Item> {
        key_of(table, self.key_item())
    }

    /// Checks the write against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        match self {
            Self::Put(item) => {
                keys::check_item_key(&table.key, item, keys::Wording::Key)?;
                keys::check_index_keys(table, item, keys::Refused::All)
            }
            Self::Delete(key) => keys::check_key(&table.key, key),
        }
    }

    /// The item after the write; `None` when there is none.
    pub fn apply(self) -> Option<Item> {
        match self {
            Self::Put(item) => Some(item),
            Self::Delete(_) => None,
        }
    }
}

/// What [`BatchWriteItem`] did.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BatchWriteItemOutput {
    /// What was not written and should be sent again.
    pub unprocessed: BTreeMap<String, Vec<BatchWrite>>,
    /// What it cost per table, if asked.
    pub consumed: Vec<ConsumedCapacity>,
    /// The sizes of the item collections by table, if asked.
    pub collections: BTreeMap<String, Vec<ItemCollectionMetrics>>,
}
