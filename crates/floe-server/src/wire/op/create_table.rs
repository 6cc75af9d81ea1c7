//! CreateTable.

use std::collections::BTreeMap;

use floe_store::Engine;
use floe_store::op::{CreateTable, Faults};
use floe_store::table::{Billing, TableStatus, Throughput};

use crate::wire::parameter::TableName;
use crate::wire::read::{Ignored, Str, members, request};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::table::describe::{self, Moment};
use crate::wire::table::members::{
    self, AttributeDefinition, GlobalIndex, KeyElement, LocalIndex, ProvisionedThroughput,
    StreamSpecification, Tag, invalid,
};
use crate::wire::table::name;
use crate::wire::table::settings::{self, EncryptionMembers, OnDemandMembers, WarmMembers};

members! {
    Request<'a> as "CreateTableInput" {
        "TableName" => table_name: TableName<'a>,
        "AttributeDefinitions" => attribute_definitions: Vec<AttributeDefinition<'a>>,
        "KeySchema" => key_schema: Vec<KeyElement<'a>>,
        "LocalSecondaryIndexes" => local_secondary_indexes: Vec<LocalIndex<'a>>,
        "GlobalSecondaryIndexes" => global_secondary_indexes: Vec<GlobalIndex<'a>>,
        "BillingMode" => billing_mode: Str<'a>,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "StreamSpecification" => stream_specification: StreamSpecification<'a>,
        "SSESpecification" => sse_specification: EncryptionMembers<'a>,
        "Tags" => tags: Vec<Tag<'a>>,
        "TableClass" => table_class: Str<'a>,
        "DeletionProtectionEnabled" => deletion_protection_enabled: bool,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
        "ResourcePolicy" => resource_policy: Ignored,
        "VectorIndexes" => vector_indexes: Vec<Ignored>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let operation = operation(engine, &request)?;
    let mut table = engine.create_table(operation).await?;
    // The table is ready, but clients may wait for it to become so.
    table.status = TableStatus::Creating;
    for index in &mut table.indexes {
        index.status = TableStatus::Creating;
    }
    Ok(describe::answer(
        "TableDescription",
        &table,
        Moment::Creation,
    ))
}

/// The operation, checked as a whole: some checks of the request stand between those of the operation.
fn operation(engine: &dyn Engine, request: &Request<'_>) -> Result<CreateTable> {
    let given_name = name::present(request.table_name.clone())?;
    let mut faults = Faults::new();
    let mut operation = shape(request, &given_name, &mut faults);
    operation.add_faults(&mut faults);
    faults.into_result()?;
    name::own(engine, &given_name)?;
    check_supported(request)?;
    check_billing(request)?;
    operation.validate_key()?;
    check_lists(request)?;
    operation.validate()?;
    check_projections(request)?;
    check_stream(request.stream_specification.as_ref())?;
    operation.class = settings::table_class(request.table_class.as_deref())?;
    operation.encryption = settings::encryption(request.sse_specification.as_ref())?.flatten();
    operation.tags = tags(request.tags.as_deref().unwrap_or_default())?;
    Ok(operation)
}

/// The operation as far as nothing can be wrong with it but lengths and ranges.
fn shape(request: &Request<'_>, name: &str, faults: &mut Faults) -> CreateTable {
    let mode = request.billing_mode.as_deref();
    members::billing_faults(mode, faults);
    let throughput = request.provisioned_throughput.as_ref();
    let throughput =
        throughput.map(|units| members::throughput(units, "provisionedThroughput", faults));
    let billing = match mode {
        Some("PAY_PER_REQUEST") => Billing::OnDemand,
        _ => Billing::Provisioned(throughput.unwrap_or(Throughput { read: 1, write: 1 })),
    };
    if request.attribute_definitions.is_none() {
        faults.add_null("attributeDefinitions");
    }
    let key_schema = members::key_schema(request.key_schema.as_deref(), "keySchema", faults);
    let definitions = request.attribute_definitions.as_deref().unwrap_or_default();
    let attribute_definitions = members::definitions(definitions, faults);
    let mut indexes = Vec::new();
    for (at, index) in request
        .global_secondary_indexes
        .iter()
        .flatten()
        .enumerate()
    {
        let path = format!("globalSecondaryIndexes.{}.member", at + 1);
        indexes.push(members::global_index(index, &path, Some(billing), faults));
    }
    for (at, index) in request.local_secondary_indexes.iter().flatten().enumerate() {
        let path = format!("localSecondaryIndexes.{}.member", at + 1);
        indexes.push(members::local_index(index, &path, faults));
    }
    let stream = members::stream(request.stream_specification.as_ref(), faults);
    settings::encryption_faults(request.sse_specification.as_ref(), faults);
    CreateTable {
        table_name: name.to_owned(),
        attribute_definitions,
        key_schema,
        indexes,
        billing,
        stream: stream.flatten(),
        ttl_attribute: None,
        tags: BTreeMap::new(),
        deletion_protection: request.deletion_protection_enabled.unwrap_or(false),
        class: None,
        scaling: settings::scaling(
            request.on_demand_throughput.as_ref(),
            request.warm_throughput.as_ref(),
            billing,
        ),
        encryption: None,
    }
}

/// What this store has not, and must not be taken for done.
fn check_supported(request: &Request<'_>) -> Result<()> {
    for (name, is_given) in [
        ("ResourcePolicy", request.resource_policy.is_some()),
        ("VectorIndexes", request.vector_indexes.is_some()),
    ] {
        if is_given {
            let message = format!("{name} is not supported by this server");
            return Err(Refusal::validation(message));
        }
    }
    Ok(())
}

/// Throughput is reserved exactly if it is paid for.
fn check_billing(request: &Request<'_>) -> Result<()> {
    let is_on_demand = request.billing_mode.as_deref() == Some("PAY_PER_REQUEST");
    match (is_on_demand, request.provisioned_throughput.is_some()) {
        (true, true) => Err(invalid(
            "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is \
             PAY_PER_REQUEST",
        )),
        (false, false) => Err(invalid(
            "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is \
             PROVISIONED",
        )),
        _ => Ok(()),
    }
}

/// A list of indexes that is there has one.
fn check_lists(request: &Request<'_>) -> Result<()> {
    let local = request.local_secondary_indexes.as_deref();
    let global = request.global_secondary_indexes.as_deref();
    if local.is_some_and(<[_]>::is_empty) {
        return Err(invalid("List of LocalSecondaryIndexes is empty"));
    }
    if global.is_some_and(<[_]>::is_empty) {
        return Err(invalid("List of GlobalSecondaryIndexes is empty"));
    }
    Ok(())
}

fn check_projections(request: &Request<'_>) -> Result<()> {
    let local = request.local_secondary_indexes.iter().flatten();
    let global = request.global_secondary_indexes.iter().flatten();
    let local = local.map(|index| index.projection.as_ref());
    let mut projections = local.chain(global.map(|index| index.projection.as_ref()));
    projections.try_for_each(members::check_projection)
}

fn check_stream(stream: Option<&StreamSpecification<'_>>) -> Result<()> {
    let Some(stream) = stream else { return Ok(()) };
    let is_on = stream.stream_enabled == Some(true);
    match (is_on, stream.stream_view_type.is_some()) {
        (true, false) => Err(invalid(
            "Table is being created with a stream enabled, UpdateViewType is required",
        )),
        (false, true) => Err(invalid(
            "Table is being created with a stream disabled, UpdateViewType should not be specified",
        )),
        _ => Ok(()),
    }
}

/// Tags, each with a key of its own.
pub(super) fn tags(list: &[Tag<'_>]) -> Result<BTreeMap<String, String>> {
    let mut tags = BTreeMap::new();
    for tag in list {
        let (key, value) = required_parts(tag)?;
        if tags.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Refusal::validation(format!(
                "Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}"
            )));
        }
    }
    Ok(tags)
}

fn required_parts<'t>(tag: &'t Tag<'_>) -> Result<(&'t str, &'t str)> {
    let missing = |what: &str| {
        Refusal::validation(format!("The Tag {what} provided is invalid, {what}: null"))
    };
    let key = tag.key.as_deref().ok_or_else(|| missing("Key"))?;
    let value = tag.value.as_deref().ok_or_else(|| missing("Value"))?;
    Ok((key, value))
}
