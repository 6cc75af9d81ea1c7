//! UpdateTable: adds or removes global indexes, switches the stream, changes settings.

use std::collections::HashSet;

use super::constraint::{Faults, invalid, table_name_faults_by_pattern};
use super::{CreateIndex, CreateTable, missing_table, schema};
use crate::error::{Error, Result};
use crate::limits::{INDEX_CHANGES_MAX, INDEX_NAME_CHARS, KEY_ATTRIBUTE_NAME_BYTES_MAX};
use crate::table::{Billing, IndexKind, KeyKind, StreamView, TableClass, TableDef, Throughput};
use crate::text::Name;

/// Changes a table. What is absent stays as it is.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct UpdateTable {
    /// The table.
    pub table_name: String,
    /// The types of key attributes of new indexes.
    pub attribute_definitions: Vec<(Name, KeyKind)>,
    /// Changes of global indexes.
    pub indexes: Vec<IndexUpdate>,
    /// How it is paid for.
    pub billing: Option<Billing>,
    /// Switches the stream on with these images (`Some(Some(..))`) or off (`Some(None)`).
    pub stream: Option<Option<StreamView>>,
    /// Whether the table refuses to be deleted.
    pub deletion_protection: Option<bool>,
    /// The storage class.
    pub class: Option<TableClass>,
}

impl UpdateTable {
    /// A change of this table that changes nothing yet.
    pub fn new(table_name: impl Into<String>) -> Self {
        Self {
            table_name: table_name.into(),
            ..Self::default()
        }
    }

    /// Checks the request alone, before the table is looked up.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation), with the message that DynamoDB gives first.
    pub fn validate(&self) -> Result<()> {
        self.validate_shape()?;
        if let Some(Billing::Provisioned(throughput)) = self.billing {
            schema::check_throughput(throughput, None)?;
        }
        schema::check_definitions(&self.attribute_definitions)?;
        self.validate_combination()?;
        let mut seen = HashSet::new();
        match self.indexes.iter().find(|index| !seen.insert(index.name())) {
            Some(index) => Err(invalid(format_args!(
                "Only one global secondary index update per index is allowed simultaneously. \
                 Index: {}",
                index.name()
            ))),
            None => Ok(()),
        }
    }

    /// Lengths and ranges, told together.
    fn validate_shape(&self) -> Result<()> {
        let mut faults = Faults::new();
        table_name_faults_by_pattern(&mut faults, &self.table_name, "tableName");
        if let Some(Billing::Provisioned(throughput)) = self.billing {
            schema::throughput_faults(&mut faults, throughput, "provisionedThroughput");
        }
        for (at, (name, _)) in self.attribute_definitions.iter().enumerate() {
            let path = format_args!("attributeDefinitions.{}.member.attributeName", at + 1);
            faults.length(name, path, 1..=KEY_ATTRIBUTE_NAME_BYTES_MAX);
        }
        for (at, index) in self.indexes.iter().enumerate() {
            index.add_faults(&mut faults, at + 1);
        }
        faults.into_result()
    }

    /// Changes that DynamoDB makes one at a time.
    fn validate_combination(&self) -> Result<()> {
        let throughput = self.billing.is_some();
        let stream = self.stream.is_some();
        let index = self.indexes.iter().any(IndexUpdate::is_online);
        let others = throughput || stream || !self.indexes.is_empty();
        let protection = self.deletion_protection.is_some();
        let class = self.class.is_some();
        let message = if !(others || protection || class) {
            return Err(Error::validation(NOTHING_TO_CHANGE));
        } else if protection && (others || class) {
            "DeletionProtection modification must be the only operation in the request"
        } else if class && others {
            "TableClass modification must be the only operation in the request"
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

    /// The definition after the change of a valid request.
    ///
    /// # Errors
    ///
    /// [`Validation`](Error::Validation) when the table cannot be changed so,
    /// [`ResourceNotFound`](Error::ResourceNotFound) when an index is not there,
    /// [`LimitExceeded`](Error::LimitExceeded) when more than one index is to be made or removed.
    pub fn apply(&self, current: &TableDef) -> Result<TableDef> {
        let mut table = current.clone();
        self.apply_billing(current, &mut table)?;
        self.apply_stream(&mut table)?;
        if self.indexes.iter().filter(|i| i.is_online()).count() > INDEX_CHANGES_MAX {
            return Err(Error::LimitExceeded(
                "Subscriber limit exceeded: Only 1 online index can be created or deleted \
                 simultaneously per table"
                    .to_owned(),
            ));
        }
        for update in &self.indexes {
            self.apply_index(update, current, &mut table)?;
        }
        self.check_index_throughput(current, &table)?;
        table.deletion_protection = self
            .deletion_protection
            .unwrap_or(table.deletion_protection);
        table.class = self.class.unwrap_or(table.class);
        Ok(table)
    }

    /// Checks a valid request against its table; see [`apply`](UpdateTable::apply), which does it too.
    ///
    /// # Errors
    ///
    /// As [`apply`](UpdateTable::apply).
    pub fn check(&self, table: &TableDef) -> Result<()> {
        self.apply(table).map(drop)
    }

    fn apply_billing(&self, current: &TableDef, table: &mut TableDef) -> Result<()> {
        let Some(billing) = self.billing else {
            return Ok(());
        };
        if let (Billing::Provisioned(old), Billing::Provisioned(new)) = (current.billing, billing)
            && old == new
        {
            return Err(Error::Validation(format!(
                "The provisioned throughput for the table will not change. The requested value \
                 equals the current value. Current ReadCapacityUnits provisioned for the table: \
                 {}. Requested ReadCapacityUnits: {}. Current WriteCapacityUnits provisioned for \
                 the table: {}. Requested WriteCapacityUnits: {}. Refer to the Amazon DynamoDB \
                 Developer Guide for current limits and how to request higher limits.",
                old.read, new.read, old.write, new.write
            )));
        }
        table.billing = billing;
        if billing == Billing::OnDemand {
            for index in &mut table.indexes {
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
                let index = table
                    .indexes
                    .iter_mut()
                    .find(|index| index.kind == IndexKind::Global && index.name == *name)
                    .ok_or_else(index_update_blocked)?;
                index.throughput = Some(*throughput);
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
        if current.index(&index.name).is_some() {
            return Err(Error::validation(
                "Attempting to create an index which already exists",
            ));
        }
        schema::check_added_index(index, &self.attribute_definitions, table.billing)?;
        schema::check_global_count(current.global_indexes().count() + 1)?;
        let projections = current.indexes.iter().map(|index| &index.projection);
        schema::check_included_total(projections.chain([&index.projection]))?;
        // An attribute that the table knows keeps its type, whatever the request says.
        let mut definitions = CreateTable::from(current.clone()).attribute_definitions;
        definitions.extend_from_slice(&self.attribute_definitions);
        table.indexes.push(schema::index_def(index, &definitions)?);
        Ok(())
    }

    /// Every global index has throughput exactly if the table has.
    fn check_index_throughput(&self, current: &TableDef, table: &TableDef) -> Result<()> {
        let becomes_provisioned = current.billing == Billing::OnDemand;
        for index in table.global_indexes() {
            match (table.billing, index.throughput) {
                (Billing::Provisioned(_), None) if becomes_provisioned => {
                    return Err(invalid(format_args!(
                        "ProvisionedThroughput must be specified for index: {}",
                        index.name
                    )));
                }
                (billing, throughput) => {
                    schema::check_index_throughput(&index.name, throughput, billing)?;
                }
            }
        }
        Ok(())
    }
}

const NOTHING_TO_CHANGE: &str = "At least one of ProvisionedThroughput, BillingMode, \
    UpdateStreamEnabled, GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, \
    MultiAccountReplicaReady, ReplicaTransitRoleArn, MultiRegionConsistency, \
    DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required";

fn index_update_blocked() -> Error {
    Error::validation(
        "This operation cannot be performed with given input values. Please contact DynamoDB \
         service team for more info: Action Blocked: IndexUpdate",
    )
}

/// A change of a global index.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexUpdate {
    /// Adds it and fills it from the items that are there.
    Create(CreateIndex),
    /// Changes its throughput.
    Update(String, Throughput),
    /// Removes it.
    Delete(String),
}

impl IndexUpdate {
    /// The name of the index.
    pub fn name(&self) -> &str {
        match self {
            Self::Create(index) => &index.name,
            Self::Update(name, _) | Self::Delete(name) => name,
        }
    }

    /// Whether it makes or removes an index, of which there is one at a time.
    const fn is_online(&self) -> bool {
        matches!(self, Self::Create(_) | Self::Delete(_))
    }

    fn add_faults(&self, faults: &mut Faults, position: usize) {
        let path = format!("globalSecondaryIndexUpdates.{position}.member");
        match self {
            Self::Create(index) => {
                schema::index_faults(faults, index, &format!("{path}.create"));
            }
            Self::Update(name, throughput) => {
                let path = format!("{path}.update");
                name_faults(faults, name, &path);
                let path = format!("{path}.provisionedThroughput");
                schema::throughput_faults(faults, *throughput, &path);
            }
            Self::Delete(name) => name_faults(faults, name, &format!("{path}.delete")),
        }
    }
}

fn name_faults(faults: &mut Faults, name: &str, path: &str) {
    let path = format_args!("{path}.indexName");
    faults.pattern(name, path);
    faults.length(name, path, INDEX_NAME_CHARS);
}
