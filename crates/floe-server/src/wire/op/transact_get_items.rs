//! TransactGetItems.

use std::fmt::{self, Display};

use floe_store::Engine;
use floe_store::json::{ValidationLayer, ValueFault};
use floe_store::limits::TRANSACT_ITEMS_MAX;
use floe_store::op::{
    Faults, TransactGet, TransactGetItems, TransactGetItemsOutput, length_at_most,
};

use crate::wire::{
    AsItem, AsList, AsNames, Attributes, ErrorStyle, ListedUnits, Map, OrNull, RequestTableNames,
    Result, Str, TableName, echo, estimated_bytes, members, object, projection, request, require,
    return_capacity, return_capacity_faults, write_consumed_list, write_item_hashed, write_list,
};

members! {
    Request<'a> {
        "TransactItems" => transact_items: Vec<TransactGetItem<'a>>,
        "ReturnConsumedCapacity" => return_consumed_capacity: Str<'a>,
    }

    /// One item to read.
    TransactGetItem<'a> as "TransactGetItem" {
        "Get" => get: Get<'a>,
    }

    /// The key, and the projection.
    Get<'a> as "Get" {
        "Key" => key: Attributes,
        "TableName" => table_name: TableName<'a>,
        "ProjectionExpression" => projection_expression: Str<'a>,
        "ExpressionAttributeNames" => expression_attribute_names: Map<'a, Str<'a>>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let mut names = RequestTableNames::default();
    let operation = operation(request(body)?, &mut names)?;
    let mut output = engine.transact_get_items(operation).await?;
    names.restore_names(&mut output.consumed);
    Ok(write(&output))
}

fn operation(request: Request<'_>, names: &mut RequestTableNames) -> Result<TransactGetItems> {
    check_members(&request)?;
    let items = request.transact_items.unwrap_or_default();
    let gets: Vec<_> = items.into_iter().filter_map(|item| item.get).collect();
    check_table_names(&gets)?;
    let faults = gets
        .iter()
        .filter_map(|get| get.key.as_ref()?.fault.as_ref());
    if let Some(fault) = ValueFault::first(faults) {
        return Err(ErrorStyle::from(ValidationLayer::Older).value_error(fault));
    }
    let gets: Result<Vec<_>> = gets
        .into_iter()
        .map(|get| transact_get(get, names))
        .collect();
    Ok(TransactGetItems {
        gets: gets?,
        return_capacity: return_capacity(&request.return_consumed_capacity),
    })
}

/// Checks the members. Missing members are reported together with invalid enum values; otherwise the number of items is
/// reported first.
fn check_members(request: &Request<'_>) -> Result<()> {
    let mut faults = Faults::new();
    match &request.transact_items {
        None => faults.add_null("transactItems"),
        Some(items) => {
            for (at, item) in items.iter().enumerate() {
                item_faults(&mut faults, at + 1, item.get.as_ref());
            }
            if faults.is_empty() {
                check_count(items)?;
            }
        }
    }
    return_capacity_faults(&mut faults, &request.return_consumed_capacity);
    Ok(faults.into_result()?)
}

fn item_faults(faults: &mut Faults, at: usize, get: Option<&Get<'_>>) {
    let Some(get) = get else {
        return faults.add_null(format_args!("transactItems.{at}.member.get"));
    };
    let path = format_args!("transactItems.{at}.member.get");
    require(faults, &get.key, format_args!("{path}.key"));
    require(faults, &get.table_name, format_args!("{path}.tableName"));
}

/// Checks the number of items. The operation reports that there are too few.
fn check_count(items: &[TransactGetItem<'_>]) -> Result<()> {
    if items.is_empty() {
        TransactGetItems::default().validate()?;
    }
    let mut faults = Faults::new();
    if items.len() > TRANSACT_ITEMS_MAX {
        let constraint = length_at_most(TRANSACT_ITEMS_MAX);
        faults.add(echo(AsList(items)), "transactItems", constraint);
    }
    Ok(faults.into_result()?)
}

fn check_table_names(gets: &[Get<'_>]) -> Result<()> {
    let mut faults = Faults::new();
    for (at, get) in gets.iter().enumerate() {
        let path = format_args!("transactItems.{}.member.get.tableName", at + 1);
        faults.table_name_at(get.table_name.as_deref().unwrap_or_default(), path);
    }
    Ok(faults.into_result()?)
}

fn transact_get(get: Get<'_>, names: &mut RequestTableNames) -> Result<TransactGet> {
    let key = get
        .key
        .unwrap_or_default()
        .into_valid(ValidationLayer::Older)?;
    let names_given = get.expression_attribute_names;
    let projection = projection(
        &get.projection_expression,
        names_given,
        None,
        ValidationLayer::Older,
    )?;
    Ok(TransactGet {
        projection,
        ..TransactGet::new(names.plain_name(get.table_name.unwrap_or_default()), key)
    })
}

fn write(output: &TransactGetItemsOutput) -> Vec<u8> {
    object(256 + estimated_bytes(output.items.iter().flatten()), |w| {
        write_list(w, "Responses", &output.items, |w, item| {
            w.object(|w| {
                if let Some(item) = item {
                    write_item_hashed(w.name("Item"), item);
                }
            });
        });
        write_consumed_list(w, &output.consumed, ListedUnits::Read);
    })
}

impl Display for TransactGetItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransactGetItem(get={})", OrNull(self.get.as_ref()))
    }
}

impl Display for Get<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = OrNull(self.key.as_ref().map(|key| AsItem(&key.item)));
        let table = OrNull(self.table_name.as_deref());
        let projection = OrNull(self.projection_expression.as_deref());
        let names = OrNull(self.expression_attribute_names.as_ref().map(AsNames));
        write!(
            f,
            "Get(key={key}, tableName={table}, projectionExpression={projection}, \
             expressionAttributeNames={names}, workloadProfileName=null)"
        )
    }
}
