//! Query: reads the items under one partition key, in the order of the sort key, by pages.

use super::plan::{self, ReadPlan, page_read};
use super::references;
use crate::capacity::ConsumedCapacity;
use crate::declare::setters;
use crate::error::{Error, Result, ensure};
use crate::expr::KeyCondition;
use crate::item::Item;
use crate::table::TableDef;

page_read! {
    /// Reads a page of the items under one partition key of a table or index.
    pub struct Query {
        /// Which items.
        pub key_condition: KeyCondition,
        ;
        /// Whether in ascending order of the sort key.
        pub forward: bool = true,
    }

    /// An eventual, ascending query of the table itself.
    pub fn new;
}

impl Query {
    setters! {
        /// Reads in descending order of the sort key.
        backward() => forward = false;
    }

    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        self.read().validate(&self.table_name, None)?;
        ensure(!self.key_condition.terms.is_empty(), || {
            Error::validation(
                "Either the KeyConditions or KeyConditionExpression parameter must be specified in \
                 the request.",
            )
        })?;
        self.key_condition.check()
    }

    /// Settles a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn plan<'a>(&'a self, table: &'a TableDef) -> Result<ReadPlan<'a>> {
        let read = self.read();
        let index = read.index(table)?;
        if let Some(start_key) = &self.start_key {
            plan::check_start_key(table, index, start_key)?;
        }
        let key = index.map_or(&table.key, |index| &index.key);
        let range = self.key_condition.resolve(key)?;
        if let Some(start_key) = &self.start_key {
            plan::check_start_in_range(table, index, &range, start_key)?;
        }
        references::check_query_filter(key, self.filter.as_ref())?;
        read.check_references(table)?;
        read.check_select_all(index)?;
        read.check_projected(table, index)?;
        read.check_filtered(table, index)?;
        Ok(ReadPlan {
            range: Some(range),
            forward: self.forward,
            ..read.plan(table, index)
        })
    }
}

/// A page of a query or scan.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Page {
    /// The items; empty if only the count was asked for.
    pub items: Vec<Item>,
    /// How many items passed the filter.
    pub count: usize,
    /// How many items were read.
    pub scanned_count: usize,
    /// Where to go on; absent at the end.
    pub last_key: Option<Item>,
    /// What it cost, if asked.
    pub consumed: Option<ConsumedCapacity>,
}
