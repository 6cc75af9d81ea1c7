//! Checks of expressions that depend on the key attributes of the table.

use super::constraint::invalid;
use crate::error::{Error, Result, ensure_none};
use crate::expr::{Condition, Path, Paths, Update};
use crate::table::{KeySchema, TableDef};

/// Rejects paths of a condition that lead into a key attribute, which is always a scalar.
pub(super) fn check_condition(table: &TableDef, condition: Option<&Condition>) -> Result<()> {
    let mut paths = condition.into_iter().flat_map(Condition::paths);
    paths.try_for_each(|path| check_scalar(table, path))
}

/// Rejects paths of a projection that lead into a key attribute.
pub(super) fn check_projection(table: &TableDef, projection: Option<&Paths>) -> Result<()> {
    let mut paths = projection.into_iter().flat_map(|paths| &paths.0);
    paths.try_for_each(|path| check_scalar(table, path))
}

/// Rejects updates of the key, and paths that lead into a key attribute.
pub(super) fn check_update(table: &TableDef, update: &Update) -> Result<()> {
    let mut written = update.paths().map(Path::root);
    ensure_none(written.find(|name| table.key.contains(name)), |name| {
        invalid(format_args!(
            "Cannot update attribute {name}. This attribute is part of the key"
        ))
    })?;
    let mut paths = update.paths().chain(update.read_paths());
    paths.try_for_each(|path| check_scalar(table, path))
}

/// Rejects a filter on attributes of the queried key.
pub(super) fn check_query_filter(queried: &KeySchema, filter: Option<&Condition>) -> Result<()> {
    let mut paths = filter.into_iter().flat_map(Condition::paths);
    ensure_none(paths.find(|path| queried.contains(path.root())), |path| {
        Error::Validation(format!(
            "Filter Expression can only contain non-primary key attributes: Primary key attribute: \
             {}",
            path.root()
        ))
    })
}

fn check_scalar(table: &TableDef, path: &Path) -> Result<()> {
    if path.rest().is_empty() {
        return Ok(());
    }
    let role = if table.key.contains(path.root()) {
        "Key"
    } else if table.indexes.iter().any(|i| i.key.contains(path.root())) {
        "IndexKey"
    } else {
        return Ok(());
    };
    Err(Error::Validation(format!(
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not \
         allowed: {role}: {}",
        path.root()
    )))
}
