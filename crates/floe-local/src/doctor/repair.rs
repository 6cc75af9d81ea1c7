//! Repairs derived data.
//!
//! The examination has read one snapshot, and later writes may have changed the store. So the committer checks each
//! suspect again in the present state, and changes it only if it is still wrong. Counts are not computed again but
//! corrected by their difference.

use std::sync::Arc;

use floe_store::Result;

use super::Examiner;
use super::examined_table::{ExaminedTable, derived_entries, read_item};
use super::owner::{Owner, owner};
use crate::catalog::Table;
use crate::group::{DiskUse, Group};
use crate::kv::Bytes;
use crate::layout::key::EntryKind;
use crate::layout::record::{Count, decode_collection_size, encode_collection_size};

/// Maximum number of stray entries that are removed in one commit.
const STRAYS_MAX: usize = 1000;

/// Derived data that may be wrong.
#[derive(Clone, Debug)]
pub(super) enum Suspect {
    /// The derived entries of the item with this key.
    Item(Bytes),
    /// The index or expiry entry with this key.
    Entry(Bytes),
    /// The size of a collection.
    CollectionSize {
        /// Its key.
        key: Bytes,
        /// The size that was found.
        found: u64,
        /// The size that was expected.
        expected: u64,
    },
    /// The counts of the table.
    Counts(CountChange),
}

/// Differences of counts: of the table, or of the index with this id.
#[derive(Clone, Debug, Default)]
pub(super) struct CountChange(Vec<(Option<u32>, Count, Count)>);

impl CountChange {
    pub(super) fn add(&mut self, index: Option<u32>, found: Count, expected: Count) {
        self.0.push((index, found, expected));
    }
}

impl Examiner<'_> {
    /// Repairs suspects, if repairs are enabled, and marks their findings.
    pub(super) fn repair_suspects(
        &mut self,
        target: &ExaminedTable,
        suspects: Vec<(Vec<u64>, Suspect)>,
    ) -> Result<()> {
        let Some(committer) = self.repair.filter(|_| !suspects.is_empty()) else {
            return Ok(());
        };
        let (id, filling) = (target.table.id(), target.filling.clone());
        let (numbers, suspects): (Vec<_>, Vec<_>) = suspects.into_iter().unzip();
        let repaired = committer.run(DiskUse::Grows, move |group| {
            let Some(table) = group.shared().catalog.get_by_id(id) else {
                // The table no longer exists, so nothing is wrong with it.
                return Ok(vec![true; suspects.len()]);
            };
            let is_filling = |kind: EntryKind| filling.contains(&kind);
            let repair_suspect = |suspect| repair_suspect(group, &table, suspect, is_filling);
            suspects
                .into_iter()
                .map(repair_suspect)
                .collect::<Result<Vec<bool>>>()
        });
        for (numbers, repaired) in numbers.into_iter().zip(repaired.wait()?) {
            for number in numbers.into_iter().filter(|_| repaired) {
                self.report.set_repaired(number);
            }
        }
        Ok(())
    }

    /// Removes all readable entries of a kind that the table does not have.
    pub(super) fn remove_strays(
        &mut self,
        target: &ExaminedTable,
        kind: EntryKind,
        number: u64,
    ) -> Result<()> {
        let Some(committer) = self.repair else {
            return Ok(());
        };
        let id = target.table.id();
        loop {
            let removed = committer.run(DiskUse::Grows, move |group| {
                let shared = group.shared();
                let Some(table) = shared.catalog.get_by_id(id) else {
                    return Ok((0, true));
                };
                // In an exclusive group, the snapshot is the present state. Ids are never reused, so the table cannot
                // get entries of this kind later.
                let snapshot = shared.kv.snapshot();
                let (mut removed, mut complete) = (0, true);
                for entry in snapshot.salvage(table.space(), kind.bounds()) {
                    let Ok((key, _)) = entry else {
                        complete = false;
                        continue;
                    };
                    group.remove(table.space(), key);
                    removed += 1;
                    if removed == STRAYS_MAX {
                        break;
                    }
                }
                Ok((removed, complete))
            });
            let (removed, complete) = removed.wait()?;
            if removed < STRAYS_MAX {
                if complete {
                    self.report.set_repaired(number);
                }
                return Ok(());
            }
        }
    }
}

/// Repairs a suspect. `false` if that is not possible.
fn repair_suspect(
    group: &mut Group<'_>,
    table: &Arc<Table>,
    suspect: Suspect,
    is_filling: impl Fn(EntryKind) -> bool,
) -> Result<bool> {
    let space = table.space();
    match suspect {
        Suspect::Item(key) => {
            let Some(bytes) = group.get(space, &key)? else {
                return Ok(true);
            };
            let Ok(stored) = read_item(table, &key, &bytes) else {
                return Ok(false);
            };
            for entry in derived_entries(table, &key, &stored) {
                match group.get(space, &entry.key)? {
                    Some(found) if found == entry.value => {}
                    // A job will create and count it.
                    None if is_filling(entry.kind) => {}
                    _ => group.put(space, entry.key, entry.value),
                }
            }
            Ok(true)
        }
        Suspect::Entry(key) => {
            let Some(value) = group.get(space, &key)? else {
                return Ok(true);
            };
            match owner(table, &key, &value, |key| group.get(space, key)) {
                Owner::Item => Ok(true),
                Owner::Unreadable => Ok(false),
                Owner::None | Owner::Undecodable => {
                    group.remove(space, key);
                    Ok(true)
                }
            }
        }
        Suspect::CollectionSize {
            key,
            found,
            expected,
        } => {
            let stored = group.get(space, &key)?;
            let size = stored
                .map_or(Ok(0), |bytes| decode_collection_size(&bytes))
                .unwrap_or(0);
            match moved(size, found, expected) {
                0 => group.remove(space, key),
                size => group.put(space, key, encode_collection_size(size)),
            }
            Ok(true)
        }
        Suspect::Counts(change) => {
            let counts = group.counts(table);
            for (index, found, expected) in change.0 {
                let count = match index {
                    None => &mut counts.table,
                    Some(id) => counts.indexes.entry(id).or_default(),
                };
                count.items = moved(count.items, found.items, expected.items);
                count.bytes = moved(count.bytes, found.bytes, expected.bytes);
            }
            Ok(true)
        }
    }
}

/// Adds the difference between two numbers to another one.
const fn moved(number: u64, from: u64, to: u64) -> u64 {
    match to.checked_sub(from) {
        Some(up) => number.saturating_add(up),
        None => number.saturating_sub(from.saturating_sub(to)),
    }
}
