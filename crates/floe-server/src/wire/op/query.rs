//! Query.

use floe_store::json::{Layer, write_item};
use floe_store::op::Query;
use floe_store::{Engine, Error};

use crate::wire::legacy::filter::{self, Filters};
use crate::wire::{
    Int, Map, PageMembers, Refusal, Result, Segments, Str, members, request_and_layer,
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

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check(&request)?;
    let table_name = request.page.table_name.take().unwrap_or_default();
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
    let mut page = request.page;
    let begun = page.begin(request.query_filter, layer)?;
    let filters = request
        .key_conditions
        .filter(|filters| !filters.0.is_empty());
    if filters.is_none() && request.key_condition_expression.is_none() {
        return Err(Refusal::validation(
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
        ));
    }
    let mut parser = begun.placeholders.parser();
    let wanted = page.parse(&mut parser, begun.filter, begun.listed)?;
    let key_condition = match &request.key_condition_expression {
        Some(text) => parser.key_condition(text)?,
        None => filter::key_condition(filters.unwrap_or(Map(Vec::new())), layer)?,
    };
    parser.finish()?;
    Ok(Query {
        table_name: table_name.to_owned(),
        index_name: page.index_name.map(Str::into_owned),
        key_condition,
        filter: wanted.filter,
        projection: wanted.projection,
        select: wanted.select,
        limit: page.limit.map(Int::count),
        start_key: begun.start_key,
        forward: request.scan_index_forward.unwrap_or(true),
        consistent: page.consistent_read.unwrap_or(false),
        return_capacity: return_capacity(&page.return_capacity),
    })
}

/// What is found in the members alone. Conditions of the older kind on the key go with expressions for everything else.
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
