//! Pages of queries and scans.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::{query, scan};
use aws_sdk_dynamodb::types;
use floe_store::op::{Page, Query, Scan};
use floe_store::{Item, Result};

use super::capacity::{self, AccessKind};
use super::expression::Expressions;
use super::value::{attributes, item, items};
use super::{Client, limit, send};
use crate::retry::AttemptResult;

/// Adds the common parameters of queries and scans, sends the request, and converts the response.
macro_rules! send_page {
    ($client:ident, $input:ident, $request:expr, $expressions:expr) => {{
        let mut expressions = $expressions;
        let filter = expressions.condition($input.filter.as_ref());
        let projection = expressions.projection($input.projection.as_ref());
        let request = $request
            .table_name($client.with_prefix(&$input.table_name))
            .set_index_name($input.index_name.clone())
            .set_filter_expression(filter)
            .set_projection_expression(projection)
            .set_expression_attribute_names(expressions.names())
            .set_expression_attribute_values(expressions.values())
            .set_select($input.select.map(|select| select.as_str().into()))
            .set_limit(limit($input.limit))
            .set_exclusive_start_key($input.start_key.as_ref().map(attributes))
            .consistent_read($input.consistent)
            .set_return_consumed_capacity(capacity::requested($input.return_capacity));
        let response = send!($client.tables, request, &[&$input.table_name])?;
        let (last, consumed) = (response.last_evaluated_key, response.consumed_capacity);
        Ok(Page {
            items: items(response.items.unwrap_or_default())?,
            count: usize::try_from(response.count).unwrap_or_default(),
            scanned_count: usize::try_from(response.scanned_count).unwrap_or_default(),
            last_key: last.map(last_key).transpose()?.flatten(),
            consumed: $client.consumed(consumed, AccessKind::Read, $input.return_capacity),
        })
    }};
}

impl Client {
    pub(crate) async fn query(&self, input: &Query) -> AttemptResult<Page> {
        let mut expressions = Expressions::default();
        let request = query::QueryInput::builder()
            .key_condition_expression(expressions.key_condition(&input.key_condition))
            .scan_index_forward(input.forward);
        send_page!(self, input, request, expressions)
    }

    pub(crate) async fn scan(&self, input: &Scan) -> AttemptResult<Page> {
        let request = scan::ScanInput::builder()
            .set_segment(limit(input.segment.map(|segment| segment.index)))
            .set_total_segments(limit(input.segment.map(|segment| segment.total)));
        send_page!(self, input, request, Expressions::default())
    }
}

/// Converts the last key. DynamoDB documents an empty key as the end.
fn last_key(response: HashMap<String, types::AttributeValue>) -> Result<Option<Item>> {
    Ok(Some(item(response)?).filter(|key| !key.is_empty()))
}
