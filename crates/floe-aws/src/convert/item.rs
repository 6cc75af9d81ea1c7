//! The operations on one item.

use aws_sdk_dynamodb::operation::{delete_item, get_item, put_item, update_item};
use aws_sdk_dynamodb::types;
use floe_store::op::{
    DeleteItem, GetItem, GetItemOutput, PutItem, ReturnValues, UpdateItem, WriteItem,
    WriteItemOutput,
};

use super::Client;
use super::capacity::{self, Kind};
use super::expression::Expressions;
use super::value::{attributes, item};
use crate::retry::Failure;

/// Adds to the request of a write what all three kinds have, sends it, and reads the answer.
macro_rules! send_write {
    ($client:ident, $write:ident, $request:expr, $expressions:expr) => {{
        let mut expressions = $expressions;
        let condition = expressions.condition($write.condition.as_ref());
        let old = old_on_failure($write.return_old_on_failure);
        let collection = capacity::wanted_collections($write.return_collection);
        let request = $request
            .table_name($client.outside(&$write.table_name))
            .set_condition_expression(condition)
            .set_expression_attribute_names(expressions.names())
            .set_expression_attribute_values(expressions.values())
            .set_return_values(return_values($write.return_values))
            .set_return_values_on_condition_check_failure(old)
            .set_return_consumed_capacity(capacity::wanted($write.return_capacity))
            .set_return_item_collection_metrics(collection);
        let answer = request.send_with($client.tables()).await;
        let answer = $client.answered(answer, &[&$write.table_name])?;
        let consumed = answer.consumed_capacity;
        let collection = answer.item_collection_metrics;
        Ok(WriteItemOutput {
            attributes: answer.attributes.map(item).transpose()?,
            consumed: $client.consumed(consumed, Kind::Write, $write.return_capacity),
            collection: collection.map(capacity::collection).transpose()?,
        })
    }};
}

impl Client {
    pub(crate) async fn get_item(&self, input: &GetItem) -> Result<GetItemOutput, Failure> {
        let mut expressions = Expressions::default();
        let projection = expressions.projection(input.projection.as_ref());
        let request = get_item::GetItemInput::builder()
            .table_name(self.outside(&input.table_name))
            .set_key(Some(attributes(&input.key)))
            .consistent_read(input.consistent)
            .set_projection_expression(projection)
            .set_expression_attribute_names(expressions.names())
            .set_return_consumed_capacity(capacity::wanted(input.return_capacity));
        let answer = request.send_with(self.tables()).await;
        let answer = self.answered(answer, &[&input.table_name])?;
        let consumed = answer.consumed_capacity;
        Ok(GetItemOutput {
            item: answer.item.map(item).transpose()?,
            consumed: self.consumed(consumed, Kind::Read, input.return_capacity),
        })
    }

    pub(crate) async fn write_item(&self, input: &WriteItem) -> Result<WriteItemOutput, Failure> {
        match input {
            WriteItem::Put(put) => self.put_item(put).await,
            WriteItem::Update(update) => self.update_item(update).await,
            WriteItem::Delete(delete) => self.delete_item(delete).await,
        }
    }

    async fn put_item(&self, put: &PutItem) -> Result<WriteItemOutput, Failure> {
        let request = put_item::PutItemInput::builder().set_item(Some(attributes(&put.item)));
        send_write!(self, put, request, Expressions::default())
    }

    async fn update_item(&self, update: &UpdateItem) -> Result<WriteItemOutput, Failure> {
        let mut expressions = Expressions::default();
        let request = update_item::UpdateItemInput::builder()
            .set_key(Some(attributes(&update.key)))
            .set_update_expression(expressions.update(&update.update));
        send_write!(self, update, request, expressions)
    }

    async fn delete_item(&self, delete: &DeleteItem) -> Result<WriteItemOutput, Failure> {
        let request =
            delete_item::DeleteItemInput::builder().set_key(Some(attributes(&delete.key)));
        send_write!(self, delete, request, Expressions::default())
    }
}

/// Which attributes a write is to return, if any.
fn return_values(which: ReturnValues) -> Option<types::ReturnValue> {
    match which {
        ReturnValues::None => None,
        ReturnValues::AllOld => Some(types::ReturnValue::AllOld),
        ReturnValues::UpdatedOld => Some(types::ReturnValue::UpdatedOld),
        ReturnValues::AllNew => Some(types::ReturnValue::AllNew),
        ReturnValues::UpdatedNew => Some(types::ReturnValue::UpdatedNew),
    }
}

/// How a write asks for the item that stood in its way.
pub(super) fn old_on_failure(wanted: bool) -> Option<types::ReturnValuesOnConditionCheckFailure> {
    wanted.then_some(types::ReturnValuesOnConditionCheckFailure::AllOld)
}
