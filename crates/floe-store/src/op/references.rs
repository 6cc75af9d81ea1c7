//! What expressions say about key attributes, which a table knows more about than the expression.

use super::constraint::invalid;
use crate::error::{Error, Result};
use crate::expr::{Condition, Path, Paths, Update};
use crate::table::{KeySchema, TableDef};

/// Checks that no path of a condition leads into a key attribute, where nothing can be.
pub(super) fn check_condition(table: &TableDef, condition: Option<&Condition>) -> Result<()> {
    condition.map_or(Ok(()), |condition| {
        condition
            .paths()
            .try_for_each(|path| check_scalar(table, path))
    })
}

/// Checks that no path of a projection leads into a key attribute.
pub(super) fn check_projection(table: &TableDef, projection: Option<&Paths>) -> Result<()> {
    projection.map_or(Ok(()), |paths| {
        paths
            .0
            .iter()
            .try_for_each(|path| check_scalar(table, path))
    })
}

/// Checks that an update leaves the key alone, and that no path leads into a key attribute.
pub(super) fn check_update(table: &TableDef, update: &Update) -> Result<()> {
    for path in update.paths() {
        if table.key.contains(path.root()) {
            return Err(invalid(format_args!(
                "Cannot update attribute {}. This attribute is part of the key",
                path.root()
            )));
        }
    }
    update
        .paths()
        .chain(update.read_paths())
        .try_for_each(|path| check_scalar(table, path))
}

/// Checks that the filter of a query asks nothing of the key that the query already asks about.
pub(super) fn check_query_filter(queried: &KeySchema, filter: Option<&Condition>) -> Result<()> {
    let mut roots = filter
        .into_iter()
        .flat_map(Condition::paths)
        .map(Path::root);
    match roots.find(|name| queried.contains(name)) {
        Some(name) => Err(Error::Validation(format!(
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: \
             {name}"
        ))),
        None => Ok(()),
    }
}

fn check_scalar(table: &TableDef, path: &Path) -> Result<()> {
    if path.rest().is_empty() {
        return Ok(());
    }
    let whose = if table.key.contains(path.root()) {
        "Key"
    } else if table.indexes.iter().any(|i| i.key.contains(path.root())) {
        "IndexKey"
    } else {
        return Ok(());
    };
    Err(Error::Validation(format!(
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not \
         allowed: {whose}: {}",
        path.root()
    )))
}
