//! DeleteItem.

use floe_store::Engine;
use floe_store::json::Layer;
use floe_store::op::DeleteItem;

use crate::wire::{
    Attributes, Refusal, Result, Voice, WriteMembers, completed, members, request_and_layer, send,
};

members! {
    Request<'a> {
        "Key" => key: Attributes,
        ..write: WriteMembers<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request, layer)?;
    let table_name = request.write.table_name.take().unwrap_or_default();
    let delete = operation(request, &table_name, Voice::of_single_write(layer))?;
    Ok(send(engine, delete.into(), &table_name).await?)
}

const ONLY_OLD: &str = "ReturnValues can only be ALL_OLD or NONE";

fn check_members(request: &Request<'_>, layer: Layer) -> Result<()> {
    let missing = request.key.is_none().then_some("key");
    let mut faults = request.write.faults(missing, layer)?;
    let returned = request.write.return_values.as_deref();
    if let (Some(_), Some("ALL_NEW" | "UPDATED_OLD" | "UPDATED_NEW")) = (&request.key, returned) {
        if layer == Layer::Older && faults.is_empty() {
            return Err(Refusal::validation(ONLY_OLD));
        }
        faults.add_bare(ONLY_OLD);
    }
    Ok(faults.into_result()?)
}

fn operation(request: Request<'_>, table_name: &str, voice: Voice) -> Result<DeleteItem> {
    let mut write = request.write;
    write.check_unmixed(false, false, voice)?;
    let key = request.key.unwrap_or_default().sound(voice)?;
    let expected = write.expected(voice)?;
    let ((), condition) = write.parse(voice, |_| Ok(()))?;
    let delete = DeleteItem::new(table_name, key);
    Ok(completed!(delete, &write, condition.or(expected)))
}
