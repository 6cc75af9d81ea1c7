//! The sweeper: removes expired items.
//!
//! Each item with an expiry time has an entry under that time in its table's space, which is written and removed with
//! the item. The sweeper reads the entries that are due and lets the committer remove the items, a bounded number per
//! commit. The committer reads each item again first and keeps one whose expiry time was changed meanwhile.

use std::sync::Arc;

use floe_store::op::ServiceIdentity;
use floe_store::table::FIVE_YEARS_SECS;
use floe_store::{Error, Result};

use crate::apply::ItemChange;
use crate::catalog::Table;
use crate::commit::Committer;
use crate::group::{DiskUse, Group};
use crate::kv::{Bytes, Direction};
use crate::layout::key;
use crate::shared::Shared;
use crate::stored::StoredItem;

/// Maximum number of entries in a step. All of them are removed in one commit, during which other writes wait.
const STEP_ENTRIES_MAX: usize = 100;

/// An expiry entry whose time has passed.
struct DueEntry {
    entry: Bytes,
    item_key: Vec<u8>,
}

/// The result of a step.
#[derive(Default)]
struct SweepResult {
    removed: usize,
    /// The error of the first item that could not be read. Such items are kept and do not block others.
    failure: Option<Error>,
}

/// Removes a bounded number of expired items from each table. Returns the number of removed entries; 0 if nothing is due.
pub(super) fn sweep_expired(committer: &Committer) -> Result<usize> {
    let mut swept = SweepResult::default();
    for table in committer.shared.catalog.tables() {
        if let Some(generation) = table.record.expiry {
            let of_table = sweep_table(committer, &table, generation)?;
            swept.removed += of_table.removed;
            swept.failure = swept.failure.or(of_table.failure);
        }
    }
    match swept.failure {
        Some(error) if swept.removed == 0 => Err(error),
        _ => Ok(swept.removed),
    }
}

fn sweep_table(committer: &Committer, table: &Table, generation: u32) -> Result<SweepResult> {
    let due = due_entries(&committer.shared, table, generation)?;
    if due.is_empty() {
        return Ok(SweepResult::default());
    }
    let id = table.id();
    committer
        .run(DiskUse::Frees, move |group| {
            // Expiry may have been disabled meanwhile, or the table removed.
            let table = group.shared().catalog.get_by_id(id);
            match table.filter(|table| table.record.expiry == Some(generation)) {
                Some(table) => Ok(remove_due(group, &table, generation, &due)),
                None => Ok(SweepResult::default()),
            }
        })
        .wait()
}

fn due_entries(shared: &Shared, table: &Table, generation: u32) -> Result<Vec<DueEntry>> {
    let now = shared.options.env.now().as_secs();
    let bounds = key::expiry_due_bounds(generation, now.saturating_sub(FIVE_YEARS_SECS), now);
    let snapshot = shared.kv.snapshot();
    snapshot
        .range(table.space(), bounds, Direction::Forward)
        .take(STEP_ENTRIES_MAX)
        .map(|entry| {
            let (entry, _) = entry?;
            let (_, item_key) = key::decode_expiry_key(&entry)?;
            Ok(DueEntry { entry, item_key })
        })
        .collect()
}

fn remove_due(
    group: &mut Group<'_>,
    table: &Arc<Table>,
    generation: u32,
    due: &[DueEntry],
) -> SweepResult {
    let mut swept = SweepResult::default();
    for due in due {
        match remove_one(group, table, generation, due) {
            Ok(removed) => swept.removed += usize::from(removed),
            Err(error) => swept.failure = swept.failure.or(Some(error)),
        }
    }
    swept
}

fn remove_one(
    group: &mut Group<'_>,
    table: &Arc<Table>,
    generation: u32,
    due: &DueEntry,
) -> Result<bool> {
    let stored = group.get(table.space(), &due.item_key)?;
    let stored = stored.map(StoredItem::decode).transpose()?;
    let definition = table.definition();
    if let Some(old) = &stored
        && definition.expired(&old.item, group.now())
    {
        let (key, identity) = (due.item_key.clone(), Some(ServiceIdentity::Expiry));
        if let Some(change) = ItemChange::prepare(group, table, key, Some(old), None, identity)? {
            change.write(group);
        }
        return Ok(true);
    }
    // Usually the entry was removed when the item was removed or its expiry time changed. An entry that is still there
    // is an orphan: remove it, or the sweeper would read it forever.
    let expires_at = stored.and_then(|stored| definition.expiry(&stored.item));
    let belongs =
        expires_at.is_some_and(|at| key::expiry_key(generation, at, &due.item_key) == *due.entry);
    let stray = !belongs && group.get(table.space(), &due.entry)?.is_some();
    if stray {
        group.remove(table.space(), due.entry.clone());
    }
    Ok(stray)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use floe_store::env::{ManualClock, Timestamp};
    use floe_store::op::{CreateTable, PutItem};
    use floe_store::table::KeyKind;
    use floe_store::{Engine, Env, Item, TableDef};

    use crate::response::block_on;
    use crate::{LocalEngine, Options};

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn session(ends: u64) -> Item {
        Item::new()
            .with("id", "s")
            .with("until", START.as_secs() + ends)
    }

    fn put(engine: &LocalEngine, item: Item) {
        block_on(engine.write_item(PutItem::new("Sessions", item).into())).unwrap();
    }

    /// An engine with an expired session, and its expiry entry.
    fn engine_with_expired_session() -> (LocalEngine, Arc<Table>, Vec<DueEntry>) {
        let clock = ManualClock::at(START);
        let options = Options::new()
            .env(Env::manual(clock.clone(), 1))
            .background(false);
        let engine = LocalEngine::memory_with(options).unwrap();
        let sessions = TableDef::builder("Sessions", "id", KeyKind::S).ttl("until");
        let create = CreateTable::from(sessions.build().unwrap());
        block_on(engine.create_table(create)).unwrap();
        put(&engine, session(10));
        clock.advance(Duration::from_secs(10));
        let shared = engine.running.shared();
        let table = shared.catalog.get("Sessions").unwrap();
        let due = due_entries(shared, &table, table.record.expiry.unwrap()).unwrap();
        assert_eq!(due.len(), 1);
        (engine, table, due)
    }

    fn sweep(engine: &LocalEngine, table: &Arc<Table>, due: Vec<DueEntry>) -> usize {
        let (table, generation) = (table.clone(), table.record.expiry.unwrap());
        let swept = engine.running.committer.run(DiskUse::Grows, move |group| {
            Ok(remove_due(group, &table, generation, &due))
        });
        let swept = swept.wait().unwrap();
        assert_eq!(swept.failure, None);
        swept.removed
    }

    #[test]
    fn item_extended_during_the_sweep_is_kept() {
        let (engine, table, due) = engine_with_expired_session();
        put(&engine, session(100));
        assert_eq!(sweep(&engine, &table, due), 0);
        assert_eq!(table.counts().table.items, 1);
        assert!(engine.doctor(false).unwrap().is_clean());
    }

    #[test]
    fn item_changed_but_still_expired_is_removed() {
        let (engine, table, due) = engine_with_expired_session();
        put(&engine, session(5));
        assert_eq!(sweep(&engine, &table, due), 1);
        assert_eq!(table.counts().table.items, 0);
        assert!(engine.doctor(false).unwrap().is_clean());
    }

    #[test]
    fn orphaned_expiry_entry_is_removed() {
        let (engine, table, due) = engine_with_expired_session();
        let (space, item_key) = (table.space(), due[0].item_key.clone());
        let lost = engine.running.committer.run(DiskUse::Grows, move |group| {
            group.remove(space, item_key);
            Ok(())
        });
        lost.wait().unwrap();
        assert_eq!(sweep_expired(&engine.running.committer), Ok(1));
        assert_eq!(sweep_expired(&engine.running.committer), Ok(0));
    }

    #[test]
    fn unreadable_item_does_not_block_others() {
        let (engine, table, due) = engine_with_expired_session();
        let (space, item_key) = (table.space(), due[0].item_key.clone());
        let damaged = engine.running.committer.run(DiskUse::Grows, move |group| {
            group.put(space, item_key, b"?".to_vec());
            Ok(())
        });
        damaged.wait().unwrap();
        put(&engine, session(1).with("id", "other"));
        assert_eq!(sweep_expired(&engine.running.committer), Ok(1));
        assert!(sweep_expired(&engine.running.committer).is_err());
        assert_eq!(table.counts().table.items, 1);
    }
}
