//! PutItem.

use floe_store::Engine;
use floe_store::op::PutItem;

use crate::wire::{
    Attributes, Result, Voice, WriteMembers, completed, members, request_and_layer, send,
};

members! {
    Request<'a> {
        "Item" => item: Attributes,
        ..write: WriteMembers<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    let missing = request.item.is_none().then_some("item");
    request.write.faults(missing, layer)?.into_result()?;
    let table_name = request.write.table_name.take().unwrap_or_default();
    let put = operation(request, &table_name, Voice::of_single_write(layer))?;
    Ok(send(engine, put.into(), &table_name).await?)
}

fn operation(request: Request<'_>, table_name: &str, voice: Voice) -> Result<PutItem> {
    let mut write = request.write;
    write.check_unmixed(false, false, voice)?;
    let item = request.item.unwrap_or_default().sound(voice)?;
    let ((), condition) = write.parse(voice, |_| Ok(()))?;
    let mut put = completed!(PutItem::new(table_name, item), &write, condition);
    if write.expected.is_some() || write.conditional_operator.is_some() {
        // What is wrong with the item comes first.
        put.validate()?;
        put.condition = write.expected(voice)?;
    }
    Ok(put)
}
