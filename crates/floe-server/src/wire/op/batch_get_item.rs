//! BatchGetItem.

use floe_store::Engine;
use floe_store::json::{ValidationLayer, Writer, write_item};
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{
    self, BatchGetItem, BatchGetItemOutput, Faults, TABLE_NAMES_CONSTRAINT, is_valid_name,
    length_at_least, length_at_most,
};

use crate::wire::{
    Attributes, GetMembers, ListedUnits, Map, RequestError, RequestTableNames, Result, Str,
    TableName, check_unmixed, echo, empty_name_error, estimated_bytes, members, object, request,
    request_and_layer, return_capacity, return_capacity_faults, write_consumed_list, write_items,
    write_list, write_text,
};

members! {
    Request<'a> {
        "RequestItems" => request_items: Map<'a, KeysAndAttributes<'a>>,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
    }

    /// The items to read from one table.
    KeysAndAttributes<'a> as "KeysAndAttributes" {
        "Keys" => keys: Vec<Attributes>,
        ..get_members: GetMembers<'a>,
    }
}

/// The items to read, by table name.
type Tables<'t, 'a> = &'t [(Str<'a>, KeysAndAttributes<'a>)];

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let (request, layer) = request_and_layer(body)?;
    let mut names = RequestTableNames::default();
    let operation = operation(request, layer, &mut names)?;
    let mut output = engine.batch_get_item(operation).await?;
    names.restore_names(&mut output.consumed);
    write(&output, &names, body)
}

fn operation(
    request: Request<'_>,
    layer: ValidationLayer,
    names: &mut RequestTableNames,
) -> Result<BatchGetItem> {
    check_members(&request)?;
    let tables = request.request_items.map_or_else(Vec::new, |map| map.0);
    check_names_filled(&tables, layer)?;
    check_unmixed_over_tables(&tables)?;
    let mut operation = BatchGetItem::new();
    operation.return_capacity = return_capacity(&request.return_consumed_capacity);
    for (name, table) in tables {
        let request = keys_and_attributes(table, layer)?;
        let name = names.plain_name(TableName::new(name));
        if operation.requests.insert(name, request).is_some() {
            return Err(RequestError::validation(
                "the request names a table by its name and by its resource name",
            ));
        }
    }
    Ok(operation)
}

/// Checks the members. Some faults are reported alone, even if there are others.
fn check_members(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    match &request.request_items {
        None => faults.add_null("requestItems"),
        Some(tables) => {
            check_counts(&tables.0)?;
            table_faults(&mut faults, &tables.0);
        }
    }
    return_capacity_faults(&mut faults, &request.return_consumed_capacity);
    faults.into_result()?;
    Ok(())
}

fn check_counts(tables: Tables<'_, '_>) -> Result<()> {
    let mut faults = Faults::new();
    let keys = |table: &KeysAndAttributes<'_>| table.keys.as_ref().map(Vec::len);
    let largest = tables
        .iter()
        .find(|(_, table)| keys(table).is_some_and(|keys| keys > BATCH_GET_ITEMS_MAX));
    if tables.is_empty() {
        faults.add_hidden("RequestItems", length_at_least(1));
    } else if let Some((name, _)) = tables.iter().find(|(_, table)| keys(table) == Some(0)) {
        let path = format_args!("RequestItems.{name}.member.Keys");
        faults.add_hidden(path, length_at_least(1));
    } else if let Some((name, _)) = largest.filter(|_| are_names(tables)) {
        let path = format_args!("RequestItems.{name}.member.Keys");
        faults.add_hidden(path, length_at_most(BATCH_GET_ITEMS_MAX));
    }
    Ok(faults.into_result()?)
}

fn table_faults(faults: &mut Faults, tables: Tables<'_, '_>) {
    if !are_names(tables) {
        faults.add(tables_echo(tables), "requestItems", TABLE_NAMES_CONSTRAINT);
    }
    for (name, table) in tables {
        if table.keys.is_none() {
            faults.add_null(format_args!("requestItems.{name}.member.keys"));
        }
        let listed = table.get_members.attributes_to_get.as_ref();
        if listed.is_some_and(Vec::is_empty) {
            let path = format_args!("RequestItems.{name}.member.AttributesToGet");
            faults.add_hidden(path, length_at_least(1));
        }
    }
}

/// Whether all table names are valid.
fn are_names(tables: Tables<'_, '_>) -> bool {
    let mut names = tables.iter();
    names
        .all(|(name, _)| is_valid_name(name) || is_valid_name(&TableName::new(Str::Borrowed(name))))
}

/// Empty attribute names are reported before all other faults.
fn check_names_filled(tables: Tables<'_, '_>, layer: ValidationLayer) -> Result<()> {
    let has_empty_name = |table: &KeysAndAttributes<'_>| {
        let mut names = table.get_members.attributes_to_get.iter().flatten();
        let mut keys = table.keys.iter().flatten();
        keys.any(Attributes::has_empty_name) || names.any(|name| name.is_empty())
    };
    if tables.iter().any(|(_, table)| has_empty_name(table)) {
        return Err(empty_name_error(layer));
    }
    Ok(())
}

/// An expression for one table cannot be combined with a legacy parameter for another.
fn check_unmixed_over_tables(tables: Tables<'_, '_>) -> Result<()> {
    let given = |is_given: fn(&GetMembers<'_>) -> bool| {
        let mut tables = tables.iter();
        tables.any(|(_, table)| is_given(&table.get_members))
    };
    let listed = given(|get_members| get_members.attributes_to_get.is_some());
    let expression = given(|get_members| get_members.expression.is_some());
    check_unmixed(
        &[("AttributesToGet", listed)],
        &[("ProjectionExpression", expression)],
    )
}

fn keys_and_attributes(
    table: KeysAndAttributes<'_>,
    layer: ValidationLayer,
) -> Result<op::KeysAndAttributes> {
    let get_members = table.get_members;
    get_members.check_unmixed(layer)?;
    let consistent = get_members.consistent_read.unwrap_or(false);
    let projection = get_members.parse(layer)?;
    let keys = table.keys.unwrap_or_default().into_iter();
    Ok(op::KeysAndAttributes {
        keys: keys
            .map(|key| key.into_valid(layer))
            .collect::<Result<_>>()?,
        projection,
        consistent,
    })
}

fn write(output: &BatchGetItemOutput, names: &RequestTableNames, body: &str) -> Result<Vec<u8>> {
    // Unread keys are returned as the client wrote the request; the operation keeps only its meaning.
    let requested: Request<'_> = if output.unprocessed.is_empty() {
        Request::default()
    } else {
        request(body)?
    };
    let requested = requested.request_items.map_or_else(Vec::new, |map| map.0);
    let read = output.items.values().flatten();
    Ok(object(256 + estimated_bytes(read), |w| {
        w.name("Responses").object(|w| {
            for (table, items) in &output.items {
                write_items(w.name(names.name_in_request(table)), items);
            }
        });
        w.name("UnprocessedKeys").object(|w| {
            for (table, rest) in &output.unprocessed {
                let table = names.name_in_request(table);
                let requested = requested.iter().find(|(name, _)| name == table);
                let requested = requested.map(|(_, requested)| requested);
                write_table(w.name(table), requested, |w| write_items(w, &rest.keys));
            }
        });
        write_consumed_list(w, &output.consumed, ListedUnits::Total);
    }))
}

/// Writes the request for one table with these keys.
fn write_table(
    w: &mut Writer,
    table: Option<&KeysAndAttributes<'_>>,
    write_keys: impl FnOnce(&mut Writer),
) {
    let get_members = table.map(|table| &table.get_members);
    w.object(|w| {
        if let Some(attributes) = get_members.and_then(|it| it.attributes_to_get.as_ref()) {
            write_list(w, "AttributesToGet", attributes, |w, name| w.string(name));
        }
        if let Some(consistent) = get_members.and_then(|it| it.consistent_read) {
            w.name("ConsistentRead").bool(consistent);
        }
        if let Some(Map(names)) = get_members.and_then(|it| it.names.as_ref()) {
            let names = names.iter();
            w.name("ExpressionAttributeNames")
                .object(|w| names.for_each(|(key, name)| w.name(key).string(name)));
        }
        write_keys(w.name("Keys"));
        let expression = get_members.and_then(|it| it.expression.as_deref());
        write_text(w, "ProjectionExpression", expression);
    });
}

/// Returns the requested tables as DynamoDB repeats them: as JSON, ordered by name.
fn tables_echo(tables: Tables<'_, '_>) -> String {
    let mut sorted: Vec<_> = tables.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    let body = object(0, |w| {
        for (name, table) in sorted {
            let keys = table.keys.iter().flatten();
            write_table(w.name(name), Some(table), |w| {
                w.array(|w| keys.for_each(|key| write_item(w, &key.item)));
            });
        }
    });
    echo(String::from_utf8_lossy(&body))
}
