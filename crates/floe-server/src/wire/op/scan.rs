//! Scan.

use floe_store::Engine;
use floe_store::json::Layer;
use floe_store::op::{Scan, Segment};

use crate::wire::expressions::{Parameters, Placeholders};
use crate::wire::legacy::filter::{self, Filters};
use crate::wire::page::{
    Int, Members, Parts, check_names, check_values_wanted, start_key, write_page,
};
use crate::wire::parameter::{TableName, return_capacity};
use crate::wire::read::{Map, Str, members, request_and_layer};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::value::{Attribute, Attributes};
use crate::wire::write::write_item_hashed;

members! {
    Request<'a> as "ScanInput" {
        "TableName" => table_name: TableName<'a>,
        "IndexName" => index_name: Str<'a>,
        "Select" => select: Str<'a>,
        "AttributesToGet" => attributes_to_get: Vec<Str<'a>>,
        "Limit" => limit: Int,
        "Segment" => segment: Int,
        "TotalSegments" => total_segments: Int,
        "ConsistentRead" => consistent_read: bool,
        "ScanFilter" => scan_filter: Filters<'a>,
        "ConditionalOperator" => conditional_operator: Str<'a>,
        "ExclusiveStartKey" => exclusive_start_key: Attributes,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        "ProjectionExpression" => projection_expression: Str<'a>,
        "FilterExpression" => filter_expression: Str<'a>,
        "ExpressionAttributeNames" => expression_attribute_names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => expression_attribute_values: Map<'a, Attribute>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check(&request)?;
    let table_name = request.table_name.take().unwrap_or_default();
    let scan = operation(request, &table_name, layer)?;
    let select = scan.select;
    let mut page = engine.scan(scan).await?;
    table_name.name_cost(&mut page.consumed);
    Ok(write_page(&page, select, write_item_hashed))
}

fn operation(request: Request<'_>, table_name: &str, layer: Layer) -> Result<Scan> {
    let placeholders = Placeholders::new(
        request.expression_attribute_names,
        request.expression_attribute_values,
        layer,
    )?;
    let conditional_operator = request.conditional_operator.as_deref();
    let scan_filter = filter::filter(request.scan_filter, conditional_operator, layer)?;
    let parts = Parts {
        select: request.select.as_deref(),
        attributes_to_get: request.attributes_to_get.as_deref(),
        projection: request.projection_expression.as_deref(),
        filter: request.filter_expression.as_deref(),
        of_index: request.index_name.is_some(),
    };
    let listed = parts.listed()?;
    let start_key = start_key(request.exclusive_start_key, layer)?;
    let mut parser = placeholders.parser();
    let wanted = parts.parse(&mut parser, scan_filter, listed)?;
    let segment = segment(request.segment, request.total_segments)?;
    parser.finish()?;
    Ok(Scan {
        table_name: table_name.to_owned(),
        index_name: request.index_name.map(Str::into_owned),
        filter: wanted.filter,
        projection: wanted.projection,
        select: wanted.select,
        limit: request.limit.map(Int::count),
        start_key,
        segment,
        consistent: request.consistent_read.unwrap_or(false),
        return_capacity: return_capacity(request.return_consumed_capacity.as_deref()),
    })
}

/// What can be told from the members alone.
fn check(request: &Request<'_>) -> Result<()> {
    let scan_filter = request.scan_filter.as_ref();
    let members = Members {
        table_name: request.table_name.as_deref(),
        index_name: request.index_name.as_deref(),
        attributes_to_get: request.attributes_to_get.as_deref(),
        select: request.select.as_deref(),
        limit: request.limit,
        segment: request.segment,
        total_segments: request.total_segments,
        return_capacity: request.return_consumed_capacity.as_deref(),
        conditional_operator: request.conditional_operator.as_deref(),
        filters: [("scanFilter", scan_filter), ("", None)],
    };
    members.check()?;
    check_names(
        request.attributes_to_get.as_deref(),
        request.exclusive_start_key.as_ref(),
        request.expression_attribute_values.as_ref(),
        &[scan_filter],
    )?;
    let filter = request.filter_expression.is_some();
    let parameters = Parameters {
        replaced: &[
            ("AttributesToGet", request.attributes_to_get.is_some()),
            ("ScanFilter", scan_filter.is_some()),
            (
                "ConditionalOperator",
                request.conditional_operator.is_some(),
            ),
        ],
        expressions: &[
            (
                "ProjectionExpression",
                request.projection_expression.is_some(),
            ),
            ("FilterExpression", filter),
        ],
        names: request.expression_attribute_names.is_some(),
        values: request.expression_attribute_values.is_some(),
    };
    parameters.check(Layer::Current)?;
    check_values_wanted(parameters.values, filter)
}

/// The segment, of which both numbers are given or none.
fn segment(index: Option<Int>, total: Option<Int>) -> Result<Option<Segment>> {
    match (index, total) {
        (Some(index), Some(total)) => Ok(Some(Segment {
            index: index.count(),
            total: total.count(),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Refusal::validation(
            "The TotalSegments parameter is required but was not present in the request when Segment parameter is \
             present",
        )),
        (None, Some(_)) => Err(Refusal::validation(
            "The Segment parameter is required but was not present in the request when parameter TotalSegments is \
             present",
        )),
    }
}
