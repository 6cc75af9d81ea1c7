//! The table definitions of registries, also as infrastructure code, like those of models.

use std::collections::BTreeMap;

use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection, StreamView};

use super::described::DESCRIPTIONS_KEY;
use super::schema::{Layout, PARTITION_KEY, RegistrySchema, SORT_KEY};
use crate::attribute::FieldKind;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tables::{ENSURE_DEADLINE, InfrastructureFormat, TableChange, infrastructure_of};

/// Returns the definitions of the tables of these registries, ordered by name.
///
/// # Errors
///
/// [`Table`](ErrorKind::Table) if registries in one table have conflicting definitions, if the keys of two registries
/// could collide, or if the table is invalid.
pub fn registry_tables(schemas: &[&RegistrySchema]) -> Result<Vec<TableDef>> {
    let mut tables: BTreeMap<&str, Vec<&RegistrySchema>> = BTreeMap::new();
    for schema in schemas {
        let sharing = tables.entry(schema.table).or_default();
        if sharing.iter().all(|known| known.name != schema.name) {
            sharing.push(schema);
        }
    }
    let tables = tables.into_iter();
    tables
        .map(|(table, sharing)| definition(table, &sharing))
        .collect()
}

/// Returns the tables of these registries as infrastructure code, like
/// [`infrastructure`](crate::model::tables::infrastructure) for models.
///
/// # Errors
///
/// As for [`registry_tables`].
pub fn registry_infrastructure(
    schemas: &[&RegistrySchema],
    format: InfrastructureFormat,
) -> Result<String> {
    infrastructure_of(registry_tables(schemas)?, format)
}

impl Db {
    /// Creates missing tables of these registries, with their indexes, expiry and change streams, and waits until they
    /// are active. Then stores the [descriptions](super::describe) of the registries in them, for programs without the
    /// structs.
    ///
    /// # Errors
    ///
    /// As for [`ensure_tables`](Db::ensure_tables) and [`registry_tables`].
    pub async fn ensure_registries(&self, schemas: &[&RegistrySchema]) -> Result<Vec<TableChange>> {
        let tables = registry_tables(schemas)?;
        let changes = self.ensure_definitions(tables, ENSURE_DEADLINE).await?;
        self.describe_registries(schemas).await?;
        Ok(changes)
    }
}

fn definition(table: &str, sharing: &[&RegistrySchema]) -> Result<TableDef> {
    let fault = |what: &str, details: &str| {
        let names: Vec<_> = sharing.iter().map(|schema| schema.name).collect();
        let names = names.join(",");
        let message = format!("{what}: table={table} registries={names}{details}");
        Error::new(ErrorKind::Table, message)
    };
    for (at, one) in sharing.iter().enumerate() {
        if let Some(other) = sharing.iter().skip(at + 1).find(|other| meet(one, other)) {
            let details = format!(" one={} other={}", one.name, other.name);
            let what = "the keys of two registries in one table could collide: choose prefixes of which none begins with the other";
            return Err(fault(what, &details));
        }
    }
    if sharing
        .iter()
        .any(|one| one.latest.starts_with(DESCRIPTIONS_KEY))
    {
        let details = format!(" latest={DESCRIPTIONS_KEY}");
        return Err(fault(
            "the keys of pointers could collide with those of descriptions",
            &details,
        ));
    }
    let mut builder =
        TableDef::builder(table, PARTITION_KEY, KeyKind::S).sort_key(SORT_KEY, KeyKind::S);
    let mut indexes: BTreeMap<&str, (&str, KeyKind, &str)> = BTreeMap::new();
    for schema in sharing {
        for index in schema.indexes {
            let (Some(field), Some(status)) = (schema.index_field(index), schema.status) else {
                continue;
            };
            let index_key = (field.attribute, key_kind(field.kind), status);
            match indexes.insert(index.name, index_key) {
                Some(known) if known != index_key => {
                    let what = "registries of one table define an index differently";
                    return Err(fault(what, &format!(" index={}", index.name)));
                }
                Some(_) => {}
                None => {
                    let (partition, sort) = ((index_key.0, index_key.1), (status, KeyKind::S));
                    builder =
                        builder.global_index(index.name, [partition], [sort], Projection::All);
                }
            }
        }
    }
    if let Some(expires) = expiry(sharing, &fault)? {
        builder = builder.ttl(expires).stream(StreamView::NewAndOldImages);
    }
    let built = builder.build();
    built.map_err(|error| fault(&error.to_string(), "").with_source(error))
}

const fn key_kind(kind: FieldKind) -> KeyKind {
    match kind {
        FieldKind::Number => KeyKind::N,
        _ => KeyKind::S,
    }
}

/// The attribute by which items of the table expire.
fn expiry(
    sharing: &[&RegistrySchema],
    fault: &dyn Fn(&str, &str) -> Error,
) -> Result<Option<&'static str>> {
    let mut declared = sharing.iter().filter_map(|schema| schema.expires);
    let Some(expires) = declared.next() else {
        return Ok(None);
    };
    if declared.any(|other| other != expires) {
        let what = "registries of one table expire by different attributes";
        return Err(fault(what, ""));
    }
    // The store would remove versions of a registry that does not declare an expiry.
    let silent = sharing.iter().find(|schema| {
        let own = [schema.version, schema.published, schema.deleted];
        schema.expires.is_none()
            && own
                .into_iter()
                .chain(schema.fields.iter().map(|field| field.attribute))
                .any(|name| name == expires)
    });
    match silent {
        None => Ok(Some(expires)),
        Some(schema) => Err(fault(
            "versions would expire by an attribute that another registry of the table declares as expiry",
            &format!(" attribute={expires} registry={}", schema.name),
        )),
    }
}

/// Whether an item could belong to both registries.
fn meet(one: &RegistrySchema, other: &RegistrySchema) -> bool {
    let begin_alike = |ones: &[&str], others: &[&str]| {
        ones.iter().any(|one| {
            let mut others = others.iter();
            others.any(|other| one.starts_with(other) || other.starts_with(one))
        })
    };
    let (one_pk, one_sk) = leads(one);
    let (other_pk, other_sk) = leads(other);
    begin_alike(&one_pk, &other_pk) && begin_alike(&one_sk, &other_sk)
}

/// The prefixes of the partition keys and of the sort keys of a registry.
fn leads(schema: &RegistrySchema) -> (Vec<&'static str>, Vec<&'static str>) {
    let (groups, versions) = (vec![schema.group_lead()], schema.version_leads().to_vec());
    match schema.layout {
        Layout::Grouped => (groups, versions),
        Layout::Versioned => (versions, groups),
    }
}

#[cfg(test)]
mod tests;
