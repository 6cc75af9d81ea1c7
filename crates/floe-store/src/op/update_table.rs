//! UpdateTable: adds or removes global indexes, enables or disables the stream, changes settings.

use super::constraint::{Faults, invalid};
use super::settings::{ScalingTarget, ScalingUpdate};
use super::{CreateIndex, missing_table, schema, settings};
use crate::error::{Error, Result, ensure, ensure_none};
use crate::limits::{GLOBAL_INDEXES_MAX, INDEX_CHANGES_MAX, KEY_ATTRIBUTE_NAME_BYTES_MAX};
use crate::table::{
    Billing, Encryption, IndexDef, IndexKind, KeyKind, StreamView, TableClass, TableDef, Throughput,
};
use crate::text::Name;

/// Changes a table. Absent members stay unchanged.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct UpdateTable {
    /// The table.
    pub table_name: String,
    /// The types of the key attributes of new indexes.
    pub attribute_definitions: Vec<(Name, KeyKind)>,
    /// Changes to global indexes.
    pub indexes: Vec<IndexUpdate>,
    /// The billing mode.
    pub billing: Option<Billing>,
    /// Enables the stream with these images (`Some(Some(..))`) or disables it (`Some(None)`).
    pub stream: Option<Option<StreamView>>,
    /// Whether deleting the table is rejected.
    pub deletion_protection: Option<bool>,
    /// The storage class.
    pub class: Option<TableClass>,
    /// The scaling limits.
    pub scaling: ScalingUpdate,
    /// Encrypts with a key of the account (`Some(Some(..))`) or with the store's default (`Some(None)`).
    pub encryption: Option<Option<Encryption>>,
}

impl UpdateTable {
    /// Creates a request without changes.
    pub fn new(table_name: impl Into<String>) -> Self {
        Self {
            table_name: table_name.into(),
            ..Self::default()
        }
    }

    /// Checks the request alone, without the table.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        Faults::check(|faults| self.add_faults(faults))?;
        if let Some(Billing::Provisioned(throughput)) = self.billing {
            schema::check_throughput(throughput, None)?;
        }
        schema::check_definitions(&self.attribute_definitions)?;
        self.validate_combination()?;
        for update in &self.indexes {
            if let IndexUpdate::Create(index) = update {
                let most = schema::key_attributes_max(index.kind);
                schema::check_key_length(&index.key_schema, most)?;
            }
        }
        let repeated = schema::repeated(self.indexes.iter().map(IndexUpdate::name));
        ensure_none(repeated, |name| {
            invalid(format_args!(
                "Only one global secondary index update per index is allowed simultaneously. \
                 Index: {name}"
            ))
        })
    }

    /// Adds the faults of lengths and ranges, which one error lists together.
    pub fn add_faults(&self, faults: &mut Faults) {
        faults.table_name_by_pattern(&self.table_name);
        if let Some(Billing::Provisioned(throughput)) = self.billing {
            schema::throughput_faults(faults, throughput, "provisionedThroughput");
        }
        for (at, (name, _)) in self.attribute_definitions.iter().enumerate() {
            let path = format_args!("attributeDefinitions.{}.member.attributeName", at + 1);
            faults.length(name, path, 1..=KEY_ATTRIBUTE_NAME_BYTES_MAX);
        }
        for (at, index) in self.indexes.iter().enumerate() {
            index.add_faults(faults, at + 1);
        }
    }

    /// Rejects combinations of changes that DynamoDB only makes one at a time.
    fn validate_combination(&self) -> Result<()> {
        let throughput = self.billing.is_some();
        let stream = self.stream.is_some();
        let index = self.indexes.iter().any(IndexUpdate::is_online);
        let others = throughput || stream || !self.indexes.is_empty();
        let protection = self.deletion_protection.is_some();
        let class = self.class.is_some();
        let encryption = self.encryption.is_some();
        let (warm, on_demand) = (self.scaling.is_warm(), self.scaling.is_on_demand());
        let scaling = warm || on_demand;
        let message = if !(others || protection || class || encryption || scaling) {
            return Err(Error::validation(NOTHING_TO_CHANGE));
        } else if encryption && (others || protection || class || scaling) {
            "Server-Side Encryption modification must be the only operation in the request"
        } else if protection && (others || class || scaling) {
            "DeletionProtection modification must be the only operation in the request"
        } else if class && (others || scaling) {
            "TableClass modification must be the only operation in the request"
        } else if warm && (others || on_demand) {
            "WarmThroughput must be the only operation in the request"
        } else if on_demand && (stream || !self.indexes.is_empty()) {
            "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"
        } else if stream && throughput {
            "You cannot modify stream status while updating table IOPS"
        } else if index && throughput {
            "You cannot create or delete index while updating table IOPS"
        } else if index && stream {
            "You cannot create or delete index while changing stream status"
        } else {
            return Ok(());
        };
        Err(invalid(message))
    }

    /// Returns the definition after a valid request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) if the change does not apply to the table,
    /// [`ResourceNotFound`](Error::ResourceNotFound) if an index does not exist,
    /// [`LimitExceeded`](Error::LimitExceeded) if more than one index would be created or deleted.
    pub fn apply(&self, current: &TableDef) -> Result<TableDef> {
        let mut table = current.clone();
        self.apply_billing(current, &mut table)?;
        let (scaling, billing) = (table.scaling, table.billing);
        table.scaling = self.scaling.apply(scaling, billing, ScalingTarget::Table)?;
        self.apply_stream(&mut table)?;
        let online = self.indexes.iter().filter(|i| i.is_online()).count();
        ensure(online <= INDEX_CHANGES_MAX, || {
            limit_exceeded("Only 1 online index can be created or deleted simultaneously per table")
        })?;
        for update in &self.indexes {
            self.apply_index(update, current, &mut table)?;
        }
        self.check_index_throughput(current, &table)?;
        if let Some(protection) = self.deletion_protection {
            table.deletion_protection = protection;
        }
        // A table without an explicit class has the standard class.
        if self.class != Some(TableClass::Standard) || table.class.is_some() {
            table.class = self.class.or(table.class);
        }
        if let Some(encryption) = &self.encryption {
            let current = current.encryption.as_ref();
            table.encryption = settings::change_encryption(current, encryption.as_ref())?;
        }
        Ok(table)
    }

    /// Checks a valid request against its table; [`apply`](UpdateTable::apply) does so as well.
    ///
    /// # Errors
    ///
    /// The errors of [`apply`](UpdateTable::apply).
    pub fn check(&self, table: &TableDef) -> Result<()> {
        self.apply(table).map(drop)
    }

    fn apply_billing(&self, current: &TableDef, table: &mut TableDef) -> Result<()> {
        let Some(billing) = self.billing else {
            return Ok(());
        };
        if let Billing::Provisioned(throughput) = billing {
            ensure(current.billing != billing, || {
                settings::unchanged_throughput(ScalingTarget::Table, throughput)
            })?;
        }
        table.billing = billing;
        table.scaling = table.scaling.after_billing(current.billing, billing);
        if billing == Billing::OnDemand {
            for index in &mut table.indexes {
                index.scaling = index.scaling.after_billing(index.billing(), billing);
                index.throughput = None;
            }
        }
        Ok(())
    }

    fn apply_stream(&self, table: &mut TableDef) -> Result<()> {
        let Some(stream) = self.stream else {
            return Ok(());
        };
        let message = match (table.stream, stream) {
            (Some(_), Some(_)) => "Table already has an enabled stream: TableName: ",
            (None, None) => "Table has no stream to disable: TableName: ",
            _ => {
                table.stream = stream;
                return Ok(());
            }
        };
        Err(Error::Validation(format!("{message}{}", table.name)))
    }

    fn apply_index(
        &self,
        update: &IndexUpdate,
        current: &TableDef,
        table: &mut TableDef,
    ) -> Result<()> {
        match update {
            IndexUpdate::Create(index) => self.create_index(index, current, table),
            IndexUpdate::Update(name, throughput) => {
                let is_on_demand = table.billing == Billing::OnDemand;
                let index = global_index(table, name)?.ok_or_else(index_update_blocked)?;
                ensure(!is_on_demand, || {
                    invalid(format_args!(
                        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for \
                         index: {name} when BillingMode is PAY_PER_REQUEST"
                    ))
                })?;
                ensure(index.throughput != Some(*throughput), || {
                    settings::unchanged_throughput(ScalingTarget::Index(name), *throughput)
                })?;
                let billing = Billing::Provisioned(*throughput);
                index.scaling = index.scaling.after_billing(index.billing(), billing);
                index.throughput = Some(*throughput);
                Ok(())
            }
            IndexUpdate::Scale(name, scaling) => {
                let missing = missing_index(name, &table.name);
                let index = global_index(table, name)?.ok_or(missing)?;
                let changes = *scaling != ScalingUpdate::default();
                ensure(changes, || nothing_to_scale(index))?;
                let target = ScalingTarget::Index(name);
                index.scaling = scaling.apply(index.scaling, index.billing(), target)?;
                Ok(())
            }
            IndexUpdate::Delete(name) => match current.index(name).map(|index| index.kind) {
                Some(IndexKind::Global) => {
                    table.indexes.retain(|index| index.name != *name);
                    Ok(())
                }
                Some(IndexKind::Local) => Err(Error::Validation(format!(
                    "Cannot delete an index that is not a GlobalSecondaryIndex: {name}"
                ))),
                None => Err(missing_table()),
            },
        }
    }

    fn create_index(
        &self,
        index: &CreateIndex,
        current: &TableDef,
        table: &mut TableDef,
    ) -> Result<()> {
        ensure(current.index(&index.name).is_none(), || {
            Error::validation("Attempting to create an index which already exists")
        })?;
        schema::check_added_index(index, &self.attribute_definitions, table.billing)?;
        schema::check_not_redefined(index, &self.attribute_definitions, current)?;
        settings::check_scaling(
            &index.scaling,
            table.billing,
            ScalingTarget::Index(&index.name),
        )?;
        let count = current.global_indexes().count();
        ensure(count < GLOBAL_INDEXES_MAX, || {
            limit_exceeded("Number of global secondary indexes exceeds per-table limit of 20")
        })?;
        let projections = current.indexes.iter().map(|index| &index.projection);
        schema::check_included_total(projections.chain([&index.projection]))?;
        let index = schema::index_def(index, &self.attribute_definitions)?;
        table.indexes.push(index);
        Ok(())
    }

    /// Checks that all global indexes have throughput if and only if the table is provisioned.
    fn check_index_throughput(&self, current: &TableDef, table: &TableDef) -> Result<()> {
        let becomes_provisioned =
            current.billing == Billing::OnDemand && table.billing != Billing::OnDemand;
        for index in table.global_indexes() {
            ensure(index.throughput.is_some() || !becomes_provisioned, || {
                invalid(format_args!(
                    "ProvisionedThroughput must be specified for index: {}",
                    index.name
                ))
            })?;
            schema::check_index_throughput(&index.name, index.throughput, table.billing)?;
        }
        Ok(())
    }
}

const NOTHING_TO_CHANGE: &str = "At least one of ProvisionedThroughput, BillingMode, \
    UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, \
    MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, \
    DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required";

/// Returns the global index of this name. Rejects local indexes, which cannot be changed.
fn global_index<'a>(table: &'a mut TableDef, name: &str) -> Result<Option<&'a mut IndexDef>> {
    let index = table.indexes.iter_mut().find(|index| index.name == name);
    let kind = index.as_ref().map(|index| index.kind);
    ensure(kind != Some(IndexKind::Local), || {
        Error::Validation(format!(
            "Cannot update an index that is not a GlobalSecondaryIndex: {name}"
        ))
    })?;
    Ok(index)
}

/// The error for an index update without changes.
fn nothing_to_scale(index: &IndexDef) -> Error {
    let name = &index.name;
    match index.billing() {
        Billing::OnDemand => invalid(format_args!(
            "The only Updates for index: {name} when TableThroughputMode is PAY_PER_REQUEST can be to \
             OnDemandThroughput, WarmThroughput"
        )),
        Billing::Provisioned(_) => invalid(format_args!(
            "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: {name}"
        )),
    }
}

fn missing_index(name: &str, table: &str) -> Error {
    Error::ResourceNotFound(format!(
        "Requested resource not found: Index {name} for table {table}"
    ))
}

fn limit_exceeded(limit: &str) -> Error {
    Error::LimitExceeded(format!("Subscriber limit exceeded: {limit}"))
}

fn index_update_blocked() -> Error {
    Error::validation(
        "This operation cannot be performed with given input values. Please contact DynamoDB \
         service team for more info: Action Blocked: IndexUpdate",
    )
}

/// A change to a global index.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexUpdate {
    /// Adds the index and fills it from existing items.
    Create(CreateIndex),
    /// Changes the throughput.
    Update(String, Throughput),
    /// Changes the scaling limits.
    Scale(String, ScalingUpdate),
    /// Removes the index.
    Delete(String),
}

impl IndexUpdate {
    /// The name of the index.
    pub fn name(&self) -> &str {
        match self {
            Self::Create(index) => &index.name,
            Self::Update(name, _) | Self::Scale(name, _) | Self::Delete(name) => name,
        }
    }

    /// Whether the change creates or deletes an index; only one such change is allowed at a time.
    const fn is_online(&self) -> bool {
        matches!(self, Self::Create(_) | Self::Delete(_))
    }

    fn add_faults(&self, faults: &mut Faults, position: usize) {
        let path = format!("globalSecondaryIndexUpdates.{position}.member");
        match self {
            Self::Create(index) => schema::index_faults(faults, index, &format!("{path}.create")),
            Self::Update(name, throughput) => {
                let path = format!("{path}.update");
                schema::name_faults(faults, name, &path);
                let path = format!("{path}.provisionedThroughput");
                schema::throughput_faults(faults, *throughput, &path);
            }
            Self::Scale(name, _) => schema::name_faults(faults, name, &format!("{path}.update")),
            Self::Delete(name) => schema::name_faults(faults, name, &format!("{path}.delete")),
        }
    }
}
