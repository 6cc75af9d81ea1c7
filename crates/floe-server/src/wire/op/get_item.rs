//! GetItem.

use floe_store::Engine;
use floe_store::json::{Layer, Writer, write_item};
use floe_store::op::{Faults, GetItem, GetItemOutput};

use crate::wire::expressions::{Parameters, Placeholders};
use crate::wire::legacy::{attributes_to_get, attributes_to_get_faults};
use crate::wire::parameter::{
    TableName, item_table_name_faults, return_capacity, return_capacity_faults,
};
use crate::wire::read::{Map, Str, members, request_and_layer};
use crate::wire::refusal::Result;
use crate::wire::value::Attributes;
use crate::wire::write::{room, write_consumed};

members! {
    Request<'a> as "GetItemInput" {
        "TableName" => table_name: TableName<'a>,
        "Key" => key: Attributes,
        "AttributesToGet" => attributes_to_get: Vec<Str<'a>>,
        "ConsistentRead" => consistent_read: bool,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        "ProjectionExpression" => projection_expression: Str<'a>,
        "ExpressionAttributeNames" => expression_attribute_names: Map<'a, Str<'a>>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request)?;
    let table_name = request.table_name.take().unwrap_or_default();
    let operation = operation(request, &table_name, layer)?;
    let mut output = engine.get_item(operation).await?;
    table_name.name_cost(&mut output.consumed);
    Ok(write(&output))
}

fn check_members(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    if request.key.is_none() {
        faults.add_null("key");
    }
    item_table_name_faults(&mut faults, request.table_name.as_deref())?;
    return_capacity_faults(&mut faults, request.return_consumed_capacity.as_deref());
    attributes_to_get_faults(&mut faults, request.attributes_to_get.as_deref());
    Ok(faults.into_result()?)
}

fn operation(request: Request<'_>, table_name: &str, layer: Layer) -> Result<GetItem> {
    let parameters = Parameters {
        replaced: &[("AttributesToGet", request.attributes_to_get.is_some())],
        expressions: &[(
            "ProjectionExpression",
            request.projection_expression.is_some(),
        )],
        names: request.expression_attribute_names.is_some(),
        values: false,
    };
    parameters.check(layer)?;
    let key = request.key.unwrap_or_default().sound(layer)?;
    let placeholders = Placeholders::new(request.expression_attribute_names, None, layer)?;
    let mut parser = placeholders.parser();
    let projection = match (&request.projection_expression, &request.attributes_to_get) {
        (Some(text), _) => Some(parser.projection(text)?),
        (None, Some(names)) => Some(attributes_to_get(names)?),
        (None, None) => None,
    };
    parser.finish()?;
    Ok(GetItem {
        projection,
        consistent: request.consistent_read.unwrap_or(false),
        return_capacity: return_capacity(request.return_consumed_capacity.as_deref()),
        ..GetItem::new(table_name, key)
    })
}

fn write(output: &GetItemOutput) -> Vec<u8> {
    let mut writer = Writer::with_capacity(64 + room(&output.item));
    writer.object(|w| {
        if let Some(item) = &output.item {
            write_item(w.name("Item"), item);
        }
        write_consumed(w, output.consumed.as_ref());
    });
    writer.into_bytes()
}
