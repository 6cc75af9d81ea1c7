//! The sweeper: removes items whose moment of expiry has passed.
//!
//! Each item that names a moment of expiry has an entry under that moment in its table's space, written
//! and removed with the item. The sweeper walks the entries that are due and has the committer remove
//! the items, a bounded number at a time. The committer looks at each item again first, so one whose
//! moment was moved meanwhile stays.

use std::sync::Arc;

use floe_store::op::ServiceIdentity;
use floe_store::table::FIVE_YEARS_SECS;
use floe_store::{Error, Result};

use crate::apply::ItemChange;
use crate::catalog::Table;
use crate::commit::Committer;
use crate::group::{Effect, Group};
use crate::kv::{Bytes, Direction};
use crate::layout::key;
use crate::shared::Shared;
use crate::stored::StoredItem;

/// The most entries that one step looks at. All of a step are removed in one commit, during which other
/// writes wait.
const STEP_ENTRIES_MAX: usize = 100;

/// An expiry entry whose moment has come.
struct Due {
    entry: Bytes,
    item_key: Vec<u8>,
}

/// What became of the entries of a step.
#[derive(Default)]
struct Swept {
    removed: usize,
    /// The first of the items that could not be read. They stay, and do not keep others from going.
    failure: Option<Error>,
}

/// Removes a bounded number of expired items of each table. Answers how many entries it removed; when
/// that is nothing, there is nothing to do for now.
pub(super) fn sweep_expired(committer: &Committer) -> Result<usize> {
    let mut swept = Swept::default();
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

fn sweep_table(committer: &Committer, table: &Table, generation: u32) -> Result<Swept> {
    let due = due_entries(&committer.shared, table, generation)?;
    if due.is_empty() {
        return Ok(Swept::default());
    }
    let id = table.id();
    committer
        .run(Effect::Frees, move |group| {
            // Expiry may have been switched off since, or the table removed.
            let table = group.shared().catalog.get_by_id(id);
            match table.filter(|table| table.record.expiry == Some(generation)) {
                Some(table) => Ok(remove_due(group, &table, generation, &due)),
                None => Ok(Swept::default()),
            }
        })
        .wait()
}

fn due_entries(shared: &Shared, table: &Table, generation: u32) -> Result<Vec<Due>> {
    let now = shared.options.env.now().as_secs();
    let bounds = key::expiry_due_bounds(generation, now.saturating_sub(FIVE_YEARS_SECS), now);
    let snapshot = shared.kv.snapshot();
    snapshot
        .range(table.space(), bounds, Direction::Forward)
        .take(STEP_ENTRIES_MAX)
        .map(|entry| {
            let (entry, _) = entry?;
            let (_, item_key) = key::decode_expiry_key(&entry)?;
            Ok(Due { entry, item_key })
        })
        .collect()
}

fn remove_due(group: &mut Group<'_>, table: &Arc<Table>, generation: u32, due: &[Due]) -> Swept {
    let mut swept = Swept::default();
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
    due: &Due,
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
    // The entry went with the item, or with the moment that was moved. If it did not, it is a stray
    // one, and would be looked at for ever.
    let moment = stored.and_then(|stored| definition.expiry(&stored.item));
    let belongs =
        moment.is_some_and(|at| key::expiry_key(generation, at, &due.item_key) == *due.entry);
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

    use crate::answer::block_on;
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

    /// An engine with a session that has ended, and the entry that says so.
    fn ended() -> (LocalEngine, Arc<Table>, Vec<Due>) {
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

    fn sweep(engine: &LocalEngine, table: &Arc<Table>, due: Vec<Due>) -> usize {
        let (table, generation) = (table.clone(), table.record.expiry.unwrap());
        let swept = engine.running.committer.run(Effect::Grows, move |group| {
            Ok(remove_due(group, &table, generation, &due))
        });
        let swept = swept.wait().unwrap();
        assert_eq!(swept.failure, None);
        swept.removed
    }

    #[test]
    fn an_item_that_is_moved_while_the_sweeper_looks_stays() {
        let (engine, table, due) = ended();
        put(&engine, session(100));
        assert_eq!(sweep(&engine, &table, due), 0);
        assert_eq!(table.counts().table.items, 1);
        assert!(engine.doctor(false).unwrap().is_clean());
    }

    #[test]
    fn an_item_that_is_moved_and_still_ended_goes() {
        let (engine, table, due) = ended();
        put(&engine, session(5));
        assert_eq!(sweep(&engine, &table, due), 1);
        assert_eq!(table.counts().table.items, 0);
        assert!(engine.doctor(false).unwrap().is_clean());
    }

    #[test]
    fn an_entry_without_an_item_goes() {
        let (engine, table, due) = ended();
        let (space, item_key) = (table.space(), due[0].item_key.clone());
        let lost = engine.running.committer.run(Effect::Grows, move |group| {
            group.remove(space, item_key);
            Ok(())
        });
        lost.wait().unwrap();
        assert_eq!(sweep_expired(&engine.running.committer), Ok(1));
        assert_eq!(sweep_expired(&engine.running.committer), Ok(0));
    }

    #[test]
    fn an_item_that_cannot_be_read_keeps_no_other_from_going() {
        let (engine, table, due) = ended();
        let (space, item_key) = (table.space(), due[0].item_key.clone());
        let damaged = engine.running.committer.run(Effect::Grows, move |group| {
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
