//! PutItem.

use floe_store::Engine;
use floe_store::op::PutItem;

use crate::wire::{
    Attributes, ErrorStyle, Result, WriteMembers, apply_write, members, request_and_layer,
    with_common_members,
};

members! {
    Request<'a> {
        "Item" => item: Attributes,
        ..write: WriteMembers<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    let missing = request.item.is_none().then_some("item");
    request.write.faults(missing, layer)?.into_result()?;
    let table_name = request.write.table_name.take().unwrap_or_default();
    let put = operation(request, &table_name, ErrorStyle::of_single_write(layer))?;
    Ok(apply_write(engine, put.into(), &table_name).await?)
}

fn operation(request: Request<'_>, table_name: &str, style: ErrorStyle) -> Result<PutItem> {
    let mut write = request.write;
    write.check_unmixed(false, false, style)?;
    let item = request.item.unwrap_or_default().into_valid(style)?;
    let ((), condition) = write.parse(style, |_| Ok(()))?;
    let mut put = with_common_members!(PutItem::new(table_name, item), &write, condition);
    if write.expected.is_some() || write.conditional_operator.is_some() {
        // Faults of the item are reported first.
        put.validate()?;
        put.condition = write.expected(style)?;
    }
    Ok(put)
}
