//! UpdateItem.

use floe_store::expr::Update;
use floe_store::json::Layer;
use floe_store::op::{Faults, UpdateItem, WriteItem, validate_table_name};
use floe_store::{Engine, Error};

use crate::wire::expressions::{Parameters, Placeholders};
use crate::wire::legacy::{
    AttributeValueUpdate, ExpectedAttributeValue, attribute_updates, without_expressions,
};
use crate::wire::parameter::{
    TableName, older_table_name_faults, return_capacity, return_capacity_faults, return_collection,
    return_collection_faults,
};
use crate::wire::read::{Map, Str, members, request_and_layer};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::single_write::{
    condition, conditional_operator_faults, expected_condition, return_on_failure_faults,
    return_values, return_values_faults, write_answer,
};
use crate::wire::value::{Attribute, Attributes};
use crate::wire::voice::Voice;

members! {
    Request<'a> as "UpdateItemInput" {
        "TableName" => table_name: TableName<'a>,
        "Key" => key: Attributes,
        "AttributeUpdates" => attribute_updates: Map<'a, AttributeValueUpdate<'a>>,
        "Expected" => expected: Map<'a, ExpectedAttributeValue<'a>>,
        "ReturnValues" => return_values: Str<'a>,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        "ReturnItemCollectionMetrics" => return_item_collection_metrics: Str<'a>,
        "ReturnValuesOnConditionCheckFailure" => return_on_failure: Str<'a>,
        "ConditionalOperator" => conditional_operator: Str<'a>,
        "UpdateExpression" => update_expression: Str<'a>,
        "ConditionExpression" => condition_expression: Str<'a>,
        "ExpressionAttributeNames" => expression_attribute_names: Map<'a, Str<'a>>,
        "ExpressionAttributeValues" => expression_attribute_values: Map<'a, Attribute>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request, layer)?;
    let table_name = request.table_name.take().unwrap_or_default();
    let told: fn(Error) -> Refusal = match request.attribute_updates {
        Some(_) => without_expressions,
        None => Refusal::from,
    };
    let operation = operation(request, &table_name, Voice::of_single_write(layer))?;
    let output = engine.write_item(WriteItem::Update(operation)).await;
    let mut output = output.map_err(told)?;
    table_name.name_cost(&mut output.consumed);
    Ok(write_answer(&output))
}

/// Unlike the other operations, this one tells the name of the table alone, and of the words the first that is none.
fn check_members(request: &Request<'_>, layer: Layer) -> Result<()> {
    let mut faults = Faults::new();
    let returned = request.return_values.as_deref();
    match (request.table_name.as_deref(), &request.key) {
        (_, None) => return check_members_together(request),
        (_, Some(_)) if layer == Layer::Older => return check_members_together(request),
        (None, Some(_)) => {
            faults.add_null("tableName");
            return_values_faults(&mut faults, returned, Layer::Older);
        }
        (Some(""), Some(_)) => validate_table_name("")?,
        (Some(name), Some(_)) => faults.table_name_by_pattern(name),
    }
    faults.into_result()?;
    check_words(request)
}

/// The older layer of validation, which every request without a key falls back to, tells all faults.
fn check_members_together(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    return_capacity_faults(&mut faults, request.return_consumed_capacity.as_deref());
    match (request.table_name.as_deref(), &request.key) {
        (name @ (None | Some("")), _) | (name, Some(_)) => {
            older_table_name_faults(&mut faults, name);
        }
        (Some(_), None) => {}
    }
    let operator = request.conditional_operator.as_deref();
    conditional_operator_faults(&mut faults, operator, Layer::Older);
    let returned = request.return_values.as_deref();
    return_values_faults(&mut faults, returned, Layer::Older);
    return_on_failure_faults(&mut faults, request.return_on_failure.as_deref());
    let word = request.return_item_collection_metrics.as_deref();
    return_collection_faults(&mut faults, word);
    if request.key.is_none() {
        faults.add_null("key");
    }
    Ok(faults.into_result()?)
}

/// Refuses the first word that is none, two of them not in the form of a constraint.
fn check_words(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    return_values_faults(
        &mut faults,
        request.return_values.as_deref(),
        Layer::Current,
    );
    faults.into_result()?;

    let mut faults = Faults::new();
    return_on_failure_faults(&mut faults, request.return_on_failure.as_deref());
    faults.into_bare_result()?;

    let mut faults = Faults::new();
    let word = request.return_item_collection_metrics.as_deref();
    return_collection_faults(&mut faults, word);
    faults.into_result()?;

    let mut faults = Faults::new();
    return_capacity_faults(&mut faults, request.return_consumed_capacity.as_deref());
    Ok(faults.into_bare_result()?)
}

fn operation(request: Request<'_>, table_name: &str, voice: Voice) -> Result<UpdateItem> {
    request.parameters(voice)?;
    let key = request.key.unwrap_or_default().sound(voice)?;
    let attribute_updates = match request.attribute_updates {
        Some(updates) => Some(attribute_updates(updates, voice)?),
        None => None,
    };
    let operator = request.conditional_operator.as_deref();
    let expected = expected_condition(request.expected, operator, voice)?;
    let placeholders = Placeholders::new(
        request.expression_attribute_names,
        request.expression_attribute_values,
        voice,
    )?;
    let mut parser = placeholders.parser();
    let text = request.condition_expression.as_deref();
    if text == Some("") {
        condition(&mut parser, text, voice)?;
    }
    let update = match &request.update_expression {
        Some(text) => Some(
            parser
                .update(text)
                .map_err(|error| voice.refuse_error(error))?,
        ),
        None => attribute_updates,
    };
    let condition = condition(&mut parser, text, voice)?;
    parser.finish().map_err(|error| voice.refuse_error(error))?;
    Ok(UpdateItem {
        weigh_request: request.update_expression.is_some(),
        condition: condition.or(expected),
        return_values: return_values(request.return_values.as_deref()),
        return_old_on_failure: request.return_on_failure.as_deref() == Some("ALL_OLD"),
        return_capacity: return_capacity(request.return_consumed_capacity.as_deref()),
        return_collection: return_collection(request.return_item_collection_metrics.as_deref()),
        ..UpdateItem::new(table_name, key, update.unwrap_or_else(Update::new))
    })
}

impl Request<'_> {
    /// Checks which parameters there are.
    fn parameters(&self, voice: Voice) -> Result<()> {
        Parameters {
            replaced: &[
                ("AttributeUpdates", self.attribute_updates.is_some()),
                ("Expected", self.expected.is_some()),
                ("ConditionalOperator", self.conditional_operator.is_some()),
            ],
            expressions: &[
                ("UpdateExpression", self.update_expression.is_some()),
                ("ConditionExpression", self.condition_expression.is_some()),
            ],
            names: self.expression_attribute_names.is_some(),
            values: self.expression_attribute_values.is_some(),
        }
        .check(voice)
    }
}
