//! Transactions.

use aws_sdk_dynamodb::operation::{transact_get_items, transact_write_items};
use aws_sdk_dynamodb::types;
use floe_store::Result;
use floe_store::op::{
    TransactGet, TransactGetItems, TransactGetItemsOutput, TransactWrite, TransactWriteItems,
    TransactWriteItemsOutput,
};

use super::capacity::{self, AccessKind};
use super::expression::Expressions;
use super::item::old_on_failure;
use super::value::{attributes, item};
use super::{Client, built, send};
use crate::retry::AttemptResult;

/// Adds the common members of all actions.
macro_rules! action {
    ($client:ident, $write:ident, $action:expr, $condition:expr, $expressions:ident) => {{
        let condition = $expressions.condition($condition);
        let old = old_on_failure($write.return_old_on_failure);
        let action = $action
            .table_name($client.with_prefix(&$write.table_name))
            .set_condition_expression(condition)
            .set_expression_attribute_names($expressions.names())
            .set_expression_attribute_values($expressions.values())
            .set_return_values_on_condition_check_failure(old);
        built(action.build())?
    }};
}

impl Client {
    pub(crate) async fn transact_get_items(
        &self,
        input: &TransactGetItems,
    ) -> AttemptResult<TransactGetItemsOutput> {
        let gets: Result<Vec<_>> = input.gets.iter().map(|get| self.get(get)).collect();
        let request = transact_get_items::TransactGetItemsInput::builder()
            .set_transact_items(Some(gets?))
            .set_return_consumed_capacity(capacity::requested(input.return_capacity));
        let tables: Vec<&str> = input.gets.iter().map(|get| &*get.table_name).collect();
        let response = send!(self.tables, request, &tables)?;
        let found = response.responses.unwrap_or_default().into_iter();
        let items: Result<Vec<_>> = found.map(|one| one.item.map(item).transpose()).collect();
        Ok(TransactGetItemsOutput {
            items: items?,
            consumed: self.consumed_list(
                response.consumed_capacity,
                AccessKind::Read,
                input.return_capacity,
            ),
        })
    }

    /// Sends a transaction once. Without a token from the caller the SDK generates one, which is never reused.
    pub(crate) async fn transact_write_items(
        &self,
        input: &TransactWriteItems,
    ) -> AttemptResult<TransactWriteItemsOutput> {
        let actions = input.actions.iter().map(|action| self.action(action));
        let actions: Result<Vec<_>> = actions.collect();
        let collections = capacity::requested_collections(input.return_collection);
        let request = transact_write_items::TransactWriteItemsInput::builder()
            .set_transact_items(Some(actions?))
            .set_client_request_token(input.token.clone())
            .set_return_consumed_capacity(capacity::requested(input.return_capacity))
            .set_return_item_collection_metrics(collections);
        let tables: Vec<&str> = input.actions.iter().map(|one| one.table_name()).collect();
        let response = send!(self.tables, request, &tables)?;
        Ok(TransactWriteItemsOutput {
            consumed: self.consumed_list(
                response.consumed_capacity,
                AccessKind::Write,
                input.return_capacity,
            ),
            collections: capacity::collections(response.item_collection_metrics, &self.names)?,
        })
    }

    fn get(&self, get: &TransactGet) -> Result<types::TransactGetItem> {
        let mut expressions = Expressions::default();
        let projection = expressions.projection(get.projection.as_ref());
        let get = types::Get::builder()
            .table_name(self.with_prefix(&get.table_name))
            .set_key(Some(attributes(&get.key)))
            .set_projection_expression(projection)
            .set_expression_attribute_names(expressions.names());
        let item = types::TransactGetItem::builder().get(built(get.build())?);
        Ok(item.build())
    }

    fn action(&self, action: &TransactWrite) -> Result<types::TransactWriteItem> {
        let item = types::TransactWriteItem::builder();
        let mut expressions = Expressions::default();
        let item = match action {
            TransactWrite::Put(put) => {
                let request = types::Put::builder().set_item(Some(attributes(&put.item)));
                let condition = put.condition.as_ref();
                item.put(action!(self, put, request, condition, expressions))
            }
            TransactWrite::Update(update) => {
                // Updates that change nothing were rejected before.
                let changes = expressions.update(&update.update).unwrap_or_default();
                let request = types::Update::builder().update_expression(changes);
                let request = request.set_key(Some(attributes(&update.key)));
                let condition = update.condition.as_ref();
                item.update(action!(self, update, request, condition, expressions))
            }
            TransactWrite::Delete(delete) => {
                let request = types::Delete::builder().set_key(Some(attributes(&delete.key)));
                let condition = delete.condition.as_ref();
                item.delete(action!(self, delete, request, condition, expressions))
            }
            TransactWrite::Check(check) => {
                let key = Some(attributes(&check.key));
                let request = types::ConditionCheck::builder().set_key(key);
                let condition = Some(&check.condition);
                item.condition_check(action!(self, check, request, condition, expressions))
            }
        };
        Ok(item.build())
    }
}
