//! Compares a table with its definition: conflicting properties and missing parts.

use floe_store::op::CreateTable;
use floe_store::table::{
    IndexDef, IndexKind, KeyAttribute, KeySchema, Projection, TableDescription, TableStatus,
};
use floe_store::{Name, TableDef};

/// A key as text: `_id:S, _sk:S`.
pub(crate) fn key_text(key: &KeySchema) -> String {
    attributes_text(key.attributes())
}

/// An index as text: `key(product:S) sort(placed:N) project(all)`.
pub(crate) fn index_text(index: &IndexDef) -> String {
    let kind = match index.kind {
        IndexKind::Global => "",
        IndexKind::Local => "local ",
    };
    let sort = match index.key.sort.as_slice() {
        [] => String::new(),
        sort => format!(" sort({})", attributes_text(sort)),
    };
    let key = attributes_text(&index.key.partition);
    let projection = projection_text(&index.projection);
    format!("{kind}key({key}){sort} project({projection})")
}

fn attributes_text<'a>(attributes: impl IntoIterator<Item = &'a KeyAttribute>) -> String {
    let attributes = attributes.into_iter();
    let texts = attributes.map(|a| format!("{}:{}", a.name, a.kind.as_str()));
    texts.collect::<Vec<_>>().join(", ")
}

fn projection_text(projection: &Projection) -> String {
    match projection {
        Projection::All => "all".to_owned(),
        Projection::KeysOnly => "keys".to_owned(),
        Projection::Include(names) => {
            let mut names: Vec<&str> = names.iter().map(Name::as_str).collect();
            names.sort_unstable();
            format!("include({})", names.join(", "))
        }
    }
}

/// Lists how a table conflicts with its definition, where only a person can decide what to do. Anything that the table
/// has beyond the definition is not a difference.
pub(crate) fn differences(expected: &TableDef, actual: &TableDescription) -> Vec<String> {
    let table = &actual.definition;
    let mut found = Vec::new();
    let mut compare = |what: &str, expected: &str, actual: &str| {
        if expected != actual {
            found.push(format!("{what} expected=({expected}) actual=({actual})"));
        }
    };
    compare("key", &key_text(&expected.key), &key_text(&table.key));
    for index in &expected.indexes {
        match existing_index(actual, &index.name) {
            Some(existing) => {
                let what = format!("index {}", index.name);
                compare(&what, &index_text(index), &index_text(existing));
            }
            None => {
                for (attribute, kind) in known_kinds(table, &index.key) {
                    let what = format!("attribute {} of index {}", attribute.name, index.name);
                    compare(&what, attribute.kind.as_str(), kind);
                }
            }
        }
    }
    if let (Some(expected), Some(actual)) = (&expected.ttl_attribute, &table.ttl_attribute) {
        compare("expiry", expected, actual);
    }
    if let (Some(expected), Some(actual)) = (expected.stream, table.stream) {
        compare("stream", expected.as_str(), actual.as_str());
    }
    found
}

/// The types that the table already has for the attributes of a key.
fn known_kinds<'k>(
    table: &TableDef,
    key: &'k KeySchema,
) -> impl Iterator<Item = (&'k KeyAttribute, &'static str)> {
    let known = CreateTable::from(table.clone()).attribute_definitions;
    key.attributes().filter_map(move |attribute| {
        let (_, kind) = known.iter().find(|(name, _)| *name == attribute.name)?;
        Some((attribute, kind.as_str()))
    })
}

/// The index of that name, unless it is being deleted.
fn existing_index<'a>(actual: &'a TableDescription, name: &str) -> Option<&'a IndexDef> {
    match index_status(actual, name) {
        Some(TableStatus::Deleting) => None,
        _ => actual.definition.index(name),
    }
}

fn index_status(actual: &TableDescription, name: &str) -> Option<TableStatus> {
    let index = actual.indexes.iter().find(|index| index.name == name)?;
    Some(index.status)
}

/// Lists what a table lacks compared with its definition, for the error message.
pub(crate) fn missing(expected: &TableDef, actual: Option<&TableDescription>) -> Vec<String> {
    let Some(actual) = actual else {
        return vec!["the table".to_owned()];
    };
    let mut missing = Vec::new();
    if actual.status != TableStatus::Active {
        missing.push(format!("the table is {}", actual.status.as_str()));
    }
    for IndexDef { name, .. } in &expected.indexes {
        match index_status(actual, name) {
            Some(TableStatus::Active) => {}
            Some(status) => missing.push(format!("index {name} is {}", status.as_str())),
            None => missing.push(format!("index {name}")),
        }
    }
    if expected.ttl_attribute.is_some() && actual.definition.ttl_attribute.is_none() {
        missing.push("expiry".to_owned());
    }
    if expected.stream.is_some() && actual.definition.stream.is_none() {
        missing.push("stream".to_owned());
    }
    missing
}
