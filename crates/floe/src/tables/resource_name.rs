//! The names of resources in the tools: made of the name of the table alone, because a tool takes a
//! resource of another name for another table.

use std::collections::BTreeMap;

use floe_store::TableDef;

use crate::error::{Error, ErrorKind, Result};

/// What is kept of a name of a table, so that the whole fits into the 255 characters of CloudFormation.
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

/// FNV-1a, which is the same everywhere and for ever.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The tables with their names in a tool, which must differ.
pub(crate) fn named(
    tables: Vec<TableDef>,
    name: fn(&str) -> String,
) -> Result<Vec<(String, TableDef)>> {
    let mut taken = BTreeMap::new();
    let mut named = Vec::with_capacity(tables.len());
    for table in tables {
        let resource = name(&table.name);
        if let Some(other) = taken.insert(resource.clone(), table.name.clone()) {
            let what = "two tables come to the same name of a resource";
            let message = format!("{what}: resource={resource} tables={other},{}", table.name);
            return Err(Error::new(ErrorKind::Table, message));
        }
        named.push((resource, table));
    }
    Ok(named)
}
