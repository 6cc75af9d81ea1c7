//! Query.

use floe_store::json::{Layer, write_item};
use floe_store::op::Query;
use floe_store::{Engine, Error};

use crate::wire::expressions::{Parameters, Placeholders};
use crate::wire::legacy::filter::{self, Filters};
use crate::wire::page::{
    Int, Members, Parts, check_names, check_values_wanted, start_key, write_page,
};
use crate::wire::parameter::{TableName, return_capacity};
use crate::wire::read::{Map, Str, members, request_and_layer};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::value::{Attribute, Attributes};

members! {
    Request<'a> as "QueryInput" {
        "TableName" => table_name: TableName<'a>,
        "IndexName" => index_name: Str<'a>,
        "Select" => select: Str<'a>,
        "AttributesToGet" => attributes_to_get: Vec<Str<'a>>,
        "Limit" => limit: Int,
        "ConsistentRead" => consistent_read: bool,
        "KeyConditions" => key_conditions: Filters<'a>,
        "QueryFilter" => query_filter: Filters<'a>,
        "ConditionalOperator" => conditional_operator: Str<'a>,
        "ScanIndexForward" => scan_index_forward: bool,
        "ExclusiveStartKey" => exclusive_start_key: Attributes,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        "ProjectionExpression" => projection_expression: Str<'a>,
        "FilterExpression" => filter_expression: Str<'a>,
        "KeyConditionExpression" => key_condition_expression: Str<'a>,
        "ExpressionAttributeNames" => expression_attribute_names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => expression_attribute_values: Map<'a, Attribute>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check(&request)?;
    let table_name = request.table_name.take().unwrap_or_default();
    let of_older_kind = request.query_filter.is_some();
    let query = operation(request, &table_name, layer)?;
    let select = query.select;
    let page = engine.query(query).await;
    let mut page = match of_older_kind {
        true => page.map_err(in_words_of_query_filter)?,
        false => page?,
    };
    table_name.name_cost(&mut page.consumed);
    Ok(write_page(&page, select, write_item))
}

/// The engine knows only one kind of filter.
fn in_words_of_query_filter(error: Error) -> Error {
    match error {
        Error::Validation(message) => Error::Validation(
            match message.strip_prefix("Filter Expression can only contain") {
                Some(rest) => format!("QueryFilter can only contain{rest}"),
                None => message,
            },
        ),
        other => other,
    }
}

fn operation(request: Request<'_>, table_name: &str, layer: Layer) -> Result<Query> {
    let placeholders = Placeholders::new(
        request.expression_attribute_names,
        request.expression_attribute_values,
        layer,
    )?;
    let conditional_operator = request.conditional_operator.as_deref();
    let query_filter = filter::filter(request.query_filter, conditional_operator, layer)?;
    let parts = Parts {
        select: request.select.as_deref(),
        attributes_to_get: request.attributes_to_get.as_deref(),
        projection: request.projection_expression.as_deref(),
        filter: request.filter_expression.as_deref(),
        of_index: request.index_name.is_some(),
    };
    let listed = parts.listed()?;
    let start_key = start_key(request.exclusive_start_key, layer)?;
    let filters = request
        .key_conditions
        .filter(|filters| !filters.0.is_empty());
    if filters.is_none() && request.key_condition_expression.is_none() {
        return Err(Refusal::validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
        ));
    }
    let mut parser = placeholders.parser();
    let wanted = parts.parse(&mut parser, query_filter, listed)?;
    let key_condition = match &request.key_condition_expression {
        Some(text) => parser.key_condition(text)?,
        None => filter::key_condition(filters.unwrap_or(Map(Vec::new())), layer)?,
    };
    parser.finish()?;
    Ok(Query {
        table_name: table_name.to_owned(),
        index_name: request.index_name.map(Str::into_owned),
        key_condition,
        filter: wanted.filter,
        projection: wanted.projection,
        select: wanted.select,
        limit: request.limit.map(Int::count),
        start_key,
        forward: request.scan_index_forward.unwrap_or(true),
        consistent: request.consistent_read.unwrap_or(false),
        return_capacity: return_capacity(request.return_consumed_capacity.as_deref()),
    })
}

/// What can be told from the members alone.
fn check(request: &Request<'_>) -> Result<()> {
    let filters = [
        ("queryFilter", request.query_filter.as_ref()),
        ("keyConditions", request.key_conditions.as_ref()),
    ];
    let members = Members {
        table_name: request.table_name.as_deref(),
        index_name: request.index_name.as_deref(),
        attributes_to_get: request.attributes_to_get.as_deref(),
        select: request.select.as_deref(),
        limit: request.limit,
        return_capacity: request.return_consumed_capacity.as_deref(),
        conditional_operator: request.conditional_operator.as_deref(),
        filters,
        ..Members::default()
    };
    members.check()?;
    check_names(
        request.attributes_to_get.as_deref(),
        request.exclusive_start_key.as_ref(),
        request.expression_attribute_values.as_ref(),
        &filters.map(|(_, filters)| filters),
    )?;
    check_mixture(request)
}

/// Conditions of the older kind on the key go with expressions for everything else.
fn check_mixture(request: &Request<'_>) -> Result<()> {
    let filter = request.filter_expression.is_some();
    let key_condition = request.key_condition_expression.is_some();
    let key_conditions = request.key_conditions.is_some() && key_condition;
    let parameters = Parameters {
        replaced: &[
            ("AttributesToGet", request.attributes_to_get.is_some()),
            ("QueryFilter", request.query_filter.is_some()),
            (
                "ConditionalOperator",
                request.conditional_operator.is_some(),
            ),
            ("KeyConditions", key_conditions),
        ],
        expressions: &[
            (
                "ProjectionExpression",
                request.projection_expression.is_some(),
            ),
            ("FilterExpression", filter),
            ("KeyConditionExpression", key_condition),
        ],
        names: request.expression_attribute_names.is_some(),
        values: request.expression_attribute_values.is_some(),
    };
    parameters.check(Layer::Current)?;
    check_values_wanted(parameters.values, filter || key_condition)
}
