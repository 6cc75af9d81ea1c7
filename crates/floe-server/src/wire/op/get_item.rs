//! GetItem.

use floe_store::Engine;
use floe_store::json::{ValidationLayer, write_item};
use floe_store::op::{Faults, GetItem};

use crate::wire::{
    Attributes, GetMembers, Result, Str, TableName, attributes_to_get_faults, estimated_bytes,
    item_table_name_faults, members, object, request_and_layer, require, return_capacity,
    return_capacity_faults, write_consumed,
};

members! {
    Request<'a> {
        "TableName" => table_name: TableName<'a>,
        "Key" => key: Attributes,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
        ..get_members: GetMembers<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request)?;
    let table_name = request.table_name.take().unwrap_or_default();
    let operation = operation(request, &table_name, layer)?;
    let mut output = engine.get_item(operation).await?;
    table_name.restore_names(&mut output.consumed);
    Ok(object(64 + estimated_bytes(&output.item), |w| {
        if let Some(item) = &output.item {
            write_item(w.name("Item"), item);
        }
        write_consumed(w, output.consumed.as_ref());
    }))
}

fn check_members(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    require(&mut faults, &request.key, "key");
    item_table_name_faults(&mut faults, request.table_name.as_deref())?;
    return_capacity_faults(&mut faults, &request.return_consumed_capacity);
    attributes_to_get_faults(
        &mut faults,
        request.get_members.attributes_to_get.as_deref(),
    );
    Ok(faults.into_result()?)
}

fn operation(request: Request<'_>, table_name: &str, layer: ValidationLayer) -> Result<GetItem> {
    let get_members = request.get_members;
    get_members.check_unmixed(layer)?;
    let key = request.key.unwrap_or_default().into_valid(layer)?;
    Ok(GetItem {
        consistent: get_members.consistent_read.unwrap_or(false),
        projection: get_members.parse(layer)?,
        return_capacity: return_capacity(&request.return_consumed_capacity),
        ..GetItem::new(table_name, key)
    })
}
