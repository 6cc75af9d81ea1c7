//! Scan: reads a whole table or index by pages, or one segment of it.

use super::keys::check_index_type;
use super::plan::{self, ReadPlan, Segment, page_read};
use crate::declare::setters;
use crate::error::Result;
use crate::item::Item;
use crate::table::{IndexDef, TableDef};

page_read! {
    /// Reads a page of a table or index, in the order of the store.
    pub struct Scan {
        ;
        /// Which part of the table, for parallel scans; all of it if absent.
        pub segment: Option<Segment> = None,
    }

    /// An eventual scan of the whole table.
    pub fn new;
}

impl Scan {
    setters! {
        /// Reads one part of several.
        segment(index: usize, total: usize) => segment = Some(Segment { index, total });
    }

    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        self.read().validate(&self.table_name, self.segment)?;
        let segment = self.segment.as_ref();
        segment.map_or(Ok(()), Segment::validate_order)
    }

    /// Settles a valid request against its table.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB gives first.
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

/// In a table with indexes, a scan tells an attribute of the wrong type as a fault of an index: of the
/// one that is read, or of the first.
fn check_start_types(table: &TableDef, index: Option<&IndexDef>, start_key: &Item) -> Result<()> {
    let first = || table.global_indexes().chain(table.local_indexes()).next();
    let Some(told) = index.or_else(first) else {
        return Ok(());
    };
    let keys = table.indexes.iter().flat_map(|i| i.key.attributes());
    for attribute in table.key.attributes().chain(keys) {
        if let Some(value) = start_key.get(&attribute.name) {
            check_index_type(attribute, value, told)?;
        }
    }
    Ok(())
}
