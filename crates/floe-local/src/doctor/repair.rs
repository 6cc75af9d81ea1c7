//! Puts right what follows from the items.
//!
//! The examination has seen one snapshot, and writes may have come since. So the committer looks at each
//! doubtful thing again, in the present, and changes it only if it is still wrong. Counters are not
//! counted again but moved by as much as they were off.

use std::sync::Arc;

use floe_store::Result;

use super::Examiner;
use super::owner::{Owner, owner};
use super::subject::{Subject, derived, read_item};
use crate::catalog::Table;
use crate::group::{Effect, Group};
use crate::kv::Bytes;
use crate::layout::key::EntryKind;
use crate::layout::record::{Count, decode_weight, encode_weight};

/// The most stray entries that are removed in one commit.
const STRAYS_MAX: usize = 1000;

/// Something that may be wrong.
#[derive(Clone, Debug)]
pub(super) enum Doubt {
    /// The entries of the item under this key.
    Item(Bytes),
    /// The index or expiry entry under this key.
    Entry(Bytes),
    /// The weight of a collection.
    Weight {
        /// Its key.
        key: Bytes,
        /// What it was.
        found: u64,
        /// What it should have been.
        expected: u64,
    },
    /// The counters of the table.
    Counts(CountChange),
}

/// By how much counters are off: of the table, or of the index with this id.
#[derive(Clone, Debug, Default)]
pub(super) struct CountChange(Vec<(Option<u32>, Count, Count)>);

impl CountChange {
    pub(super) fn add(&mut self, index: Option<u32>, found: Count, expected: Count) {
        self.0.push((index, found, expected));
    }
}

impl Examiner<'_> {
    /// Has doubtful things put right, if that is wanted, and marks their findings.
    pub(super) fn repair_doubts(
        &mut self,
        subject: &Subject,
        doubts: Vec<(Vec<u64>, Doubt)>,
    ) -> Result<()> {
        let Some(committer) = self.repair.filter(|_| !doubts.is_empty()) else {
            return Ok(());
        };
        let (id, filling) = (subject.table.id(), subject.filling.clone());
        let (numbers, doubts): (Vec<_>, Vec<_>) = doubts.into_iter().unzip();
        let settled = committer.run(Effect::Grows, move |group| {
            let Some(table) = group.shared().catalog.get_by_id(id) else {
                // The table is gone, and what was wrong with it.
                return Ok(vec![true; doubts.len()]);
            };
            let is_filling = |kind: EntryKind| filling.contains(&kind);
            let settle = |doubt| settle(group, &table, doubt, is_filling);
            doubts
                .into_iter()
                .map(settle)
                .collect::<Result<Vec<bool>>>()
        });
        for (numbers, settled) in numbers.into_iter().zip(settled.wait()?) {
            for number in numbers.into_iter().filter(|_| settled) {
                self.report.set_repaired(number);
            }
        }
        Ok(())
    }

    /// Removes all entries of a kind that the table does not have, as far as they can be read.
    pub(super) fn remove_strays(
        &mut self,
        subject: &Subject,
        kind: EntryKind,
        number: u64,
    ) -> Result<()> {
        let Some(committer) = self.repair else {
            return Ok(());
        };
        let id = subject.table.id();
        loop {
            let removed = committer.run(Effect::Grows, move |group| {
                let shared = group.shared();
                let Some(table) = shared.catalog.get_by_id(id) else {
                    return Ok((0, true));
                };
                // In a group of its own, the snapshot is the present. No id is ever used again, so what
                // the table did not have before it will not have later.
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

/// Puts one thing right. `false` if it cannot be.
fn settle(
    group: &mut Group<'_>,
    table: &Arc<Table>,
    doubt: Doubt,
    is_filling: impl Fn(EntryKind) -> bool,
) -> Result<bool> {
    let space = table.space();
    match doubt {
        Doubt::Item(key) => {
            let Some(bytes) = group.get(space, &key)? else {
                return Ok(true);
            };
            let Ok(stored) = read_item(table, &key, &bytes) else {
                return Ok(false);
            };
            for entry in derived(table, &key, &stored) {
                match group.get(space, &entry.key)? {
                    Some(found) if found == entry.value => {}
                    // A job makes it, and counts it then.
                    None if is_filling(entry.kind) => {}
                    _ => group.put(space, entry.key, entry.value),
                }
            }
            Ok(true)
        }
        Doubt::Entry(key) => {
            let Some(value) = group.get(space, &key)? else {
                return Ok(true);
            };
            match owner(table, &key, &value, |key| group.get(space, key)) {
                Owner::Item => Ok(true),
                Owner::Unreadable => Ok(false),
                Owner::Nobody | Owner::Undecodable => {
                    group.remove(space, key);
                    Ok(true)
                }
            }
        }
        Doubt::Weight {
            key,
            found,
            expected,
        } => {
            let stored = group.get(space, &key)?;
            let weight = stored
                .map_or(Ok(0), |bytes| decode_weight(&bytes))
                .unwrap_or(0);
            match moved(weight, found, expected) {
                0 => group.remove(space, key),
                weight => group.put(space, key, encode_weight(weight)),
            }
            Ok(true)
        }
        Doubt::Counts(change) => {
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

/// A number moved by the difference of two others.
const fn moved(number: u64, from: u64, to: u64) -> u64 {
    match to.checked_sub(from) {
        Some(up) => number.saturating_add(up),
        None => number.saturating_sub(from.saturating_sub(to)),
    }
}
