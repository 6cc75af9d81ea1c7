//! DeleteItem.

use floe_store::Engine;
use floe_store::json::ValidationLayer;
use floe_store::op::DeleteItem;

use crate::wire::{
    Attributes, ErrorStyle, RequestError, Result, WriteMembers, apply_write, members,
    request_and_layer, with_common_members,
};

members! {
    Request<'a> {
        "Key" => key: Attributes,
        ..write: WriteMembers<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request, layer)?;
    let table_name = request.write.table_name.take().unwrap_or_default();
    let delete = operation(request, &table_name, ErrorStyle::of_single_write(layer))?;
    Ok(apply_write(engine, delete.into(), &table_name).await?)
}

const ONLY_OLD: &str = "ReturnValues can only be ALL_OLD or NONE";

fn check_members(request: &Request<'_>, layer: ValidationLayer) -> Result<()> {
    let missing = request.key.is_none().then_some("key");
    let mut faults = request.write.faults(missing, layer)?;
    let returned = request.write.return_values.as_deref();
    if let (Some(_), Some("ALL_NEW" | "UPDATED_OLD" | "UPDATED_NEW")) = (&request.key, returned) {
        if layer == ValidationLayer::Older && faults.is_empty() {
            return Err(RequestError::validation(ONLY_OLD));
        }
        faults.add_message(ONLY_OLD);
    }
    Ok(faults.into_result()?)
}

fn operation(request: Request<'_>, table_name: &str, style: ErrorStyle) -> Result<DeleteItem> {
    let mut write = request.write;
    write.check_unmixed(false, false, style)?;
    let key = request.key.unwrap_or_default().into_valid(style)?;
    let expected = write.expected(style)?;
    let ((), condition) = write.parse(style, |_| Ok(()))?;
    let delete = DeleteItem::new(table_name, key);
    Ok(with_common_members!(delete, &write, condition.or(expected)))
}
