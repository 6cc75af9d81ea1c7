//! Query: reads the items under one partition key, in the order of the sort key, by pages.

use super::constraint::{Faults, validate_table_name};
use super::plan::{self, Read, ReadPlan};
use super::values::check_values;
use super::{Segment, references};
use crate::capacity::{ConsumedCapacity, ReturnConsumedCapacity};
use crate::error::{Error, Result};
use crate::expr::{Condition, ExpressionKind, KeyCondition, Paths};
use crate::item::Item;
use crate::limits::SCAN_SEGMENTS_MAX;
use crate::table::TableDef;

/// Reads a page of the items under one partition key of a table or index.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The table.
    pub table_name: String,
    /// The index, or the table itself if absent.
    pub index_name: Option<String>,
    /// Which items.
    pub key_condition: KeyCondition,
    /// What must hold of an item to be returned. Items that it leaves out are read and paid for.
    pub filter: Option<Condition>,
    /// Which parts of the items to return.
    pub projection: Option<Paths>,
    /// What to return where no projection says it.
    pub select: Option<Select>,
    /// The most items to read, before the filter.
    pub limit: Option<usize>,
    /// Where the page before ended.
    pub start_key: Option<Item>,
    /// Whether in ascending order of the sort key.
    pub forward: bool,
    /// Whether the read sees every write answered before; not on a global index.
    pub consistent: bool,
    /// How much to tell about the cost.
    pub return_capacity: ReturnConsumedCapacity,
}

impl Query {
    /// An eventual, ascending query of the table itself.
    pub fn new(table_name: impl Into<String>, key_condition: KeyCondition) -> Self {
        Self {
            table_name: table_name.into(),
            index_name: None,
            key_condition,
            filter: None,
            projection: None,
            select: None,
            limit: None,
            start_key: None,
            forward: true,
            consistent: false,
            return_capacity: ReturnConsumedCapacity::None,
        }
    }

    /// Reads this index.
    #[must_use]
    pub fn index(mut self, index_name: impl Into<String>) -> Self {
        self.index_name = Some(index_name.into());
        self
    }

    /// Reads at most so many items, before the filter.
    #[must_use]
    pub fn limit(mut self, items: usize) -> Self {
        self.limit = Some(items);
        self
    }

    /// Goes on where the page before ended.
    #[must_use]
    pub fn start_key(mut self, key: Option<Item>) -> Self {
        self.start_key = key;
        self
    }

    /// Returns only items for which this holds.
    #[must_use]
    pub fn filter(mut self, filter: Condition) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Reads in descending order of the sort key.
    #[must_use]
    pub fn backward(mut self) -> Self {
        self.forward = false;
        self
    }

    /// Sees every write answered before.
    #[must_use]
    pub fn consistent(mut self) -> Self {
        self.consistent = true;
        self
    }

    /// Returns only these parts.
    #[must_use]
    pub fn projection(mut self, paths: Paths) -> Self {
        self.projection = Some(paths);
        self
    }

    /// Returns this of each item.
    #[must_use]
    pub fn select(mut self, select: Select) -> Self {
        self.select = Some(select);
        self
    }

    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        validate_members(&self.table_name, self.limit, None)?;
        self.start_key.as_ref().map_or(Ok(()), check_values)?;
        if let Some(filter) = &self.filter {
            filter.check_as(ExpressionKind::Filter)?;
        }
        self.projection.as_ref().map_or(Ok(()), Paths::check)?;
        self.read().validate_select()?;
        if self.key_condition.terms.is_empty() {
            return Err(Error::validation(
                "Either the KeyConditions or KeyConditionExpression parameter must be specified in \
                 the request.",
            ));
        }
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

    /// Checks a valid request against its table; see [`plan`](Query::plan), which does it too.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn check(&self, table: &TableDef) -> Result<()> {
        self.plan(table).map(drop)
    }

    fn read(&self) -> Read<'_> {
        Read {
            index_name: self.index_name.as_deref(),
            filter: self.filter.as_ref(),
            projection: self.projection.as_ref(),
            select: self.select,
            limit: self.limit,
            start_key: self.start_key.as_ref(),
            consistent: self.consistent,
        }
    }
}

/// The limit of a page is at least 1; one beyond 32 bits is as good as none. It is told with the other numbers and
/// with a name that is empty, before a name that is wrong.
pub(super) fn validate_members(
    table_name: &str,
    limit: Option<usize>,
    segment: Option<Segment>,
) -> Result<()> {
    let mut faults = Faults::new();
    if let Some(limit) = limit {
        faults.value_unseen(limit, "Limit", 1..=usize::MAX);
    }
    if let Some(segment) = segment {
        faults.value_unseen(segment.index, "Segment", 0..=SCAN_SEGMENTS_MAX - 1);
        faults.value_unseen(segment.total, "TotalSegments", 1..=SCAN_SEGMENTS_MAX);
    }
    faults.length_unseen(table_name, "TableName", 1..=usize::MAX);
    faults.into_result()?;
    validate_table_name(table_name)
}

/// What a query or scan returns of each item where no projection says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Select {
    /// Everything, also what a local index has not copied.
    AllAttributes,
    /// What the index has copied.
    AllProjectedAttributes,
    /// What the projection names.
    SpecificAttributes,
    /// Nothing but the count.
    Count,
}

impl Select {
    /// The name that DynamoDB gives it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllAttributes => "ALL_ATTRIBUTES",
            Self::AllProjectedAttributes => "ALL_PROJECTED_ATTRIBUTES",
            Self::SpecificAttributes => "SPECIFIC_ATTRIBUTES",
            Self::Count => "COUNT",
        }
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
