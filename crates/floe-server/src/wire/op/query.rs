//! Query.

use floe_store::json::{ValidationLayer, write_item};
use floe_store::op::Query;
use floe_store::{Engine, Error};

use crate::wire::legacy::filter::{self, Filters};
use crate::wire::{
    Int, Map, PageMembers, RequestError, Result, Segments, Str, members, request_and_layer,
    return_capacity, write_page,
};

members! {
    Request<'a> {
        "KeyConditions" => key_conditions: Filters<'a>,
        "QueryFilter" => query_filter: Filters<'a>,
        "ScanIndexForward" => scan_index_forward: bool,
        "KeyConditionExpression" => key_condition_expression: Str<'a>,
        ..page: PageMembers<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check(&request)?;
    let table_name = request.page.table_name.take().unwrap_or_default();
    let has_query_filter = request.query_filter.is_some();
    let query = operation(request, &table_name, layer)?;
    let select = query.select;
    let page = engine.query(query).await;
    let mut page = if has_query_filter {
        page.map_err(reword_for_query_filter)?
    } else {
        page?
    };
    table_name.restore_names(&mut page.consumed);
    Ok(write_page(&page, select, write_item))
}

/// Rewords an error for `QueryFilter`. The engine knows only filter expressions.
fn reword_for_query_filter(error: Error) -> Error {
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

fn operation(request: Request<'_>, table_name: &str, layer: ValidationLayer) -> Result<Query> {
    let mut page = request.page;
    let parameters = page.begin(request.query_filter, layer)?;
    let filters = request
        .key_conditions
        .filter(|filters| !filters.0.is_empty());
    if filters.is_none() && request.key_condition_expression.is_none() {
        return Err(RequestError::validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
        ));
    }
    let mut parser = parameters.placeholders.parser();
    let selection = page.parse(&mut parser, parameters.filter, parameters.listed)?;
    let key_condition = match &request.key_condition_expression {
        Some(text) => parser.key_condition(text)?,
        None => filter::key_condition(filters.unwrap_or(Map(Vec::new())), layer)?,
    };
    parser.finish()?;
    Ok(Query {
        table_name: table_name.to_owned(),
        index_name: page.index_name.map(Str::into_owned),
        key_condition,
        filter: selection.filter,
        projection: selection.projection,
        select: selection.select,
        limit: page.limit.map(Int::count),
        start_key: parameters.start_key,
        forward: request.scan_index_forward.unwrap_or(true),
        consistent: page.consistent_read.unwrap_or(false),
        return_capacity: return_capacity(&page.return_capacity),
    })
}

/// Checks the members alone. `KeyConditions` can be combined with expressions for everything else.
fn check(request: &Request<'_>) -> Result<()> {
    let filters = [
        ("queryFilter", request.query_filter.as_ref()),
        ("keyConditions", request.key_conditions.as_ref()),
    ];
    request.page.check(&Segments::default(), &filters)?;
    let query_filter = ("QueryFilter", request.query_filter.is_some());
    let key_expression = request.key_condition_expression.is_some();
    let key_conditions = request.key_conditions.is_some() && key_expression;
    let page = &request.page;
    page.check_unmixed(query_filter, key_conditions, key_expression)
}
