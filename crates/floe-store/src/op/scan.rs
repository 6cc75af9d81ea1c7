//! Scan: reads a whole table or index by pages, or one segment of it.

use super::Select;
use super::constraint::invalid;
use super::plan::{self, Read, ReadPlan};
use super::query::validate_members;
use super::values::check_values;
use crate::capacity::ReturnConsumedCapacity;
use crate::error::{Error, Result};
use crate::expr::{Condition, ExpressionKind, Paths};
use crate::item::Item;
use crate::table::{IndexDef, TableDef};

/// Reads a page of a table or index, in the order of the store.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// The table.
    pub table_name: String,
    /// The index, or the table itself if absent.
    pub index_name: Option<String>,
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
    /// Which part of the table, for parallel scans; all of it if absent.
    pub segment: Option<Segment>,
    /// Whether the read sees every write answered before; not on a global index.
    pub consistent: bool,
    /// How much to tell about the cost.
    pub return_capacity: ReturnConsumedCapacity,
}

/// One of several parts into which a scan divides a table. Every item is in exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The part, from 0.
    pub index: usize,
    /// How many parts there are.
    pub total: usize,
}

impl Scan {
    /// An eventual scan of the whole table.
    pub fn new(table_name: impl Into<String>) -> Self {
        Self {
            table_name: table_name.into(),
            index_name: None,
            filter: None,
            projection: None,
            select: None,
            limit: None,
            start_key: None,
            segment: None,
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

    /// Reads one part of several.
    #[must_use]
    pub fn segment(mut self, index: usize, total: usize) -> Self {
        self.segment = Some(Segment { index, total });
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
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        validate_members(&self.table_name, self.limit, self.segment)?;
        self.start_key.as_ref().map_or(Ok(()), check_values)?;
        if let Some(filter) = &self.filter {
            filter.check_as(ExpressionKind::Filter)?;
        }
        self.projection.as_ref().map_or(Ok(()), Paths::check)?;
        self.read().validate_select()?;
        self.segment
            .as_ref()
            .map_or(Ok(()), Segment::validate_order)
    }

    /// Settles a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn plan<'a>(&'a self, table: &'a TableDef) -> Result<ReadPlan<'a>> {
        let read = self.read();
        let index = read.index(table)?;
        read.check_select_all(index)?;
        if let Some(start_key) = &self.start_key {
            check_start_types(table, index, start_key)?;
            plan::check_start_key(table, index, start_key)?;
        }
        read.check_references(table)?;
        read.check_projected(table, index)?;
        Ok(ReadPlan {
            segment: self.segment,
            ..read.plan(table, index)
        })
    }

    /// Checks a valid request against its table; see [`plan`](Scan::plan), which does it too.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
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

impl Segment {
    fn validate_order(&self) -> Result<()> {
        if self.index < self.total {
            return Ok(());
        }
        Err(Error::validation(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments",
        ))
    }

    /// The error for a starting key that lies in another segment, which only an engine can know: how
    /// keys are spread over segments is its own.
    pub fn foreign_start_key(&self) -> Error {
        Error::Validation(format!(
            "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use \
             ExclusiveStartKey with correct Segment. TotalSegments: {} Segment: {}",
            self.total, self.index
        ))
    }
}

/// In a table with indexes, a scan tells an attribute of the wrong type as a fault of an index: of the
/// one that is read, or of the first.
fn check_start_types(table: &TableDef, index: Option<&IndexDef>, start_key: &Item) -> Result<()> {
    let first = || table.global_indexes().chain(table.local_indexes()).next();
    let Some(told) = index.or_else(first) else {
        return Ok(());
    };
    let keys = table
        .indexes
        .iter()
        .flat_map(|index| index.key.attributes());
    for attribute in table.key.attributes().chain(keys) {
        if let Some(value) = start_key.get(&attribute.name)
            && !attribute.kind.matches(value)
        {
            return Err(invalid(format_args!(
                "Type mismatch for Index Key {} Expected: {} Actual: {} IndexName: {}",
                attribute.name,
                attribute.kind.as_str(),
                value.value_type(),
                told.name
            )));
        }
    }
    Ok(())
}
