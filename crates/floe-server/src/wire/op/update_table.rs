//! UpdateTable.

use floe_store::Engine;
use floe_store::op::{Faults, IndexUpdate, UpdateTable};
use floe_store::table::{Billing, TableDescription, TableStatus, Throughput};

use crate::wire::table::describe::{self, TableLifecycle};
use crate::wire::table::members::{
    AddedIndex, ProvisionedThroughput, TableMembers, check_projection, check_supported, index_name,
    throughput, throughput_not_allowed,
};
use crate::wire::table::name;
use crate::wire::table::settings::{
    OnDemandMembers, WarmMembers, check_index_warm, encryption, scaling_update, table_class,
};
use crate::wire::{Ignored, RequestError, Result, Str, members, request};

members! {
    Request<'a> {
        "GlobalSecondaryIndexUpdates" => index_updates: Vec<IndexUpdateMembers<'a>>,
        "ReplicaUpdates" => replica_updates: Vec<Ignored>,
        "VectorIndexUpdates" => vector_index_updates: Vec<Ignored>,
        ..table: TableMembers<'a>,
    }

    /// A change of a global index: one of three actions.
    IndexUpdateMembers<'a> as "GlobalSecondaryIndexUpdate" {
        "Update" => update: ChangedIndex<'a>,
        "Create" => create: AddedIndex<'a>,
        "Delete" => delete: RemovedIndex<'a>,
    }

    /// A change of an index's throughput.
    ChangedIndex<'a> as "UpdateGlobalSecondaryIndexAction" {
        "IndexName" => index_name: Str<'a>,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
    }

    /// A deleted index.
    RemovedIndex<'a> as "DeleteGlobalSecondaryIndexAction" {
        "IndexName" => index_name: Str<'a>,
    }
}

pub(crate) async fn handle(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let (has_mode, operation) = (
        request.table.billing_mode.is_some(),
        operation(engine, request)?,
    );
    let before = engine.describe_table(operation.table_name.clone()).await?;
    if matches!(operation.billing, Some(Billing::Provisioned(_)))
        && !has_mode
        && before.definition.billing == Billing::OnDemand
    {
        return Err(throughput_not_allowed());
    }
    let changes = Changes::of(&operation);
    let mut table = engine.update_table(operation).await?;
    changes.show(&before, &mut table);
    let lifecycle = TableLifecycle::Active(engine.now());
    Ok(describe::response("TableDescription", &table, lifecycle))
}

fn operation(engine: &dyn Engine, mut request: Request<'_>) -> Result<UpdateTable> {
    let given_name = name::require(request.table.table_name.take())?;
    let mut faults = Faults::new();
    let mut operation = convert(&request, &given_name, &mut faults);
    operation.add_faults(&mut faults);
    faults.into_result()?;
    name::check_arn(engine, &given_name)?;
    check_supported([
        ("ReplicaUpdates", request.replica_updates.is_some()),
        ("VectorIndexUpdates", request.vector_index_updates.is_some()),
    ])?;
    let table = &request.table;
    operation.class = table_class(table.table_class.as_deref())?;
    operation.encryption = encryption(table.sse_specification.as_ref())?;
    check_billing(table)?;
    let updates = request.index_updates.as_deref().unwrap_or_default();
    updates.iter().try_for_each(check_count)?;
    operation.validate()?;
    updates.iter().try_for_each(check_parts)?;
    table.check_stream(
        "If stream is being enabled then UpdateViewType is required",
        "If stream is being disabled, then UpdateViewType must not be specified",
    )?;
    Ok(operation)
}

/// Converts the request. Faults other than lengths and ranges are recorded here.
fn convert(request: &Request<'_>, name: &str, faults: &mut Faults) -> UpdateTable {
    let table = &request.table;
    let throughput = table.throughput(faults);
    let attribute_definitions = table.definitions(faults);
    let stream = table.stream(faults);
    let mut indexes = Vec::new();
    for (at, update) in request.index_updates.iter().flatten().enumerate() {
        let path = format!("globalSecondaryIndexUpdates.{}.member", at + 1);
        indexes.extend(index_update(update, &path, faults));
    }
    let (on_demand, warm) = (&table.on_demand_throughput, &table.warm_throughput);
    UpdateTable {
        table_name: name.to_owned(),
        attribute_definitions,
        indexes,
        billing: match table.billing_mode.as_deref() {
            Some("PAY_PER_REQUEST") => Some(Billing::OnDemand),
            _ => throughput.map(Billing::Provisioned),
        },
        stream,
        deletion_protection: table.deletion_protection_enabled,
        class: None,
        scaling: scaling_update(on_demand.as_ref(), warm.as_ref()),
        encryption: None,
    }
}

fn index_update(
    update: &IndexUpdateMembers<'_>,
    path: &str,
    faults: &mut Faults,
) -> Option<IndexUpdate> {
    if let Some(change) = &update.update {
        return Some(index_change(change, &format!("{path}.update"), faults));
    }
    if let Some(create) = &update.create {
        let path = format!("{path}.create");
        let index = create.global.create(&path, None, faults);
        return Some(IndexUpdate::Create(index));
    }
    let delete = update.delete.as_ref()?;
    let path = format!("{path}.delete");
    let name = index_name(delete.index_name.as_deref(), &path, faults);
    Some(IndexUpdate::Delete(name))
}

fn index_change(change: &ChangedIndex<'_>, path: &str, faults: &mut Faults) -> IndexUpdate {
    let name = index_name(change.index_name.as_deref(), path, faults);
    match &change.provisioned_throughput {
        Some(units) => {
            let path = format!("{path}.provisionedThroughput");
            IndexUpdate::Update(name, throughput(units, &path, faults))
        }
        None => {
            let on_demand = change.on_demand_throughput.as_ref();
            let warm = change.warm_throughput.as_ref();
            IndexUpdate::Scale(name, scaling_update(on_demand, warm))
        }
    }
}

/// A change must contain exactly one action.
fn check_count(update: &IndexUpdateMembers<'_>) -> Result<()> {
    let actions = [
        update.update.is_some(),
        update.create.is_some(),
        update.delete.is_some(),
    ];
    match actions.into_iter().filter(|is_given| *is_given).count() {
        0 => Err(RequestError::invalid(
            "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
             GlobalSecondaryIndexUpdate.Delete must not be null",
        )),
        1 => Ok(()),
        _ => Err(RequestError::invalid(
            "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
        )),
    }
}

/// Checks a change of an index, except types, lengths and ranges.
fn check_parts(update: &IndexUpdateMembers<'_>) -> Result<()> {
    if let Some(create) = &update.create {
        check_projection(create.global.index.projection.as_ref())?;
    }
    update.update.as_ref().map_or(Ok(()), |change| {
        let name = change.index_name.as_deref().unwrap_or_default();
        check_index_warm(name, change.warm_throughput.as_ref())
    })
}

/// Throughput must be given exactly if billing is provisioned.
fn check_billing(table: &TableMembers<'_>) -> Result<()> {
    let has_throughput = table.provisioned_throughput.is_some();
    match (table.billing_mode.as_deref(), has_throughput) {
        (Some("PAY_PER_REQUEST"), true) => Err(throughput_not_allowed()),
        (Some("PROVISIONED"), false) => Err(RequestError::invalid(
            "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        )),
        _ => Ok(()),
    }
}

/// The changes of an update, for its response: DynamoDB describes them as in progress, while here they are complete.
struct Changes {
    is_update: bool,
    has_throughput: bool,
    created: Vec<String>,
}

impl Changes {
    fn of(operation: &UpdateTable) -> Self {
        let created = operation.indexes.iter().filter_map(|update| match update {
            IndexUpdate::Create(index) => Some(index.name.clone()),
            _ => None,
        });
        Self {
            is_update: operation.billing.is_some()
                || operation.stream.is_some()
                || operation.class.is_some()
                || operation.encryption.is_some()
                || !operation.indexes.is_empty(),
            has_throughput: operation.billing.is_some(),
            created: created.collect(),
        }
    }

    fn show(&self, before: &TableDescription, table: &mut TableDescription) {
        if self.is_update {
            table.status = TableStatus::Updating;
        }
        for index in &mut table.indexes {
            if self.created.contains(&index.name) {
                index.status = TableStatus::Creating;
            }
        }
        let old = reserved(before);
        if self.has_throughput && old.is_some() && reserved(table).is_some() {
            table.definition.billing = before.definition.billing;
            table.history.decreases = before.history.decreases;
        }
    }
}

fn reserved(table: &TableDescription) -> Option<Throughput> {
    match table.definition.billing {
        Billing::Provisioned(throughput) => Some(throughput),
        Billing::OnDemand => None,
    }
}
