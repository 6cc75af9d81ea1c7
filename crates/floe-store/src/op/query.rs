//! Query: reads the items of one partition key, in the order of the sort key, page by page.

use super::plan::{self, ReadPlan, page_read};
use super::references;
use crate::capacity::ConsumedCapacity;
use crate::declare::setters;
use crate::error::{Error, Result, ensure};
use crate::expr::KeyCondition;
use crate::item::Item;
use crate::table::TableDef;

page_read! {
    /// Reads a page of the items of one partition key, from a table or index.
    pub struct Query {
        /// The condition on the key.
        pub key_condition: KeyCondition,
        ;
        /// Whether to read in ascending order of the sort key. Default: true.
        pub forward: bool = true,
    }

    /// An eventually consistent, ascending query of the table itself.
    pub fn new;
}

impl Query {
    setters! {
        /// Reads in descending order of the sort key.
        backward() => forward = false;
    }

    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
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

    /// Checks a valid request against its table and returns the plan.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
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

/// A page of a query or scan: the response.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Page {
    /// The items; empty if only the count was requested.
    pub items: Vec<Item>,
    /// The number of items that passed the filter.
    pub count: usize,
    /// The number of items read.
    pub scanned_count: usize,
    /// The key for continuing; `None` on the last page.
    pub last_key: Option<Item>,
    /// The cost, if requested.
    pub consumed: Option<ConsumedCapacity>,
}
