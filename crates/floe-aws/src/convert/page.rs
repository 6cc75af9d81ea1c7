//! Pages of queries and scans.

use std::collections::HashMap;

use aws_sdk_dynamodb::operation::{query, scan};
use aws_sdk_dynamodb::types;
use floe_store::op::{Page, Query, Scan};
use floe_store::{Item, Result};

use super::capacity::{self, Kind};
use super::expression::Expressions;
use super::value::{attributes, item, items};
use super::{Client, limit, sent};
use crate::retry::Answer;

/// Adds to the request of a page what queries and scans have in common, sends it, and reads the answer.
macro_rules! send_page {
    ($client:ident, $input:ident, $request:expr, $expressions:expr) => {{
        let mut expressions = $expressions;
        let filter = expressions.condition($input.filter.as_ref());
        let projection = expressions.projection($input.projection.as_ref());
        let request = $request
            .table_name($client.outside(&$input.table_name))
            .set_index_name($input.index_name.clone())
            .set_filter_expression(filter)
            .set_projection_expression(projection)
            .set_expression_attribute_names(expressions.names())
            .set_expression_attribute_values(expressions.values())
            .set_select($input.select.map(|select| select.as_str().into()))
            .set_limit(limit($input.limit))
            .set_exclusive_start_key($input.start_key.as_ref().map(attributes))
            .consistent_read($input.consistent)
            .set_return_consumed_capacity(capacity::wanted($input.return_capacity));
        let answer = sent!($client.tables, request, &[&$input.table_name])?;
        let (last, consumed) = (answer.last_evaluated_key, answer.consumed_capacity);
        Ok(Page {
            items: items(answer.items.unwrap_or_default())?,
            count: usize::try_from(answer.count).unwrap_or_default(),
            scanned_count: usize::try_from(answer.scanned_count).unwrap_or_default(),
            last_key: last.map(last_key).transpose()?.flatten(),
            consumed: $client.consumed(consumed, Kind::Read, $input.return_capacity),
        })
    }};
}

impl Client {
    pub(crate) async fn query(&self, input: &Query) -> Answer<Page> {
        let mut expressions = Expressions::default();
        let request = query::QueryInput::builder()
            .key_condition_expression(expressions.key_condition(&input.key_condition))
            .scan_index_forward(input.forward);
        send_page!(self, input, request, expressions)
    }

    pub(crate) async fn scan(&self, input: &Scan) -> Answer<Page> {
        let request = scan::ScanInput::builder()
            .set_segment(limit(input.segment.map(|segment| segment.index)))
            .set_total_segments(limit(input.segment.map(|segment| segment.total)));
        send_page!(self, input, request, Expressions::default())
    }
}

/// An empty key is the end, as DynamoDB documents it.
fn last_key(answer: HashMap<String, types::AttributeValue>) -> Result<Option<Item>> {
    Ok(Some(item(answer)?).filter(|key| !key.is_empty()))
}
