//! CreateTable: creates a table.

use std::collections::BTreeMap;

use super::constraint::Faults;
use super::schema::CreateIndex;
use super::settings::ScalingTarget;
use super::{schema, settings, tags};
use crate::error::Result;
use crate::limits::{KEY_ATTRIBUTE_NAME_BYTES_MAX, KEY_ATTRIBUTES_MAX, TTL_ATTRIBUTE_NAME_BYTES};
use crate::table::{
    Billing, Encryption, IndexKind, KeyKind, KeySchemaElement, Scaling, StreamView, TableBuilder,
    TableClass, TableDef,
};
use crate::text::Name;

/// A request for a table, in DynamoDB's form. [`definition`](CreateTable::definition) validates it and returns a
/// [`TableDef`].
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// The name.
    pub table_name: String,
    /// The types of the key attributes of the table and its indexes.
    pub attribute_definitions: Vec<(Name, KeyKind)>,
    /// The primary key.
    pub key_schema: Vec<KeySchemaElement>,
    /// The indexes, local and global.
    pub indexes: Vec<CreateIndex>,
    /// The billing mode.
    pub billing: Billing,
    /// The images in the change stream, if the table gets one.
    pub stream: Option<StreamView>,
    /// The TTL attribute. DynamoDB sets it with a separate operation; here it can be part of the request.
    pub ttl_attribute: Option<Name>,
    /// The tags.
    pub tags: BTreeMap<String, String>,
    /// Whether deleting the table is rejected.
    pub deletion_protection: bool,
    /// The storage class, if set.
    pub class: Option<TableClass>,
    /// The scaling limits.
    pub scaling: Scaling,
    /// The encryption key, if it is not the store's default.
    pub encryption: Option<Encryption>,
}

impl CreateTable {
    /// Checks the request.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate(&self) -> Result<()> {
        self.validate_key()?;
        let definitions = &self.attribute_definitions;
        let local: Vec<_> = self.indexes_of(IndexKind::Local).collect();
        schema::check_local_indexes(&local, &self.key_schema, definitions)?;
        let global: Vec<_> = self.indexes_of(IndexKind::Global).collect();
        schema::check_global_indexes(&global, definitions, self.billing)?;
        schema::check_index_names(self.indexes.iter().map(|index| index.name.as_str()))?;
        schema::check_included_total(self.indexes.iter().map(|index| &index.projection))?;
        schema::check_definitions_used(&self.key_schema, &self.indexes, definitions)?;
        self.validate_scaling()?;
        tags::check_tags(&self.tags)
    }

    /// Checks everything that DynamoDB checks before the indexes.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn validate_key(&self) -> Result<()> {
        Faults::check(|faults| self.add_faults(faults))?;
        if let Billing::Provisioned(throughput) = self.billing {
            schema::check_throughput(throughput, None)?;
        }
        schema::check_key_length(&self.key_schema, KEY_ATTRIBUTES_MAX)?;
        for index in &self.indexes {
            schema::check_key_length(&index.key_schema, schema::key_attributes_max(index.kind))?;
        }
        schema::check_definitions(&self.attribute_definitions)?;
        schema::check_table_key(&self.key_schema, &self.attribute_definitions)
    }

    fn validate_scaling(&self) -> Result<()> {
        settings::check_scaling(&self.scaling, self.billing, ScalingTarget::Table)?;
        self.indexes_of(IndexKind::Global).try_for_each(|index| {
            let billing = match index.throughput {
                Some(throughput) => Billing::Provisioned(throughput),
                None => self.billing,
            };
            settings::check_scaling(&index.scaling, billing, ScalingTarget::Index(&index.name))
        })
    }

    /// Adds the faults of lengths and ranges, which one error lists together.
    pub fn add_faults(&self, faults: &mut Faults) {
        faults.table_name_by_pattern(&self.table_name);
        if let Billing::Provisioned(throughput) = self.billing {
            schema::throughput_faults(faults, throughput, "provisionedThroughput");
        }
        schema::key_faults(faults, &self.key_schema, "keySchema");
        for (at, (name, _)) in self.attribute_definitions.iter().enumerate() {
            let path = format_args!("attributeDefinitions.{}.member.attributeName", at + 1);
            faults.length(name, path, 1..=KEY_ATTRIBUTE_NAME_BYTES_MAX);
        }
        for (kind, list) in [
            (IndexKind::Global, "globalSecondaryIndexes"),
            (IndexKind::Local, "localSecondaryIndexes"),
        ] {
            for (at, index) in self.indexes_of(kind).enumerate() {
                let path = format!("{list}.{}.member", at + 1);
                schema::index_faults(faults, index, &path);
            }
        }
        if let Some(attribute) = &self.ttl_attribute {
            let path = "timeToLiveSpecification.attributeName";
            faults.length(attribute, path, TTL_ATTRIBUTE_NAME_BYTES);
        }
    }

    fn indexes_of(&self, kind: IndexKind) -> impl Iterator<Item = &CreateIndex> {
        self.indexes.iter().filter(move |index| index.kind == kind)
    }

    /// Validates the request and returns the definition.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), with the message that DynamoDB reports first.
    pub fn definition(&self) -> Result<TableDef> {
        self.validate()?;
        let definitions = &self.attribute_definitions;
        let index_def = |index| schema::index_def(index, definitions);
        Ok(TableDef {
            name: self.table_name.clone(),
            key: schema::key_schema(&self.key_schema, definitions)?,
            indexes: self.indexes.iter().map(index_def).collect::<Result<_>>()?,
            billing: self.billing,
            stream: self.stream,
            ttl_attribute: self.ttl_attribute.clone(),
            tags: self.tags.clone(),
            deletion_protection: self.deletion_protection,
            class: self.class,
            scaling: self.scaling,
            encryption: self.encryption.clone(),
        })
    }
}

impl From<TableDef> for CreateTable {
    fn from(table: TableDef) -> Self {
        let mut attribute_definitions = Vec::new();
        for key in std::iter::once(&table.key).chain(table.indexes.iter().map(|i| &i.key)) {
            for attribute in key.attributes() {
                let definition = (attribute.name.clone(), attribute.kind);
                if !attribute_definitions.contains(&definition) {
                    attribute_definitions.push(definition);
                }
            }
        }
        Self {
            attribute_definitions,
            key_schema: table.key.elements(),
            indexes: table.indexes.into_iter().map(CreateIndex::from).collect(),
            table_name: table.name,
            billing: table.billing,
            stream: table.stream,
            ttl_attribute: table.ttl_attribute,
            tags: table.tags,
            deletion_protection: table.deletion_protection,
            class: table.class,
            scaling: table.scaling,
            encryption: table.encryption,
        }
    }
}

impl TableBuilder {
    /// Validates and returns the definition.
    ///
    /// # Errors
    ///
    /// [`Validation`](crate::Error::Validation), like DynamoDB for a request to create this table.
    pub fn build(mut self) -> Result<TableDef> {
        if let Billing::Provisioned(throughput) = self.definition.billing {
            for index in &mut self.definition.indexes {
                if index.kind == IndexKind::Global {
                    index.throughput.get_or_insert(throughput);
                }
            }
        }
        CreateTable::from(self.definition).definition()
    }
}
