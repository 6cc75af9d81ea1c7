//! Items as text: one item as a list of attributes, several as rows of a table.

use floe_store::table::KeySchema;
use floe_store::{Item, Name};

use super::Table;
use super::value::cell;
use crate::Result;

/// Prints an item as a list of attributes, the key first.
pub(crate) fn print_item(item: &Item, key: &KeySchema) -> Result {
    let mut table = Table::new(["attribute", "type", "value"]);
    for name in ordered(std::slice::from_ref(item), key) {
        if let Some(value) = item.get(&name) {
            table.row([name.as_str(), value.value_type().as_str(), &cell(value)]);
        }
    }
    table.print()
}

/// Prints items as rows, with a column for each attribute.
pub(crate) fn print_items(items: &[Item], key: &KeySchema) -> Result {
    if items.is_empty() {
        return Ok(());
    }
    let names = ordered(items, key);
    let mut table = Table::new(names.iter().map(|name| name.as_str()));
    for item in items {
        let value = |name: &Name| item.get(name).map(cell).unwrap_or_default();
        table.row(names.iter().map(value));
    }
    table.print()
}

/// The names of all attributes: those of the key, then all others sorted.
fn ordered(items: &[Item], key: &KeySchema) -> Vec<Name> {
    let has = |name: &Name| items.iter().any(|item| item.contains(name));
    let keys = key.attributes().map(|attribute| &attribute.name);
    let mut names: Vec<Name> = keys.filter(|name| has(name)).cloned().collect();
    let all = items
        .iter()
        .flat_map(|item| item.iter().map(|(name, _)| name));
    let mut others: Vec<Name> = all.filter(|name| !key.contains(name)).cloned().collect();
    others.sort_unstable();
    others.dedup();
    names.extend(others);
    names
}
