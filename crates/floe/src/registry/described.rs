//! Registries known by their descriptions, which are stored in their tables, and used without a struct.
//!
//! ```
//! use floe::{Db, Error, Registry};
//! use floe_store::Item;
//!
//! #[derive(Registry)]
//! #[registry(table = "images", pk = "img#{service}", sk = "v{version}", latest = "latest")]
//! struct Image { service: String, digest: String }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_registries(&[Image::SCHEMA]).await?;
//!
//! // Another program that only knows the table name.
//! let found = db.described_registries("images").await?;
//! let images = db.registry_described(found[0]);
//! let image = Item::new().with("service", "shop").with("digest", "a1");
//! assert_eq!(images.publish(&image).await?, 1);
//! let shop = images.group(&[("service", "shop")])?;
//! assert_eq!(images.latest(shop).await?.expect("published").value, image);
//! # Ok(())
//! # }
//! ```
//!
//! The description of a registry is an item of its table, with keys that end with `#`. Versions and aliases have no
//! such keys: versions end with digits, and `#` is escaped in alias names; a pointer with such a key is rejected. Its
//! only other attribute begins with `_`, like no field, so that it is in no index.

use std::collections::BTreeMap;

use floe_store::expr::KeyCondition;
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{PutItem, Query};
use floe_store::{Error as StoreError, Item, Value};

use super::Versions;
use super::deployed::{self, latest_of_groups};
use super::group::Group;
use super::keys::ItemKey;
use super::reads::Reads;
use super::schema::{Layout, PARTITION_KEY, RegistryField, RegistrySchema, SORT_KEY};
use super::version::{Status, Version};
use crate::attribute::FieldKind;
use crate::attribute::Invalid;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Budget, repeat};

/// The partition key of descriptions, and the prefix of their sort keys.
pub(super) const DESCRIPTIONS_KEY: &str = "_registry#";
/// The attribute with the description.
const DESCRIPTION: &str = "_registry";

impl Db {
    /// Returns the versions of a registry given by its schema, from [`described_registries`](Db::described_registries)
    /// or [`RegistrySchema::from_description`]. Its values are items with the attributes of its fields.
    pub fn registry_described(&self, schema: &'static RegistrySchema) -> Versions<'static, Item> {
        Versions::new(self.clone(), None, schema)
    }

    /// Returns the registries described in a table, ordered by name.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) if the table is missing or contains an invalid description,
    /// [`Store`](ErrorKind::Store) if the store is unavailable.
    pub async fn described_registries(&self, table: &str) -> Result<Vec<&'static RegistrySchema>> {
        let condition = KeyCondition::partition(PARTITION_KEY, DESCRIPTIONS_KEY);
        let query = Query::new(table, condition).consistent();
        let items = self.registry_reads().query(query, None).await?;
        let schemas = items.iter().map(|item| described(table, item));
        schemas.collect()
    }

    /// Stores the descriptions of these registries in their tables, unless they are there already. Does nothing without
    /// permission to write. [`ensure_registries`](Db::ensure_registries) calls it; call it yourself if other tools
    /// create the tables.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) if a table is missing, [`Store`](ErrorKind::Store) if the store is unavailable.
    pub async fn describe_registries(&self, schemas: &[&RegistrySchema]) -> Result<()> {
        let named = schemas
            .iter()
            .map(|schema| (description_key(schema), *schema));
        // A batch may contain each key only once.
        let distinct: BTreeMap<ItemKey, &RegistrySchema> = named.collect();
        let distinct: Vec<_> = distinct.into_iter().collect();
        for schemas in distinct.chunks(BATCH_GET_ITEMS_MAX) {
            match self.describe_some(schemas).await {
                // A description can come from a file as well.
                Err(error) if matches!(error.store_error(), Some(StoreError::AccessDenied(_))) => {}
                described => described?,
            }
        }
        Ok(())
    }

    async fn describe_some(&self, schemas: &[(ItemKey, &RegistrySchema)]) -> Result<()> {
        let keys: Vec<_> = schemas.iter().map(|(key, _)| key.clone()).collect();
        let present = self.registry_reads().stored(&keys).await?;
        for ((key, schema), present) in schemas.iter().zip(present) {
            let item = key.to_item().with(DESCRIPTION, schema.describe());
            if present.as_ref() == Some(&item) {
                continue;
            }
            let put = PutItem::new(key.table, item);
            let write = || self.engine().write_item(put.clone().into());
            repeat(self, Budget::for_read(), write).await?;
        }
        Ok(())
    }

    fn registry_reads(&self) -> Reads<'_> {
        Reads::of_registry(self, None)
    }
}

/// The key of the description of a registry.
fn description_key(schema: &RegistrySchema) -> ItemKey {
    ItemKey {
        table: schema.table,
        pk: DESCRIPTIONS_KEY.to_owned(),
        sk: format!("{DESCRIPTIONS_KEY}{}#", schema.name),
    }
}

fn described(table: &str, item: &Item) -> Result<&'static RegistrySchema> {
    let text = item.get(DESCRIPTION).and_then(Value::as_s);
    let schema = RegistrySchema::from_description_in(text.unwrap_or_default(), table);
    schema.map_err(|error| {
        let key = item.get(SORT_KEY).and_then(Value::as_s).unwrap_or_default();
        Error::new(ErrorKind::Table, format!("{error} table={table} sk={key}"))
    })
}

/// Calls for registries without a struct. Groups and lists are given by field names.
impl Versions<'_, Item> {
    /// Returns the group with these names, each given as a pair of its field or attribute and its value.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if a name is missing, does not belong to the group, or cannot be part
    /// of a key.
    pub fn group(&self, names: &[(&str, &str)]) -> Result<Group<Item>> {
        let values = self.names(names)?;
        let values = self.schema.group.iter().map(|field| {
            let found = values.iter().find(|(named, _)| named.name == field.name);
            Ok(found.map(|(_, value)| value.clone()))
        });
        Group::in_schema(self.schema, &values.collect::<Vec<_>>())
    }

    /// Returns the latest versions of all groups with these names: of one group if all names are given, otherwise from
    /// an index on one of them, which may lag. Without names, those of all groups, if their pointers share a partition.
    ///
    /// # Errors
    ///
    /// As for [`group`](Self::group), and [`InvalidUse`](ErrorKind::InvalidUse) if no index is on any of them.
    pub async fn latest_named(&self, names: &[(&str, &str)]) -> Result<Vec<Version<Item>>> {
        if names.len() >= self.schema.group.len() {
            let latest = self.latest(self.group(names)?).await?;
            return Ok(latest.into_iter().collect());
        }
        if names.is_empty() && self.schema.layout == Layout::Versioned {
            return latest_of_groups(self.reads(), self.schema).await;
        }
        self.listed(names, Some(Status::Latest)).await
    }

    /// Returns all deployed versions, latest and deprecated, of groups with these names, from an index on one of them.
    ///
    /// # Errors
    ///
    /// As for [`latest_named`](Self::latest_named).
    pub async fn deployed_named(&self, names: &[(&str, &str)]) -> Result<Vec<Version<Item>>> {
        self.listed(names, None).await
    }

    async fn listed(
        &self,
        names: &[(&str, &str)],
        status: Option<Status>,
    ) -> Result<Vec<Version<Item>>> {
        let (schema, names) = (self.schema, self.names(names)?);
        let by = schema.indexes.iter().find_map(|index| {
            let field = schema.index_field(index)?;
            let (_, value) = names.iter().find(|(named, _)| named.name == field.name)?;
            Some((index, value.clone()))
        });
        let (index, value) = by.ok_or_else(|| no_index(schema))?;
        let mut versions: Vec<Version<Item>> =
            deployed::deployed(self.reads(), (schema, index), value, status).await?;
        versions.retain(|version| {
            let mut names = names.iter();
            names.all(|(field, value)| version.value.get(field.attribute) == Some(value))
        });
        Ok(versions)
    }

    /// Resolves the fields of these names, and their values.
    fn names(&self, names: &[(&str, &str)]) -> Result<Vec<(&'static RegistryField, Value)>> {
        let mut values: Vec<(&'static RegistryField, Value)> = Vec::with_capacity(names.len());
        for (name, text) in names {
            let invalid =
                |reason: &str| Error::invalid(self.schema.name, name, &Invalid::new(reason));
            let field = self.schema.field(name);
            let field =
                field.filter(|field| self.schema.group.iter().any(|own| own.name == field.name));
            let field = field.ok_or_else(|| {
                let group = self.schema.group_text();
                invalid(&format!(
                    "the field does not belong to the group: group={group}"
                ))
            })?;
            if values.iter().any(|(named, _)| named.name == field.name) {
                return Err(invalid("the field is given twice"));
            }
            let value = match field.kind {
                FieldKind::Number => text.parse().map(Value::N),
                _ => Ok(Value::from(*text)),
            };
            let value =
                value.map_err(|_| invalid(&format!("the field is a number: given={text}")))?;
            values.push((field, value));
        }
        Ok(values)
    }
}

fn no_index(schema: &RegistrySchema) -> Error {
    let indexes = schema.indexes.iter();
    let fields = indexes.filter_map(|index| schema.index_field(index));
    let fields: Vec<_> = fields.map(|field| field.name).collect();
    let by = if fields.is_empty() {
        "none".to_owned()
    } else {
        fields.join(",")
    };
    let (registry, group) = (schema.name, schema.group_text());
    let what = "no index is on any of the given fields: give all fields of the group";
    let message = format!("{what}: registry={registry} group={group} indexes_by={by}");
    Error::new(ErrorKind::InvalidUse, message)
}
