//! From what a body did in registries to the writes of its commit.
//!
//! Each item is written once, however often it was changed. What must not have changed stands in the conditions: that a
//! pointer leads to what it did, that a version has the status, the expiry, the pin and the aliases that it had. So of two
//! who publish at once, one finds the pointer moved and runs again.

use std::collections::BTreeSet;

use floe_store::Item;
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::size::item_size;

use super::changes::{Changes, State};
use super::keys::{Place, version_of};
use super::stored::{as_it_was, is_absent};
use crate::error::{Error, ErrorKind, Result};
use crate::tx::part::{Failure, Part, PartWrite, Refusal, difference};
use crate::tx::session::{self, PartContext};

/// The share of registries in a commit.
#[derive(Debug)]
struct RegistryPart {
    planned: Vec<Planned>,
}

/// A write, and what it means if its condition does not hold.
#[derive(Debug)]
struct Planned {
    write: TransactWrite,
    group: String,
    registry: &'static str,
    table: &'static str,
    /// The bytes of the item as it is to be.
    bytes: usize,
    /// What is wrong then; `None` if somebody else was faster.
    wrong: Option<&'static str>,
}

/// What is wrong if an item is not as the pointer tells.
const fn wrong(state: &State) -> Option<&'static str> {
    match (state.is_told, &state.read) {
        (false, _) => None,
        (true, Some(_)) => {
            Some("the version that the pointer leads to is not the latest by its own word")
        }
        (true, None) => Some("the number after the last that the pointer tells is taken"),
    }
}

fn failure(wrong: Option<&str>, group: &str) -> Failure {
    let Some(what) = wrong else {
        let message = format!("somebody else changed the versions: group={group}");
        return Failure::Retry(Error::new(ErrorKind::TransactionFailed, message));
    };
    // If somebody else was faster, the pointer is refused as well, and that counts more.
    let message = format!("{what}; somebody has written past the registry: group={group}");
    Failure::Final(Error::new(ErrorKind::Conflict, message))
}

impl session::Changes for Changes {
    fn into_parts(self, _: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let planned = self.0.into_iter();
        let planned = planned.filter_map(|(place, state)| {
            Some(Planned {
                wrong: wrong(&state),
                bytes: state.now.as_ref().map_or(0, item_size),
                group: state.group.to_string(),
                registry: state.group.schema.name,
                table: place.table,
                write: write(&place, state)?,
            })
        });
        let planned = planned.collect();
        Ok(vec![Box::new(RegistryPart { planned })])
    }
}

fn write(place: &Place, state: State) -> Option<TransactWrite> {
    let (schema, table) = (state.group.schema, place.table);
    let is_changed = state.read != state.now;
    let condition = match &state.read {
        Some(read) => as_it_was(schema, read),
        None => is_absent(),
    };
    match (state.read, state.now) {
        _ if !is_changed && !state.is_watched => None,
        (_, _) if !is_changed => {
            let mut check = ConditionCheck::new(table, place.key(), condition);
            check.return_old_on_failure = true;
            Some(check.into())
        }
        (Some(read), Some(now)) if version_of(schema, &read).is_some() => {
            let update = UpdateItem::new(table, place.key(), difference(&read, &now));
            Some(update.condition(condition).return_old_on_failure().into())
        }
        (_, Some(now)) => {
            let put = PutItem::new(table, now).condition(condition);
            Some(put.return_old_on_failure().into())
        }
        (_, None) => {
            let delete = DeleteItem::new(table, place.key()).condition(condition);
            Some(delete.return_old_on_failure().into())
        }
    }
}

impl Part for RegistryPart {
    fn is_write(&self) -> bool {
        let is_write = |planned: &Planned| !matches!(planned.write, TransactWrite::Check(_));
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
        let too_large = |planned: &&Planned| planned.bytes > ITEM_BYTES_MAX;
        if let Some(Planned { group, bytes, .. }) = self.planned.iter().find(too_large) {
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

    fn refused(&self, at: usize, _: Option<&Item>) -> Refusal {
        match self.planned.get(at) {
            Some(planned) => failure(planned.wrong, &planned.group).into(),
            None => failure(None, "unknown").into(),
        }
    }
}
