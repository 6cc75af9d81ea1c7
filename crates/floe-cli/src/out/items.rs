//! Items as text: one item as a list of attributes, several as rows of a table.

use floe_store::table::KeySchema;
use floe_store::{Item, Name};

use super::Table;
use super::value::cell;
use crate::note;

/// Maximum number of columns of a table of items; the names of the others are printed in a note.
const COLUMNS_MAX: usize = 8;

/// Prints an item as a list of attributes, the key first.
pub(crate) fn print_item(item: &Item, key: &KeySchema) {
    let mut table = Table::new(["attribute", "type", "value"]);
    for name in ordered(std::slice::from_ref(item), key) {
        if let Some(value) = item.get(&name) {
            table.row([name.as_str(), value.value_type().as_str(), &cell(value)]);
        }
    }
    table.print();
}

/// Prints items as rows. Returns `false` if standard output is closed.
pub(crate) fn print_items(items: &[Item], key: &KeySchema) -> bool {
    if items.is_empty() {
        return true;
    }
    let names = ordered(items, key);
    let (shown, left) = names.split_at(names.len().min(COLUMNS_MAX));
    let mut table = Table::new(shown.iter().map(|name| name.as_str()));
    for item in items {
        let value = |name: &Name| item.get(name).map(cell).unwrap_or_default();
        table.row(shown.iter().map(value));
    }
    let printed = table.print();
    if !left.is_empty() {
        let left: Vec<_> = left.iter().map(|name| name.as_str()).collect();
        note(&format!(
            "not shown: {}; select with --projection, or use --json",
            left.join(", ")
        ));
    }
    printed
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
