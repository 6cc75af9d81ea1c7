//! Scan: reads a whole table or index, or one segment of it, page by page.

use super::keys::check_index_type;
use super::plan::{self, ReadPlan, Segment, page_read};
use crate::declare::setters;
use crate::error::Result;
use crate::item::Item;
use crate::table::{IndexDef, TableDef};

page_read! {
    /// Reads a page of a table or index, in the order in which the store returns them.
    pub struct Scan {
        ;
        /// The segment to read, for parallel scans. Default: the whole table.
        pub segment: Option<Segment> = None,
    }

    /// An eventually consistent scan of the whole table.
    pub fn new;
}

impl Scan {
    setters! {
        /// Reads one of several segments.
        segment(index: usize, total: usize) => segment = Some(Segment { index, total });
    }

    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        self.read().validate(&self.table_name, self.segment)?;
        let segment = self.segment.as_ref();
        segment.map_or(Ok(()), Segment::validate_order)
    }

    /// Checks a valid request against its table and returns the plan.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
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
}

/// In a table with indexes, a scan reports an attribute of the wrong type as a fault of an index: the one being read,
/// or else the first.
fn check_start_types(table: &TableDef, index: Option<&IndexDef>, start_key: &Item) -> Result<()> {
    let first = || table.global_indexes().chain(table.local_indexes()).next();
    let Some(reported) = index.or_else(first) else {
        return Ok(());
    };
    let keys = table.indexes.iter().flat_map(|i| i.key.attributes());
    for attribute in table.key.attributes().chain(keys) {
        if let Some(value) = start_key.get(&attribute.name) {
            check_index_type(attribute, value, reported)?;
        }
    }
    Ok(())
}
