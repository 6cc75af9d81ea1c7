//! BatchGetItem: reads many items by their keys, independently.

use std::collections::{BTreeMap, HashSet};

use super::constraint::{Faults, is_valid_name, length_at_least, length_at_most};
use super::get_item::projected;
use super::values::check_values;
use super::{keys, missing_table, references};
use crate::capacity::{Consistency, ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::{Error, Result, ensure};
use crate::expr::Paths;
use crate::item::Item;
use crate::limits::BATCH_GET_ITEMS_MAX;
use crate::table::TableDef;

/// Reads up to 100 items, from several tables.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BatchGetItem {
    /// The reads of each table.
    pub requests: BTreeMap<String, KeysAndAttributes>,
    /// How much detail about the cost to return.
    pub return_capacity: ReturnConsumedCapacity,
}

/// What [`BatchGetItem`] reads from one table.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct KeysAndAttributes {
    /// The keys, without duplicates.
    pub keys: Vec<Item>,
    /// Which parts of the items to return. Default: all.
    pub projection: Option<Paths>,
    /// Whether the reads are strongly consistent.
    pub consistent: bool,
}

impl BatchGetItem {
    /// Creates a request without reads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds these keys of a table, to be read consistently.
    #[must_use]
    pub fn keys(
        mut self,
        table_name: impl Into<String>,
        keys: impl IntoIterator<Item = Item>,
    ) -> Self {
        let request = self.requests.entry(table_name.into()).or_default();
        request.consistent = true;
        request.keys.extend(keys);
        self
    }

    /// Checks the request alone, without tables.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        self.validate_counts()?;
        let mut requests = self.requests.values();
        requests.try_for_each(KeysAndAttributes::validate)?;
        let keys: usize = self.requests.values().map(|r| r.keys.len()).sum();
        ensure(keys <= BATCH_GET_ITEMS_MAX, || {
            Error::validation("Too many items requested for the BatchGetItem call")
        })
    }

    fn validate_counts(&self) -> Result<()> {
        let mut faults = Faults::new();
        if self.requests.is_empty() {
            faults.add_hidden("RequestItems", length_at_least(1));
        }
        let keys = |fits: fn(usize) -> bool| {
            let unfit = self.requests.iter().find(|(_, r)| !fits(r.keys.len()));
            unfit.map(|(table, _)| format!("RequestItems.{table}.member.Keys"))
        };
        if let Some(path) = keys(|count| count > 0) {
            faults.add_hidden(path, length_at_least(1));
        } else if !self.requests.keys().all(|name| is_valid_name(name)) {
            faults.add_hidden("requestItems", TABLE_NAMES_CONSTRAINT);
        } else if let Some(path) = keys(|count| count <= BATCH_GET_ITEMS_MAX) {
            faults.add_hidden(path, length_at_most(BATCH_GET_ITEMS_MAX));
        }
        faults.into_result()
    }

    /// Checks a valid request against its tables.
    ///
    /// # Errors
    ///
    /// [`ResourceNotFound`](Error::ResourceNotFound) if a table does not exist,
    /// [`Validation`](Error::Validation) if a key does not match its table.
    pub fn check<'t>(&self, tables: impl Fn(&str) -> Option<&'t TableDef>) -> Result<()> {
        for (name, request) in &self.requests {
            let table = tables(name).ok_or_else(missing_table)?;
            for key in &request.keys {
                keys::check_key(&table.key, key)?;
            }
            references::check_projection(table, request.projection.as_ref())?;
        }
        Ok(())
    }
}

/// The constraint for table names that are keys of a map.
pub const TABLE_NAMES_CONSTRAINT: &str = "Map keys must satisfy constraint: [Member must have length \
    less than or equal to 255, Member must have length greater than or equal to 3, Member must \
    satisfy regular expression pattern: [a-zA-Z0-9_.-]+]";

impl KeysAndAttributes {
    /// The consistency for which the reads are charged.
    pub const fn consistency(&self) -> Consistency {
        Consistency::from_consistent_read(self.consistent)
    }

    /// Returns the part of an item that the response contains.
    pub fn response_item(&self, item: Item) -> Item {
        projected(self.projection.as_ref(), item)
    }

    fn validate(&self) -> Result<()> {
        self.keys.iter().try_for_each(check_values)?;
        self.projection.as_ref().map_or(Ok(()), Paths::check)?;
        let mut seen = HashSet::with_capacity(self.keys.len());
        ensure(self.keys.iter().all(|key| seen.insert(key)), duplicate_keys)
    }
}

pub(super) fn duplicate_keys() -> Error {
    Error::validation("Provided list of item keys contains duplicates")
}

/// The response of [`BatchGetItem`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct BatchGetItemOutput {
    /// The items found, by table, in no particular order.
    pub items: BTreeMap<String, Vec<Item>>,
    /// The keys that were not read; request them again.
    pub unprocessed: BTreeMap<String, KeysAndAttributes>,
    /// The cost per table, if requested.
    pub consumed: Vec<ConsumedCapacity>,
}
