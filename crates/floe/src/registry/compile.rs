//! Turns the registry changes of a body into the writes of its commit.
//!
//! Each item is written once, however often it was changed. The conditions cover what must not have changed: the target
//! of a pointer, and the status, expiry, pin and aliases of a version. So if two writers publish concurrently, one of
//! them finds a changed pointer and runs again.

use std::collections::BTreeSet;

use floe_store::Item;
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::size::item_size;

use super::changes::{Changes, ItemState};
use super::keys::{ItemKey, version_of};
use super::stored::{as_it_was, is_absent};
use crate::error::{Error, ErrorKind, Result};
use crate::tx::part::{Failure, Part, PartWrite, Rejection, difference};
use crate::tx::session::{self, PartContext};

/// The registries' part of a commit.
#[derive(Debug)]
struct RegistryPart {
    planned: Vec<PlannedWrite>,
}

/// A write, and the meaning of a failure of its condition.
#[derive(Debug)]
struct PlannedWrite {
    write: TransactWrite,
    group: String,
    registry: &'static str,
    table: &'static str,
    /// Size of the item after the write.
    bytes: usize,
    /// The inconsistency that a failed condition reveals; `None` for a conflict.
    inconsistency: Option<&'static str>,
}

/// The inconsistency if an item differs from what its pointer implies.
const fn inconsistency(state: &ItemState) -> Option<&'static str> {
    match (state.is_inferred, &state.read) {
        (false, _) => None,
        (true, Some(_)) => {
            Some("the version that the pointer refers to does not have the status latest")
        }
        (true, None) => Some("the next version number is already taken"),
    }
}

fn failure(inconsistency: Option<&str>, group: &str) -> Failure {
    let Some(what) = inconsistency else {
        let message = format!("another writer changed the versions: group={group}");
        return Failure::Retry(Error::new(ErrorKind::TransactionFailed, message));
    };
    // After a conflict, the condition on the pointer fails as well, and its failure has priority.
    let message = format!(
        "{what}: another program has changed the items of the registry directly: group={group}"
    );
    Failure::Final(Error::new(ErrorKind::Conflict, message))
}

impl session::Changes for Changes {
    fn into_parts(self, _: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let planned = self.0.into_iter();
        let planned = planned.filter_map(|(key, state)| {
            Some(PlannedWrite {
                inconsistency: inconsistency(&state),
                bytes: state.now.as_ref().map_or(0, item_size),
                group: state.group.to_string(),
                registry: state.group.schema.name,
                table: key.table,
                write: write(&key, state)?,
            })
        });
        let planned = planned.collect();
        Ok(vec![Box::new(RegistryPart { planned })])
    }
}

fn write(key: &ItemKey, state: ItemState) -> Option<TransactWrite> {
    let (schema, table) = (state.group.schema, key.table);
    let is_changed = state.read != state.now;
    let condition = match &state.read {
        Some(read) => as_it_was(schema, read),
        None => is_absent(),
    };
    match (state.read, state.now) {
        _ if !is_changed && !state.is_watched => None,
        (_, _) if !is_changed => {
            let mut check = ConditionCheck::new(table, key.to_item(), condition);
            check.return_old_on_failure = true;
            Some(check.into())
        }
        (Some(read), Some(now)) if version_of(schema, &read).is_some() => {
            let update = UpdateItem::new(table, key.to_item(), difference(&read, &now));
            Some(update.condition(condition).return_old_on_failure().into())
        }
        (_, Some(now)) => {
            let put = PutItem::new(table, now).condition(condition);
            Some(put.return_old_on_failure().into())
        }
        (_, None) => {
            let delete = DeleteItem::new(table, key.to_item()).condition(condition);
            Some(delete.return_old_on_failure().into())
        }
    }
}

impl Part for RegistryPart {
    fn is_write(&self) -> bool {
        let is_write = |planned: &PlannedWrite| !matches!(planned.write, TransactWrite::Check(_));
        self.planned.iter().any(is_write)
    }

    fn read_only_error(&self) -> Error {
        let groups: BTreeSet<_> = self.planned.iter().map(|planned| &*planned.group).collect();
        let groups: Vec<_> = groups.into_iter().collect();
        let groups = groups.join(",");
        let message = format!("a read-only transaction cannot change a registry: groups={groups}");
        Error::new(ErrorKind::ReadOnly, message)
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        let tables = self.planned.iter();
        tables
            .map(|planned| (planned.table.to_owned(), planned.registry))
            .collect()
    }

    fn remedy(&self) -> &'static str {
        "call ensure_registries"
    }

    fn writes(&self) -> Result<Vec<PartWrite>> {
        let too_large = |planned: &&PlannedWrite| planned.bytes > ITEM_BYTES_MAX;
        if let Some(PlannedWrite { group, bytes, .. }) = self.planned.iter().find(too_large) {
            let what = "the version is too large";
            let message = format!("{what}: group={group} bytes={bytes} max={ITEM_BYTES_MAX}");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let writes = self.planned.iter().map(|planned| PartWrite {
            write: planned.write.clone(),
            bytes: planned.bytes,
        });
        Ok(writes.collect())
    }

    fn condition_failed(&self, at: usize, _: Option<&Item>) -> Rejection {
        match self.planned.get(at) {
            Some(planned) => failure(planned.inconsistency, &planned.group).into(),
            None => failure(None, "unknown").into(),
        }
    }
}
