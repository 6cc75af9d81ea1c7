//! UpdateItem.

use floe_store::expr::Update;
use floe_store::json::Layer;
use floe_store::op::{Faults, UpdateItem, validate_table_name};
use floe_store::{Engine, Error};

use crate::wire::{
    AttributeValueUpdate, Attributes, Map, Refusal, Result, Str, Voice, WriteMembers,
    attribute_updates, completed, members, older_table_name_faults, request_and_layer, require,
    return_capacity_faults, return_collection_faults, send, without_expressions,
};

members! {
    Request<'a> {
        "Key" => key: Attributes,
        "AttributeUpdates" => attribute_updates: Map<'a, AttributeValueUpdate<'a>>,
        "UpdateExpression" => update_expression: Str<'a>,
        ..write: WriteMembers<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (mut request, layer) = request_and_layer::<Request<'_>>(body)?;
    check_members(&request, layer)?;
    let table_name = request.write.table_name.take().unwrap_or_default();
    let refuse: fn(Error) -> Refusal = match request.attribute_updates {
        Some(_) => without_expressions,
        None => Refusal::from,
    };
    let update = operation(request, &table_name, Voice::of_single_write(layer))?;
    let answer = send(engine, update.into(), &table_name).await;
    answer.map_err(refuse)
}

/// Unlike the other operations, this one reports the name of the table alone, and of the words the first that is none.
fn check_members(request: &Request<'_>, layer: Layer) -> Result<()> {
    let mut faults = Faults::new();
    match (request.write.table_name.as_deref(), &request.key) {
        (_, None) => return check_members_together(request),
        (_, Some(_)) if layer == Layer::Older => return check_members_together(request),
        (None, Some(_)) => {
            faults.add_null("tableName");
            let write = &request.write;
            write.return_values_faults(&mut faults, Layer::Older);
        }
        (Some(""), Some(_)) => validate_table_name("")?,
        (Some(name), Some(_)) => faults.table_name_by_pattern(name),
    }
    faults.into_result()?;
    check_words(&request.write)
}

/// The older layer of validation, which every request without a key falls back to, reports all faults.
fn check_members_together(request: &Request<'_>) -> Result<()> {
    let (mut faults, write) = (Faults::new(), &request.write);
    return_capacity_faults(&mut faults, &write.return_capacity);
    match (write.table_name.as_deref(), &request.key) {
        (name @ (None | Some("")), _) | (name, Some(_)) => {
            older_table_name_faults(&mut faults, name);
        }
        (Some(_), None) => {}
    }
    write.conditional_operator_faults(&mut faults, Layer::Older);
    write.return_values_faults(&mut faults, Layer::Older);
    write.return_on_failure_faults(&mut faults);
    return_collection_faults(&mut faults, &write.return_collection);
    require(&mut faults, &request.key, "key");
    Ok(faults.into_result()?)
}

/// Refuses the first word that is none, two of them not in the form of a constraint.
fn check_words(write: &WriteMembers<'_>) -> Result<()> {
    fn found(add: impl FnOnce(&mut Faults)) -> Faults {
        let mut faults = Faults::new();
        add(&mut faults);
        faults
    }
    found(|faults| write.return_values_faults(faults, Layer::Current)).into_result()?;
    found(|faults| write.return_on_failure_faults(faults)).into_bare_result()?;
    found(|faults| return_collection_faults(faults, &write.return_collection)).into_result()?;
    Ok(
        found(|faults| return_capacity_faults(faults, &write.return_capacity))
            .into_bare_result()?,
    )
}

fn operation(request: Request<'_>, table_name: &str, voice: Voice) -> Result<UpdateItem> {
    let (updates, mut write) = (request.attribute_updates, request.write);
    let text = request.update_expression.as_deref();
    write.check_unmixed(updates.is_some(), text.is_some(), voice)?;
    let key = request.key.unwrap_or_default().sound(voice)?;
    let updates = updates.map(|updates| attribute_updates(updates, voice));
    let updates = updates.transpose()?;
    let expected = write.expected(voice)?;
    let (update, condition) = write.parse(voice, |parser| {
        text.map(|text| parser.update(text)).transpose()
    })?;
    let update = update.or(updates).unwrap_or_else(Update::new);
    let update = UpdateItem {
        weigh_request: text.is_some(),
        ..UpdateItem::new(table_name, key, update)
    };
    Ok(completed!(update, &write, condition.or(expected)))
}
