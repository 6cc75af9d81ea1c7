//! Batch requests.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::operation::{batch_get_item, batch_write_item};
use aws_sdk_dynamodb::types;
use floe_store::Result;
use floe_store::op::{
    BatchGetItem, BatchGetItemOutput, BatchWrite, BatchWriteItem, BatchWriteItemOutput,
    KeysAndAttributes,
};

use super::capacity::{self, AccessKind};
use super::expression::Expressions;
use super::value::{attributes, item, items};
use super::{Client, built, by_table, invalid_response, send};
use crate::names::Names;
use crate::retry::AttemptResult;

impl Client {
    pub(crate) async fn batch_get_item(
        &self,
        input: &BatchGetItem,
    ) -> AttemptResult<BatchGetItemOutput> {
        let requests: Result<HashMap<_, _>> = input
            .requests
            .iter()
            .map(|(table, request)| Ok((self.with_prefix(table), keys_and_attributes(request)?)))
            .collect();
        let request = batch_get_item::BatchGetItemInput::builder()
            .set_request_items(Some(requests?))
            .set_return_consumed_capacity(capacity::requested(input.return_capacity));
        let tables: Vec<&str> = input.requests.keys().map(String::as_str).collect();
        let response = send!(self.tables, request, &tables)?;
        Ok(BatchGetItemOutput {
            items: by_table(response.responses, &self.names, items)?,
            unprocessed: unread(response.unprocessed_keys, input, &self.names)?,
            consumed: self.consumed_list(
                response.consumed_capacity,
                AccessKind::Read,
                input.return_capacity,
            ),
        })
    }

    pub(crate) async fn batch_write_item(
        &self,
        input: &BatchWriteItem,
    ) -> AttemptResult<BatchWriteItemOutput> {
        let requests: Result<HashMap<_, _>> = input
            .requests
            .iter()
            .map(|(table, writes)| {
                let writes: Result<Vec<_>> = writes.iter().map(write_request).collect();
                Ok((self.with_prefix(table), writes?))
            })
            .collect();
        let collections = capacity::requested_collections(input.return_collection);
        let request = batch_write_item::BatchWriteItemInput::builder()
            .set_request_items(Some(requests?))
            .set_return_consumed_capacity(capacity::requested(input.return_capacity))
            .set_return_item_collection_metrics(collections);
        let tables: Vec<&str> = input.requests.keys().map(String::as_str).collect();
        let response = send!(self.tables, request, &tables)?;
        Ok(BatchWriteItemOutput {
            unprocessed: by_table(response.unprocessed_items, &self.names, |left| {
                left.into_iter().map(batch_write).collect()
            })?,
            consumed: self.consumed_list(
                response.consumed_capacity,
                AccessKind::Write,
                input.return_capacity,
            ),
            collections: capacity::collections(response.item_collection_metrics, &self.names)?,
        })
    }
}

fn keys_and_attributes(request: &KeysAndAttributes) -> Result<types::KeysAndAttributes> {
    let mut expressions = Expressions::default();
    let projection = expressions.projection(request.projection.as_ref());
    built(
        types::KeysAndAttributes::builder()
            .set_keys(Some(request.keys.iter().map(attributes).collect()))
            .consistent_read(request.consistent)
            .set_projection_expression(projection)
            .set_expression_attribute_names(expressions.names())
            .build(),
    )
}

/// Returns the unread keys. Their projection and consistency are taken from the request.
fn unread(
    response: Option<HashMap<String, types::KeysAndAttributes>>,
    input: &BatchGetItem,
    names: &Names,
) -> Result<BTreeMap<String, KeysAndAttributes>> {
    let response = response.unwrap_or_default().into_iter();
    response
        .map(|(table, left)| {
            let table = names.remove_prefix(table);
            let requested = input.requests.get(&table);
            let requested = requested
                .ok_or_else(|| invalid_response("keys of a table that was not requested"))?;
            let request = KeysAndAttributes {
                keys: items(left.keys)?,
                projection: requested.projection.clone(),
                consistent: requested.consistent,
            };
            Ok((table, request))
        })
        .collect()
}

fn write_request(write: &BatchWrite) -> Result<types::WriteRequest> {
    let request = types::WriteRequest::builder();
    Ok(match write {
        BatchWrite::Put(item) => {
            let put = types::PutRequest::builder().set_item(Some(attributes(item)));
            request.put_request(built(put.build())?).build()
        }
        BatchWrite::Delete(key) => {
            let delete = types::DeleteRequest::builder().set_key(Some(attributes(key)));
            request.delete_request(built(delete.build())?).build()
        }
    })
}

fn batch_write(request: types::WriteRequest) -> Result<BatchWrite> {
    match (request.put_request, request.delete_request) {
        (Some(put), None) => item(put.item).map(BatchWrite::Put),
        (None, Some(delete)) => item(delete.key).map(BatchWrite::Delete),
        _ => Err(invalid_response(
            "a write that is neither a put nor a delete",
        )),
    }
}
