//! PutItem.

use floe_store::Engine;
use floe_store::json::Layer;
use floe_store::op::{Faults, PutItem, WriteItem};

use crate::wire::expressions::{Parameters, Placeholders};
use crate::wire::legacy::ExpectedAttributeValue;
use crate::wire::parameter::{
    TableName, return_capacity, return_capacity_faults, return_collection, return_collection_faults,
};
use crate::wire::read::{Map, Str, members, request_and_layer};
use crate::wire::refusal::Result;
use crate::wire::single_write::{
    condition, conditional_operator_faults, expected_condition, return_on_failure_faults,
    return_values, return_values_faults, table_name_faults, write_answer,
};
use crate::wire::value::{Attribute, Attributes};
use crate::wire::voice::Voice;

members! {
    Request<'a> as "PutItemInput" {
        "TableName" => table_name: TableName<'a>,
        "Item" => item: Attributes,
        "Expected" => expected: Map<'a, ExpectedAttributeValue<'a>>,
        "ReturnValues" => return_values: Str<'a>,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: Str<'a>,
        "ReturnValuesOnConditionCheckFailure" => return_on_failure: Str<'a>,
        "ConditionalOperator" => conditional_operator: Str<'a>,
        "ConditionExpression" => condition_expression: Str<'a>,
        "ExpressionAttributeNames" => expression_attribute_names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => expression_attribute_values: Map<'a, Attribute>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request, layer)?;
    let table_name = request.table_name.take().unwrap_or_default();
    let operation = operation(request, &table_name, Voice::of_single_write(layer))?;
    let mut output = engine.write_item(WriteItem::Put(operation)).await?;
    table_name.name_cost(&mut output.consumed);
    Ok(write_answer(&output))
}

fn check_members(request: &Request<'_>, layer: Layer) -> Result<()> {
    let mut faults = Faults::new();
    table_name_faults(&mut faults, request.table_name.as_deref(), layer)?;
    if request.item.is_none() {
        faults.add_null("item");
    }
    return_capacity_faults(&mut faults, request.return_consumed_capacity.as_deref());
    let operator = request.conditional_operator.as_deref();
    conditional_operator_faults(&mut faults, operator, layer);
    return_values_faults(&mut faults, request.return_values.as_deref(), layer);
    let word = request.return_item_collection_metrics.as_deref();
    return_collection_faults(&mut faults, word);
    return_on_failure_faults(&mut faults, request.return_on_failure.as_deref());
    Ok(faults.into_result()?)
}

fn operation(request: Request<'_>, table_name: &str, voice: Voice) -> Result<PutItem> {
    request.parameters(voice)?;
    let item = request.item.unwrap_or_default().sound(voice)?;
    let placeholders = Placeholders::new(
        request.expression_attribute_names,
        request.expression_attribute_values,
        voice,
    )?;
    let mut parser = placeholders.parser();
    let condition = condition(&mut parser, request.condition_expression.as_deref(), voice)?;
    parser.finish().map_err(|error| voice.refuse_error(error))?;
    let mut put = PutItem {
        condition,
        return_values: return_values(request.return_values.as_deref()),
        return_old_on_failure: request.return_on_failure.as_deref() == Some("ALL_OLD"),
        return_capacity: return_capacity(request.return_consumed_capacity.as_deref()),
        return_collection: return_collection(request.return_item_collection_metrics.as_deref()),
        ..PutItem::new(table_name, item)
    };
    let operator = request.conditional_operator.as_deref();
    if request.expected.is_some() || operator.is_some() {
        // What is wrong with the item comes first.
        put.validate()?;
        put.condition = expected_condition(request.expected, operator, voice)?;
    }
    Ok(put)
}

impl Request<'_> {
    /// Checks which parameters there are.
    fn parameters(&self, voice: Voice) -> Result<()> {
        Parameters {
            replaced: &[
                ("Expected", self.expected.is_some()),
                ("ConditionalOperator", self.conditional_operator.is_some()),
            ],
            expressions: &[("ConditionExpression", self.condition_expression.is_some())],
            names: self.expression_attribute_names.is_some(),
            values: self.expression_attribute_values.is_some(),
        }
        .check(voice)
    }
}
