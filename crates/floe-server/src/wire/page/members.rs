//! The members of Query and Scan, and their first checks. Each stage reports all faults that it finds.
//!
//! DynamoDB has two validation layers. The newer one validates a request, unless a required member is missing or a
//! number is not a 32-bit integer: then the older one does, with its own messages and order.

use floe_store::json::{ValidationLayer, ValueFault};
use floe_store::limits::{INDEX_NAME_CHARS, SCAN_SEGMENTS_MAX};
use floe_store::op::Faults;

use super::{Int, SELECTS};
use crate::wire::legacy::filter::{Filters, filter_values, lacks_operator, operator_faults};
use crate::wire::{
    Attribute, Attributes, Map, Parameters, RequestError, Result, Str, TableName,
    attributes_to_get_faults, empty_name_error, enum_faults, members, return_capacity_faults,
};

members! {
    /// The members that Query and Scan have in common.
    PageMembers<'a> {
        "TableName" => table_name: TableName<'a>,
        "IndexName" => index_name: Str<'a>,
        "Select" => select: Str<'a>,
        "AttributesToGet" => attributes_to_get: Vec<Str<'a>>,
        "Limit" => limit: Int,
        "ConsistentRead" => consistent_read: bool,
        "ConditionalOperator" => conditional_operator: Str<'a>,
        "ExclusiveStartKey" => exclusive_start_key: Attributes,
        "ReturnConsumedCapacity" => return_capacity: Str<'a>,
        "ProjectionExpression" => projection: Str<'a>,
        "FilterExpression" => filter: Str<'a>,
        "ExpressionAttributeNames" => names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => values: Map<'a, Attribute>,
    }

    /// The part of a table that Scan reads.
    Segments<'a> {
        "Segment" => segment: Int,
        "TotalSegments" => total_segments: Int,
    }
}

/// Legacy filters, each with the name of its member.
type OlderFilters<'f, 'r> = &'f [(&'static str, Option<&'r Filters<'r>>)];

/// Maximum number of segments, and the highest segment.
const SEGMENTS_MAX: i32 = SCAN_SEGMENTS_MAX as i32;
const SEGMENT_MAX: i32 = SEGMENTS_MAX - 1;

impl PageMembers<'_> {
    /// Rejects members that are missing or out of range, then attributes without a name, which are reported before all
    /// faults of expressions.
    pub(crate) fn check(
        &self,
        segments: &Segments<'_>,
        filters: OlderFilters<'_, '_>,
    ) -> Result<()> {
        self.check_ranges(segments, filters)?;
        let older = given(filters).flat_map(|(_, filters)| filter_values(filters));
        let values = self.values.iter().flat_map(|values| &values.0);
        let mut values = values.map(|(_, value)| value).chain(older);
        let mut listed = self.attributes_to_get.iter().flatten();
        let has_empty_name = listed.any(|name| name.is_empty())
            || values.any(|value| value.fault.as_ref().is_some_and(ValueFault::is_empty_name))
            || self
                .exclusive_start_key
                .as_ref()
                .is_some_and(Attributes::has_empty_name);
        if has_empty_name {
            return Err(empty_name_error(ValidationLayer::Current));
        }
        Ok(())
    }

    /// Rejects forbidden combinations of the common parameters, this legacy filter, and the key conditions of Query.
    pub(crate) fn check_unmixed(
        &self,
        filter: (&'static str, bool),
        key_conditions: bool,
        key_expression: bool,
    ) -> Result<()> {
        let parameters = Parameters {
            replaced: &[
                ("AttributesToGet", self.attributes_to_get.is_some()),
                filter,
                ("ConditionalOperator", self.conditional_operator.is_some()),
                ("KeyConditions", key_conditions),
            ],
            expressions: &[
                ("ProjectionExpression", self.projection.is_some()),
                ("FilterExpression", self.filter.is_some()),
                ("KeyConditionExpression", key_expression),
            ],
            names: self.names.is_some(),
            values: self.values.is_some(),
        };
        parameters.check(ValidationLayer::Current)?;
        // Projections contain no values.
        if parameters.values && self.filter.is_none() && !key_expression {
            return Err(RequestError::validation(
                "ExpressionAttributeValues can only be specified when using expressions",
            ));
        }
        Ok(())
    }

    fn check_ranges(&self, segments: &Segments<'_>, filters: OlderFilters<'_, '_>) -> Result<()> {
        if self.needs_older_layer(segments, filters) {
            return Ok(self.older_faults(segments, filters).into_result()?);
        }
        self.range_faults(segments).into_result()?;
        let mut faults = Faults::new();
        if let Some(name) = &self.table_name {
            faults.table_name(name);
        }
        return_capacity_faults(&mut faults, &self.return_capacity);
        attributes_to_get_faults(&mut faults, self.attributes_to_get.as_deref());
        Ok(faults.into_result()?)
    }

    fn needs_older_layer(&self, segments: &Segments<'_>, filters: OlderFilters<'_, '_>) -> bool {
        let numbers = [self.limit, segments.segment, segments.total_segments];
        self.table_name.is_none()
            || numbers.into_iter().flatten().any(|number| number.coerced)
            || given(filters).any(|(_, filters)| lacks_operator(filters))
    }

    fn older_faults(&self, segments: &Segments<'_>, filters: OlderFilters<'_, '_>) -> Faults {
        let mut faults = Faults::new();
        enum_faults(&mut faults, &self.select, "select", &SELECTS);
        if let Some(name) = &self.index_name {
            faults.pattern(name, "indexName");
            faults.length(name, "indexName", INDEX_NAME_CHARS);
        }
        if let Some(total) = segments.total_segments {
            faults.value(total.value, "totalSegments", 1..=SEGMENTS_MAX);
        }
        return_capacity_faults(&mut faults, &self.return_capacity);
        match &self.table_name {
            None => faults.add_null("tableName"),
            Some(name) => faults.length(name, "tableName", 1..=usize::MAX),
        }
        let keyword = &self.conditional_operator;
        enum_faults(&mut faults, keyword, "conditionalOperator", &["OR", "AND"]);
        for (member, filters) in given(filters) {
            operator_faults(&mut faults, member, filters);
        }
        if let Some(segment) = segments.segment {
            faults.value(segment.value, "segment", 0..=SEGMENT_MAX);
        }
        if let Some(limit) = self.limit {
            faults.value(limit.value, "limit", 1..=i32::MAX);
        }
        attributes_to_get_faults(&mut faults, self.attributes_to_get.as_deref());
        faults
    }

    fn range_faults(&self, segments: &Segments<'_>) -> Faults {
        let mut faults = Faults::new();
        if let Some(limit) = self.limit {
            faults.value_hidden(limit.value, "Limit", 1..=i32::MAX);
        }
        if let Some(segment) = segments.segment {
            faults.value_hidden(segment.value, "Segment", 0..=SEGMENT_MAX);
        }
        if let Some(total) = segments.total_segments {
            faults.value_hidden(total.value, "TotalSegments", 1..=SEGMENTS_MAX);
        }
        if let Some(name) = &self.index_name {
            faults.length_hidden(name, "IndexName", INDEX_NAME_CHARS);
        }
        if let Some(name) = &self.table_name {
            faults.length_hidden(name, "TableName", 1..=usize::MAX);
        }
        faults
    }
}

/// Returns the filters that are present.
fn given<'f, 'r>(
    filters: OlderFilters<'f, 'r>,
) -> impl Iterator<Item = (&'static str, &'r Filters<'r>)> + use<'f, 'r> {
    let filters = filters.iter();
    filters.filter_map(|(member, filters)| Some((*member, (*filters)?)))
}
