//! Requests about single items.

use aws_sdk_dynamodb::operation::{delete_item, get_item, put_item, update_item};
use aws_sdk_dynamodb::types;
use floe_store::op::{GetItem, GetItemOutput, ReturnValues, WriteItem, WriteItemOutput};

use super::capacity::{self, AccessKind};
use super::expression::Expressions;
use super::value::{attributes, item};
use super::{Client, send};
use crate::retry::AttemptResult;

/// Adds the common parameters of a write request, sends it, and converts the response.
macro_rules! send_write {
    ($client:ident, $write:ident, $request:expr, $expressions:ident) => {{
        let condition = $expressions.condition($write.condition.as_ref());
        let old = old_on_failure($write.return_old_on_failure);
        let collection = capacity::requested_collections($write.return_collection);
        let request = $request
            .table_name($client.with_prefix(&$write.table_name))
            .set_condition_expression(condition)
            .set_expression_attribute_names($expressions.names())
            .set_expression_attribute_values($expressions.values())
            .set_return_values(return_values($write.return_values))
            .set_return_values_on_condition_check_failure(old)
            .set_return_consumed_capacity(capacity::requested($write.return_capacity))
            .set_return_item_collection_metrics(collection);
        let response = send!($client.tables, request, &[&$write.table_name])?;
        let (consumed, collection) = (response.consumed_capacity, response.item_collection_metrics);
        Ok(WriteItemOutput {
            attributes: response.attributes.map(item).transpose()?,
            consumed: $client.consumed(consumed, AccessKind::Write, $write.return_capacity),
            collection: collection.map(capacity::collection).transpose()?,
        })
    }};
}

impl Client {
    pub(crate) async fn get_item(&self, input: &GetItem) -> AttemptResult<GetItemOutput> {
        let mut expressions = Expressions::default();
        let projection = expressions.projection(input.projection.as_ref());
        let request = get_item::GetItemInput::builder()
            .table_name(self.with_prefix(&input.table_name))
            .set_key(Some(attributes(&input.key)))
            .consistent_read(input.consistent)
            .set_projection_expression(projection)
            .set_expression_attribute_names(expressions.names())
            .set_return_consumed_capacity(capacity::requested(input.return_capacity));
        let response = send!(self.tables, request, &[&input.table_name])?;
        let consumed = response.consumed_capacity;
        Ok(GetItemOutput {
            item: response.item.map(item).transpose()?,
            consumed: self.consumed(consumed, AccessKind::Read, input.return_capacity),
        })
    }

    pub(crate) async fn write_item(&self, input: &WriteItem) -> AttemptResult<WriteItemOutput> {
        let mut expressions = Expressions::default();
        match input {
            WriteItem::Put(put) => {
                let attributes = Some(attributes(&put.item));
                let request = put_item::PutItemInput::builder().set_item(attributes);
                send_write!(self, put, request, expressions)
            }
            WriteItem::Update(update) => {
                let request = update_item::UpdateItemInput::builder()
                    .set_key(Some(attributes(&update.key)))
                    .set_update_expression(expressions.update(&update.update));
                send_write!(self, update, request, expressions)
            }
            WriteItem::Delete(delete) => {
                let key = Some(attributes(&delete.key));
                let request = delete_item::DeleteItemInput::builder().set_key(key);
                send_write!(self, delete, request, expressions)
            }
        }
    }
}

/// Converts the kind of returned values, if any.
fn return_values(which: ReturnValues) -> Option<types::ReturnValue> {
    (which != ReturnValues::None).then(|| which.as_str().into())
}

/// Requests the item that made the condition fail.
pub(super) fn old_on_failure(wanted: bool) -> Option<types::ReturnValuesOnConditionCheckFailure> {
    wanted.then_some(types::ReturnValuesOnConditionCheckFailure::AllOld)
}
