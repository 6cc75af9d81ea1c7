//! Registries that are known by their descriptions: kept in their tables, read from there, and used without a struct.
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
//! // Another program, which knows the name of the table alone.
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
//! The description of a registry is an item of its table, under keys that end with `#`. No version has such a key, for it
//! ends with digits, and no alias, for `#` is escaped in its name; a pointer that would have it is refused. Its only
//! other attribute begins with `_`, as that of no field does, so that it is in no index.

use std::collections::BTreeMap;

use floe_store::expr::KeyCondition;
use floe_store::limits::BATCH_GET_ITEMS_MAX;
use floe_store::op::{PutItem, Query};
use floe_store::{Error as StoreError, Item, Value};

use super::Versions;
use super::deployed::{self, latest_of_groups};
use super::group::Group;
use super::keys::Place;
use super::reads::Reads;
use super::schema::{Layout, PARTITION_KEY, RegistryField, RegistrySchema, SORT_KEY};
use super::version::{Status, Version};
use crate::attribute::FieldKind;
use crate::attribute::Invalid;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Budget, repeat};

/// What the keys of descriptions begin with.
pub(super) const DESCRIBED: &str = "_registry#";
/// The attribute of the description.
const DESCRIPTION: &str = "_registry";

impl Db {
    /// The versions of a registry that is known by its description: [`described_registries`](Db::described_registries)
    /// or [`RegistrySchema::from_description`] tells it. Its values are items with the attributes of its fields.
    pub fn registry_described(&self, schema: &'static RegistrySchema) -> Versions<'static, Item> {
        Versions::new(self.clone(), None, schema)
    }

    /// The registries that are described in a table, in the order of their names.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) when the table is missing, or a description in it cannot be used,
    /// [`Store`](ErrorKind::Store) when the store cannot answer.
    pub async fn described_registries(&self, table: &str) -> Result<Vec<&'static RegistrySchema>> {
        let condition = KeyCondition::partition(PARTITION_KEY, DESCRIBED);
        let query = Query::new(table, condition).consistent();
        let items = self.registry_reads().query(query, None).await?;
        let schemas = items.iter().map(|item| described(table, item));
        schemas.collect()
    }

    /// Keeps the descriptions of these registries in their tables, where they are not kept already. Who may not write
    /// there does without. [`ensure_registries`](Db::ensure_registries) does so by itself; call it where the tables are
    /// made by other means.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) when a table is missing, [`Store`](ErrorKind::Store) when the store cannot answer.
    pub async fn describe_registries(&self, schemas: &[&RegistrySchema]) -> Result<()> {
        let named = schemas.iter().map(|schema| (place(schema), *schema));
        // A request takes each key once.
        let distinct: BTreeMap<Place, &RegistrySchema> = named.collect();
        let distinct: Vec<_> = distinct.into_iter().collect();
        for schemas in distinct.chunks(BATCH_GET_ITEMS_MAX) {
            match self.describe_some(schemas).await {
                // What a description is for can be had from a file as well.
                Err(error) if matches!(error.store_error(), Some(StoreError::AccessDenied(_))) => {}
                described => described?,
            }
        }
        Ok(())
    }

    async fn describe_some(&self, schemas: &[(Place, &RegistrySchema)]) -> Result<()> {
        let places: Vec<_> = schemas.iter().map(|(place, _)| place.clone()).collect();
        let known = self.registry_reads().placed(&places).await?;
        for ((place, schema), known) in schemas.iter().zip(known) {
            let item = place.key().with(DESCRIPTION, schema.describe());
            if known.as_ref() == Some(&item) {
                continue;
            }
            let put = PutItem::new(place.table, item);
            let write = || self.engine().write_item(put.clone().into());
            repeat(self, Budget::for_read(), write).await?;
        }
        Ok(())
    }

    fn registry_reads(&self) -> Reads<'_> {
        Reads::of_registry(self, None)
    }
}

/// Where the description of a registry is.
fn place(schema: &RegistrySchema) -> Place {
    Place {
        table: schema.table,
        pk: DESCRIBED.to_owned(),
        sk: format!("{DESCRIBED}{}#", schema.name),
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

/// Calls for registries without a struct: groups and lists by the names of fields.
impl Versions<'_, Item> {
    /// The group of these names, each with the name of its field or of its attribute before it.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when a name is missing, is not one of the group, or cannot be in a key.
    pub fn group(&self, names: &[(&str, &str)]) -> Result<Group<Item>> {
        let known = self.names(names)?;
        let values = self.schema.group.iter().map(|field| {
            let found = known.iter().find(|(known, _)| known.name == field.name);
            Ok(found.map(|(_, value)| value.clone()))
        });
        Group::in_schema(self.schema, &values.collect::<Vec<_>>())
    }

    /// The latest versions of all groups that have these names, as far as the index knows: of one if all are given,
    /// otherwise by an index by one of them. Without any, those of all groups, where they are in one partition.
    ///
    /// # Errors
    ///
    /// As for [`group`](Self::group), and [`InvalidUse`](ErrorKind::InvalidUse) when there is no index by any of them.
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

    /// All versions that are deployed in groups of these names, the latest and the deprecated, by an index by one of them.
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
            let (_, value) = names.iter().find(|(known, _)| known.name == field.name)?;
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

    /// The fields that these names are of, and their values.
    fn names(&self, names: &[(&str, &str)]) -> Result<Vec<(&'static RegistryField, Value)>> {
        let mut known: Vec<(&'static RegistryField, Value)> = Vec::with_capacity(names.len());
        for (name, text) in names {
            let invalid =
                |reason: &str| Error::invalid(self.schema.name, name, &Invalid::new(reason));
            let field = self.schema.field(name);
            let field =
                field.filter(|field| self.schema.group.iter().any(|own| own.name == field.name));
            let field = field.ok_or_else(|| {
                let group = self.schema.group_text();
                invalid(&format!("the name is none of the group: group={group}"))
            })?;
            if known.iter().any(|(known, _)| known.name == field.name) {
                return Err(invalid("the name is given twice"));
            }
            let value = match field.kind {
                FieldKind::Number => text.parse().map(Value::N),
                _ => Ok(Value::from(*text)),
            };
            let value =
                value.map_err(|_| invalid(&format!("the name is a number: given={text}")))?;
            known.push((field, value));
        }
        Ok(known)
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
    let what = "there is no index by any of the names that are given; give all of the group";
    let message = format!("{what}: registry={registry} group={group} indexes_by={by}");
    Error::new(ErrorKind::InvalidUse, message)
}
