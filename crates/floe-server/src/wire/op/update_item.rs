//! UpdateItem.

use floe_store::expr::Update;
use floe_store::json::ValidationLayer;
use floe_store::op::{Faults, UpdateItem, validate_table_name};
use floe_store::{Engine, Error};

use crate::wire::{
    AttributeValueUpdate, Attributes, ErrorStyle, Map, RequestError, Result, Str, WriteMembers,
    apply_write, attribute_updates, members, older_table_name_faults, request_and_layer, require,
    return_capacity_faults, return_collection_faults, reword_for_attribute_updates,
    with_common_members,
};

members! {
    Request<'a> {
        "Key" => key: Attributes,
        "AttributeUpdates" => attribute_updates: Map<'a, AttributeValueUpdate<'a>>,
        "UpdateExpression" => update_expression: Str<'a>,
        ..write: WriteMembers<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request, layer)?;
    let table_name = request.write.table_name.take().unwrap_or_default();
    let reword: fn(Error) -> RequestError = match request.attribute_updates {
        Some(_) => reword_for_attribute_updates,
        None => RequestError::from,
    };
    let update = operation(request, &table_name, ErrorStyle::of_single_write(layer))?;
    let response = apply_write(engine, update.into(), &table_name).await;
    response.map_err(reword)
}

/// Checks the members. Unlike other operations, this one reports the table name alone, and only the first invalid enum
/// value.
fn check_members(request: &Request<'_>, layer: ValidationLayer) -> Result<()> {
    let mut faults = Faults::new();
    match (request.write.table_name.as_deref(), &request.key) {
        (_, None) => return check_members_together(request),
        (_, Some(_)) if layer == ValidationLayer::Older => return check_members_together(request),
        (None, Some(_)) => {
            faults.add_null("tableName");
            let write = &request.write;
            write.return_values_faults(&mut faults, ValidationLayer::Older);
        }
        (Some(""), Some(_)) => validate_table_name("")?,
        (Some(name), Some(_)) => faults.table_name_by_pattern(name),
    }
    faults.into_result()?;
    check_enums(&request.write)
}

/// Reports all faults, as the older validation layer does. Every request without a key falls back to it.
fn check_members_together(request: &Request<'_>) -> Result<()> {
    let (mut faults, write) = (Faults::new(), &request.write);
    return_capacity_faults(&mut faults, &write.return_capacity);
    match (write.table_name.as_deref(), &request.key) {
        (name @ (None | Some("")), _) | (name, Some(_)) => {
            older_table_name_faults(&mut faults, name);
        }
        (Some(_), None) => {}
    }
    write.conditional_operator_faults(&mut faults, ValidationLayer::Older);
    write.return_values_faults(&mut faults, ValidationLayer::Older);
    write.return_on_failure_faults(&mut faults);
    return_collection_faults(&mut faults, &write.return_collection);
    require(&mut faults, &request.key, "key");
    Ok(faults.into_result()?)
}

/// Reports the first invalid enum value. Two of them are not reported as constraints.
fn check_enums(write: &WriteMembers<'_>) -> Result<()> {
    fn found(add: impl FnOnce(&mut Faults)) -> Faults {
        let mut faults = Faults::new();
        add(&mut faults);
        faults
    }
    found(|faults| write.return_values_faults(faults, ValidationLayer::Current)).into_result()?;
    found(|faults| write.return_on_failure_faults(faults)).into_first_error()?;
    found(|faults| return_collection_faults(faults, &write.return_collection)).into_result()?;
    Ok(
        found(|faults| return_capacity_faults(faults, &write.return_capacity))
            .into_first_error()?,
    )
}

fn operation(request: Request<'_>, table_name: &str, style: ErrorStyle) -> Result<UpdateItem> {
    let (updates, mut write) = (request.attribute_updates, request.write);
    let text = request.update_expression.as_deref();
    write.check_unmixed(updates.is_some(), text.is_some(), style)?;
    let key = request.key.unwrap_or_default().into_valid(style)?;
    let updates = updates.map(|updates| attribute_updates(updates, style));
    let updates = updates.transpose()?;
    let expected = write.expected(style)?;
    let (update, condition) = write.parse(style, |parser| {
        text.map(|text| parser.update(text)).transpose()
    })?;
    let update = update.or(updates).unwrap_or_else(Update::new);
    let update = UpdateItem {
        check_request_size: text.is_some(),
        ..UpdateItem::new(table_name, key, update)
    };
    Ok(with_common_members!(update, &write, condition.or(expected)))
}
