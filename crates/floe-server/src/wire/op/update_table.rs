//! UpdateTable.

use floe_store::Engine;
use floe_store::op::{Faults, IndexUpdate, UpdateTable};
use floe_store::table::{Billing, TableDescription, TableStatus, Throughput};

use crate::wire::parameter::TableName;
use crate::wire::read::{Ignored, Str, members, request};
use crate::wire::refusal::{Refusal, Result};
use crate::wire::table::describe::{self, Moment};
use crate::wire::table::members::{
    self, AddedIndex, AttributeDefinition, ProvisionedThroughput, StreamSpecification, invalid,
};
use crate::wire::table::name;
use crate::wire::table::settings::{self, EncryptionMembers, OnDemandMembers, WarmMembers};

members! {
    Request<'a> as "UpdateTableInput" {
        "TableName" => table_name: TableName<'a>,
        "AttributeDefinitions" => attribute_definitions: Vec<AttributeDefinition<'a>>,
        "BillingMode" => billing_mode: Str<'a>,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "GlobalSecondaryIndexUpdates" => index_updates: Vec<IndexUpdateMembers<'a>>,
        "StreamSpecification" => stream_specification: StreamSpecification<'a>,
        "SSESpecification" => sse_specification: EncryptionMembers<'a>,
        "ReplicaUpdates" => replica_updates: Vec<Ignored>,
        "TableClass" => table_class: Str<'a>,
        "DeletionProtectionEnabled" => deletion_protection_enabled: bool,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
        "VectorIndexUpdates" => vector_index_updates: Vec<Ignored>,
    }
}

members! {
    /// A change of a global index: one of the three.
    IndexUpdateMembers<'a> as "GlobalSecondaryIndexUpdate" {
        "Update" => update: ChangedIndex<'a>,
        "Create" => create: AddedIndex<'a>,
        "Delete" => delete: RemovedIndex<'a>,
    }
}

members! {
    /// A change of the throughput of an index.
    ChangedIndex<'a> as "UpdateGlobalSecondaryIndexAction" {
        "IndexName" => index_name: Str<'a>,
        "ProvisionedThroughput" => provisioned_throughput: ProvisionedThroughput<'a>,
        "OnDemandThroughput" => on_demand_throughput: OnDemandMembers<'a>,
        "WarmThroughput" => warm_throughput: WarmMembers<'a>,
    }
}

members! {
    /// An index that is removed.
    RemovedIndex<'a> as "DeleteGlobalSecondaryIndexAction" {
        "IndexName" => index_name: Str<'a>,
    }
}

pub(crate) async fn answer(engine: &dyn Engine, body: &str) -> Result<Vec<u8>> {
    let request: Request<'_> = request(body)?;
    let (has_mode, operation) = (request.billing_mode.is_some(), operation(engine, request)?);
    let before = engine.describe_table(operation.table_name.clone()).await?;
    if matches!(operation.billing, Some(Billing::Provisioned(_)))
        && !has_mode
        && before.definition.billing == Billing::OnDemand
    {
        return Err(no_throughput());
    }
    let changes = Changes::of(&operation);
    let mut table = engine.update_table(operation).await?;
    changes.show(&before, &mut table);
    let moment = Moment::Life(engine.now());
    Ok(describe::answer("TableDescription", &table, moment))
}

fn operation(engine: &dyn Engine, mut request: Request<'_>) -> Result<UpdateTable> {
    let given_name = name::present(request.table_name.take())?;
    let mut faults = Faults::new();
    let updates = request.index_updates.take().unwrap_or_default();
    let checks: Vec<IndexChecks> = updates.iter().map(IndexChecks::of).collect();
    let mut operation = shape(&request, &given_name, updates, &mut faults);
    operation.add_faults(&mut faults);
    faults.into_result()?;
    name::own(engine, &given_name)?;
    check_supported(&request)?;
    operation.class = settings::table_class(request.table_class.as_deref())?;
    operation.encryption = settings::encryption(request.sse_specification.as_ref())?;
    check_billing(&request)?;
    checks.iter().try_for_each(IndexChecks::count)?;
    operation.validate()?;
    checks.into_iter().try_for_each(IndexChecks::parts)?;
    check_stream(request.stream_specification.as_ref())?;
    Ok(operation)
}

/// The operation as far as nothing can be wrong with it but lengths and ranges.
fn shape(
    request: &Request<'_>,
    name: &str,
    updates: Vec<IndexUpdateMembers<'_>>,
    faults: &mut Faults,
) -> UpdateTable {
    let mode = request.billing_mode.as_deref();
    members::billing_faults(mode, faults);
    let throughput = request.provisioned_throughput.as_ref();
    let throughput =
        throughput.map(|units| members::throughput(units, "provisionedThroughput", faults));
    let definitions = request.attribute_definitions.as_deref().unwrap_or_default();
    let attribute_definitions = members::definitions(definitions, faults);
    let stream = members::stream(request.stream_specification.as_ref(), faults);
    settings::encryption_faults(request.sse_specification.as_ref(), faults);
    let mut indexes = Vec::with_capacity(updates.len());
    for (at, update) in updates.into_iter().enumerate() {
        let path = format!("globalSecondaryIndexUpdates.{}.member", at + 1);
        indexes.extend(index_update(update, &path, faults));
    }
    UpdateTable {
        table_name: name.to_owned(),
        attribute_definitions,
        indexes,
        billing: match (mode, throughput) {
            (Some("PAY_PER_REQUEST"), _) => Some(Billing::OnDemand),
            (_, throughput) => throughput.map(Billing::Provisioned),
        },
        stream,
        deletion_protection: request.deletion_protection_enabled,
        class: None,
        scaling: settings::scaling_update(
            request.on_demand_throughput.as_ref(),
            request.warm_throughput.as_ref(),
        ),
        encryption: None,
    }
}

fn index_update(
    update: IndexUpdateMembers<'_>,
    path: &str,
    faults: &mut Faults,
) -> Option<IndexUpdate> {
    if let Some(change) = &update.update {
        return Some(index_change(change, &format!("{path}.update"), faults));
    }
    if let Some(create) = update.create {
        let path = format!("{path}.create");
        let index = members::global_index(&create.into(), &path, None, faults);
        return Some(IndexUpdate::Create(index));
    }
    let delete = update.delete?;
    let path = format!("{path}.delete");
    let name = members::index_name(delete.index_name.as_deref(), &path, faults);
    Some(IndexUpdate::Delete(name))
}

fn index_change(change: &ChangedIndex<'_>, path: &str, faults: &mut Faults) -> IndexUpdate {
    let name = members::index_name(change.index_name.as_deref(), path, faults);
    match &change.provisioned_throughput {
        Some(units) => {
            let path = format!("{path}.provisionedThroughput");
            IndexUpdate::Update(name, members::throughput(units, &path, faults))
        }
        None => {
            let on_demand = change.on_demand_throughput.as_ref();
            let warm = change.warm_throughput.as_ref();
            IndexUpdate::Scale(name, settings::scaling_update(on_demand, warm))
        }
    }
}

/// What is to be checked of a change of an index besides its shape.
struct IndexChecks {
    actions: usize,
    projection: Result<()>,
    warm: Result<()>,
}

impl IndexChecks {
    fn of(update: &IndexUpdateMembers<'_>) -> Self {
        let actions = [
            update.update.is_some(),
            update.create.is_some(),
            update.delete.is_some(),
        ];
        let create = update.create.as_ref();
        let change = update.update.as_ref();
        Self {
            actions: actions.into_iter().map(usize::from).sum(),
            projection: members::check_projection(create.and_then(|i| i.projection.as_ref())),
            warm: change.map_or(Ok(()), |change| {
                let name = change.index_name.as_deref().unwrap_or_default();
                settings::check_index_warm(name, change.warm_throughput.as_ref())
            }),
        }
    }

    /// A change is one action.
    fn count(&self) -> Result<()> {
        match self.actions {
            0 => Err(invalid(
                "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
                 GlobalSecondaryIndexUpdate.Delete must not be null",
            )),
            1 => Ok(()),
            _ => Err(invalid(
                "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate \
                 object",
            )),
        }
    }

    fn parts(self) -> Result<()> {
        self.projection.and(self.warm)
    }
}

/// What this store has not, and must not be taken for done.
fn check_supported(request: &Request<'_>) -> Result<()> {
    for (name, is_given) in [
        ("ReplicaUpdates", request.replica_updates.is_some()),
        ("VectorIndexUpdates", request.vector_index_updates.is_some()),
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
    let has_throughput = request.provisioned_throughput.is_some();
    match (request.billing_mode.as_deref(), has_throughput) {
        (Some("PAY_PER_REQUEST"), true) => Err(no_throughput()),
        (Some("PROVISIONED"), false) => Err(invalid(
            "ProvisionedThroughput must be specified when BillingMode is PROVISIONED",
        )),
        _ => Ok(()),
    }
}

fn no_throughput() -> Refusal {
    invalid(
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is \
         PAY_PER_REQUEST",
    )
}

fn check_stream(stream: Option<&StreamSpecification<'_>>) -> Result<()> {
    let Some(stream) = stream else { return Ok(()) };
    let is_on = stream.stream_enabled == Some(true);
    match (is_on, stream.stream_view_type.is_some()) {
        (true, false) => Err(invalid(
            "If stream is being enabled then UpdateViewType is required",
        )),
        (false, true) => Err(invalid(
            "If stream is being disabled, then UpdateViewType must not be specified",
        )),
        _ => Ok(()),
    }
}

/// What an update changes, for its answer: DynamoDB shows a change that is under way, while here it is done.
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
