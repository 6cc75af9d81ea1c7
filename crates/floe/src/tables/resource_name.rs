//! The names of resources in infrastructure tools. They depend only on the name of the table, because a tool treats a
//! renamed resource as a different table.

use std::collections::BTreeMap;

use floe_store::TableDef;

use crate::error::{Error, ErrorKind, Result};

/// Maximum length of the table name in a resource name, so that it fits into CloudFormation's 255 characters.
const STEM_CHARS_MAX: usize = 200;

/// A logical id of CloudFormation: letters and digits. `Orders` is `OrdersTable`.
pub(crate) fn logical_id(table: &str) -> String {
    let stem = table.chars().filter(char::is_ascii_alphanumeric);
    let stem: String = stem.take(STEM_CHARS_MAX).collect();
    if stem == table {
        return format!("{stem}Table");
    }
    format!("{stem}Table{:08x}", fingerprint(table))
}

/// An identifier of Terraform: letters, digits, `_` and `-`, not beginning with a digit or `-`. `Orders`
/// is `Orders`.
pub(crate) fn identifier(table: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins_well = table.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && table.chars().all(is_allowed) {
        return table.to_owned();
    }
    let stem = table.replace(|c| !is_allowed(c), "_");
    format!("table_{stem}_{:08x}", fingerprint(table))
}

/// FNV-1a: stable across platforms and versions.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Pairs the tables with their resource names, which must be unique.
pub(crate) fn named(
    tables: Vec<TableDef>,
    name: fn(&str) -> String,
) -> Result<Vec<(String, TableDef)>> {
    let mut seen = BTreeMap::new();
    let mut named = Vec::with_capacity(tables.len());
    for table in tables {
        let resource = name(&table.name);
        if let Some(other) = seen.insert(resource.clone(), table.name.clone()) {
            let what = "two tables have the same resource name";
            let message = format!("{what}: resource={resource} tables={other},{}", table.name);
            return Err(Error::new(ErrorKind::Table, message));
        }
        named.push((resource, table));
    }
    Ok(named)
}
