//! The checks of the members of Query and Scan that come first, each stage telling all that it finds.
//!
//! A request is checked by the newer of DynamoDB's two layers of validation, unless it lacks what must be there or
//! holds a number that is none of 32 bits: then the older one does it, in its own words and order.

use floe_store::limits::{INDEX_NAME_CHARS, SCAN_SEGMENTS_MAX};
use floe_store::op::Faults;

use super::{Int, SELECTS};
use crate::wire::legacy::attributes_to_get_faults;
use crate::wire::legacy::filter::{Filters, lacks_operator, operator_faults};
use crate::wire::parameter::return_capacity_faults;
use crate::wire::read::Str;
use crate::wire::refusal::Result;

/// The members that are checked first.
#[derive(Clone, Copy, Default)]
pub(crate) struct Members<'r> {
    pub(crate) table_name: Option<&'r str>,
    pub(crate) index_name: Option<&'r str>,
    pub(crate) attributes_to_get: Option<&'r [Str<'r>]>,
    pub(crate) select: Option<&'r str>,
    pub(crate) limit: Option<Int>,
    pub(crate) segment: Option<Int>,
    pub(crate) total_segments: Option<Int>,
    pub(crate) return_capacity: Option<&'r str>,
    pub(crate) conditional_operator: Option<&'r str>,
    /// Conditions of the older kind, each with the name of its member.
    pub(crate) filters: [(&'static str, Option<&'r Filters<'r>>); 2],
}

/// The greatest number of segments, and the last of them.
const SEGMENTS_MAX: i32 = SCAN_SEGMENTS_MAX as i32;
const SEGMENT_MAX: i32 = SEGMENTS_MAX - 1;

impl<'r> Members<'r> {
    /// Refuses members that are missing or out of range.
    pub(crate) fn check(&self) -> Result<()> {
        if self.needs_older_layer() {
            return Ok(self.older_faults().into_result()?);
        }
        self.range_faults().into_result()?;
        let mut faults = Faults::new();
        if let Some(name) = self.table_name {
            faults.table_name(name);
        }
        return_capacity_faults(&mut faults, self.return_capacity);
        attributes_to_get_faults(&mut faults, self.attributes_to_get);
        Ok(faults.into_result()?)
    }

    fn filters(&self) -> impl Iterator<Item = (&'static str, &'r Filters<'r>)> {
        let filters = self.filters.into_iter();
        filters.filter_map(|(member, map)| Some((member, map?)))
    }

    fn needs_older_layer(&self) -> bool {
        let numbers = [self.limit, self.segment, self.total_segments];
        self.table_name.is_none()
            || numbers.into_iter().flatten().any(|number| number.coerced)
            || self.filters().any(|(_, map)| lacks_operator(map))
    }

    fn older_faults(&self) -> Faults {
        let mut faults = Faults::new();
        if let Some(word) = self.select {
            faults.one_of(word, "select", &SELECTS);
        }
        if let Some(name) = self.index_name {
            faults.pattern(name, "indexName");
            faults.length(name, "indexName", INDEX_NAME_CHARS);
        }
        if let Some(total) = self.total_segments {
            faults.value(total.value, "totalSegments", 1..=SEGMENTS_MAX);
        }
        return_capacity_faults(&mut faults, self.return_capacity);
        match self.table_name {
            None => faults.add_null("tableName"),
            Some(name) => faults.length(name, "tableName", 1..=usize::MAX),
        }
        if let Some(word) = self.conditional_operator {
            faults.one_of(word, "conditionalOperator", &["OR", "AND"]);
        }
        for (member, filters) in self.filters() {
            operator_faults(&mut faults, member, filters);
        }
        if let Some(segment) = self.segment {
            faults.value(segment.value, "segment", 0..=SEGMENT_MAX);
        }
        if let Some(limit) = self.limit {
            faults.value(limit.value, "limit", 1..=i32::MAX);
        }
        attributes_to_get_faults(&mut faults, self.attributes_to_get);
        faults
    }

    fn range_faults(&self) -> Faults {
        let mut faults = Faults::new();
        if let Some(limit) = self.limit {
            faults.value_unseen(limit.value, "Limit", 1..=i32::MAX);
        }
        if let Some(segment) = self.segment {
            faults.value_unseen(segment.value, "Segment", 0..=SEGMENT_MAX);
        }
        if let Some(total) = self.total_segments {
            faults.value_unseen(total.value, "TotalSegments", 1..=SEGMENTS_MAX);
        }
        if let Some(name) = self.index_name {
            faults.length_unseen(name, "IndexName", INDEX_NAME_CHARS);
        }
        if let Some(name) = self.table_name {
            faults.length_unseen(name, "TableName", 1..=usize::MAX);
        }
        faults
    }
}
