//! CreateTable.

use std::collections::BTreeMap;

use floe_store::Engine;
use floe_store::op::{CreateTable, Faults};
use floe_store::table::{Billing, TableStatus, Throughput};

use crate::wire::table::describe::{self, TableLifecycle};
use crate::wire::table::members::{
    GlobalIndex, KeyElement, LocalIndex, TableMembers, Tag, check_projection, check_supported,
    key_schema, throughput_not_allowed,
};
use crate::wire::table::name;
use crate::wire::table::settings::{encryption, scaling, table_class};
use crate::wire::{Ignored, RequestError, Result, members, request, require};

members! {
    Request<'a> {
        "KeySchema" => key_schema: Vec<KeyElement<'a>>,
        "LocalSecondaryIndexes" => local_secondary_indexes: Vec<LocalIndex<'a>>,
        "GlobalSecondaryIndexes" => global_secondary_indexes: Vec<GlobalIndex<'a>>,
        "Tags" => tags: Vec<Tag<'a>>,
        "ResourcePolicy" => resource_policy: Ignored,
        "VectorIndexes" => vector_indexes: Vec<Ignored>,
        ..table: TableMembers<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let operation = operation(engine, &request)?;
    let mut table = engine.create_table(operation).await?;
    // The table is usable immediately, but clients may wait for it to become active.
    table.status = TableStatus::Creating;
    for index in &mut table.indexes {
        index.status = TableStatus::Creating;
    }
    let lifecycle = TableLifecycle::Creating;
    Ok(describe::response("TableDescription", &table, lifecycle))
}

/// Converts and validates the request. Some checks of the request come between those of the operation.
fn operation(engine: &dyn Engine, request: &Request<'_>) -> Result<CreateTable> {
    let given_name = name::require(request.table.table_name.clone())?;
    let mut faults = Faults::new();
    let mut operation = convert(request, &given_name, &mut faults);
    operation.add_faults(&mut faults);
    faults.into_result()?;
    name::check_arn(engine, &given_name)?;
    check_supported([
        ("ResourcePolicy", request.resource_policy.is_some()),
        ("VectorIndexes", request.vector_indexes.is_some()),
    ])?;
    check_billing(&request.table)?;
    operation.validate_key()?;
    check_index_lists(request)?;
    operation.validate()?;
    check_projections(request)?;
    request.table.check_stream(
        "Table is being created with a stream enabled, UpdateViewType is required",
        "Table is being created with a stream disabled, UpdateViewType should not be specified",
    )?;
    operation.class = table_class(request.table.table_class.as_deref())?;
    operation.encryption = encryption(request.table.sse_specification.as_ref())?.flatten();
    operation.tags = tags(request.tags.as_deref().unwrap_or_default())?;
    Ok(operation)
}

/// Converts the request. Faults other than lengths and ranges are recorded here.
fn convert(request: &Request<'_>, name: &str, faults: &mut Faults) -> CreateTable {
    let table = &request.table;
    let throughput = table.throughput(faults);
    let billing = match table.billing_mode.as_deref() {
        Some("PAY_PER_REQUEST") => Billing::OnDemand,
        _ => Billing::Provisioned(throughput.unwrap_or(Throughput { read: 1, write: 1 })),
    };
    require(faults, &table.attribute_definitions, "attributeDefinitions");
    let key_schema = key_schema(request.key_schema.as_deref(), "keySchema", faults);
    let attribute_definitions = table.definitions(faults);
    let mut indexes = Vec::new();
    let global = request.global_secondary_indexes.iter().flatten();
    for (at, index) in global.enumerate() {
        let path = format!("globalSecondaryIndexes.{}.member", at + 1);
        indexes.push(index.global.create(&path, Some(billing), faults));
    }
    for (at, index) in request.local_secondary_indexes.iter().flatten().enumerate() {
        let path = format!("localSecondaryIndexes.{}.member", at + 1);
        indexes.push(index.create(&path, faults));
    }
    let (on_demand, warm) = (&table.on_demand_throughput, &table.warm_throughput);
    CreateTable {
        table_name: name.to_owned(),
        attribute_definitions,
        key_schema,
        indexes,
        billing,
        stream: table.stream(faults).flatten(),
        ttl_attribute: None,
        tags: BTreeMap::new(),
        deletion_protection: table.deletion_protection_enabled.unwrap_or(false),
        class: None,
        scaling: scaling(on_demand.as_ref(), warm.as_ref(), billing),
        encryption: None,
    }
}

/// Throughput must be given exactly if billing is provisioned.
fn check_billing(table: &TableMembers<'_>) -> Result<()> {
    let is_on_demand = table.billing_mode.as_deref() == Some("PAY_PER_REQUEST");
    match (is_on_demand, table.provisioned_throughput.is_some()) {
        (true, true) => Err(throughput_not_allowed()),
        (false, false) => Err(RequestError::invalid(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        )),
        _ => Ok(()),
    }
}

/// A list of indexes must not be empty.
fn check_index_lists(request: &Request<'_>) -> Result<()> {
    let local = request.local_secondary_indexes.as_ref().map(Vec::len);
    let global = request.global_secondary_indexes.as_ref().map(Vec::len);
    for (name, count) in [("Local", local), ("Global", global)] {
        if count == Some(0) {
            let message = format!("List of {name}SecondaryIndexes is empty");
            return Err(RequestError::invalid(message));
        }
    }
    Ok(())
}

fn check_projections(request: &Request<'_>) -> Result<()> {
    let local = request.local_secondary_indexes.iter().flatten();
    let global = request.global_secondary_indexes.iter().flatten();
    let indexes = local.map(|local| &local.index);
    let mut indexes = indexes.chain(global.map(|global| &global.global.index));
    indexes.try_for_each(|index| check_projection(index.projection.as_ref()))
}

/// Converts tags. Keys must be unique.
pub(super) fn tags(list: &[Tag<'_>]) -> Result<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    for tag in list {
        let (key, value) = required_parts(tag)?;
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(RequestError::validation(format!(
                "Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}"
            )));
        }
    }
    Ok(tags)
}

fn required_parts<'t>(tag: &'t Tag<'_>) -> Result<(&'t str, &'t str)> {
    let missing = |what: &str| {
        RequestError::validation(format!("The Tag {what} provided is invalid, {what}: null"))
    };
    let key = tag.key.as_deref().ok_or_else(|| missing("Key"))?;
    let value = tag.value.as_deref().ok_or_else(|| missing("Value"))?;
    Ok((key, value))
}
