//! Compares the derived entries of a table with its items, one by one. Only done if a checksum has shown that something
//! is wrong.

use std::collections::{BTreeSet, HashSet};

use floe_store::Result;

use super::examined_table::{ExaminedTable, derived_entries, read_item};
use super::owner::{Owner, owner};
use super::repair::Suspect;
use super::{Examiner, Finding, FindingKind, hex};
use crate::kv::{Bytes, Direction};
use crate::layout::key::{EntryKind, collection_bounds, collection_key};
use crate::layout::record::decode_collection_size;

/// Maximum number of findings that are repaired together.
const SUSPECTS_MAX: usize = 100;

/// Suspects to be repaired together, with the numbers of their findings.
type Suspects = Vec<(Vec<u64>, Suspect)>;

impl Examiner<'_> {
    /// Compares all entries of these kinds with the items.
    pub(super) fn compare(
        &mut self,
        target: &ExaminedTable,
        kinds: &BTreeSet<EntryKind>,
    ) -> Result<()> {
        let mut suspects = Suspects::new();
        // Entries that cannot be decoded. If an item has such an entry, it is reported with the item.
        let mut undecodable = HashSet::new();
        for kind in kinds.iter().filter(|kind| **kind != EntryKind::Collection) {
            self.compare_entries(target, *kind, &mut undecodable, &mut suspects)?;
        }
        self.compare_items(target, kinds, &mut undecodable, &mut suspects)?;
        for key in undecodable {
            self.record_extra_entry(target, key, &mut suspects)?;
        }
        if kinds.contains(&EntryKind::Collection) {
            self.compare_collections(target, &mut suspects)?;
        }
        self.repair_suspects(target, suspects)
    }

    /// Checks that each entry is derived from an item.
    fn compare_entries(
        &mut self,
        target: &ExaminedTable,
        kind: EntryKind,
        undecodable: &mut HashSet<Bytes>,
        suspects: &mut Suspects,
    ) -> Result<()> {
        let space = target.table.space();
        let snapshot = self.store.snapshot.clone();
        self.visit_readable_entries(space, kind.bounds(), |examiner, key, value| {
            match owner(&target.table, &key, &value, |key| snapshot.get(space, key)) {
                Owner::Item | Owner::Unreadable => {}
                Owner::Undecodable => _ = undecodable.insert(key),
                Owner::None => examiner.record_extra_entry(target, key, suspects)?,
            }
            Ok(())
        })
    }

    fn record_extra_entry(
        &mut self,
        target: &ExaminedTable,
        key: Bytes,
        suspects: &mut Suspects,
    ) -> Result<()> {
        let kind = EntryKind::of(&key).unwrap_or(EntryKind::Item);
        let finding = Finding::new(
            FindingKind::Extra,
            format!("{} is not derived from any item", name(kind)),
        );
        let finding = finding.table(&target.name).index(target.index_name(kind));
        let at = self.record(finding.key(hex(&key)));
        self.add_suspect(target, suspects, at, Suspect::Entry(key))
    }

    /// Checks that each item has the entries derived from it.
    fn compare_items(
        &mut self,
        target: &ExaminedTable,
        kinds: &BTreeSet<EntryKind>,
        undecodable: &mut HashSet<Bytes>,
        suspects: &mut Suspects,
    ) -> Result<()> {
        let space = target.table.space();
        self.visit_readable_entries(space, EntryKind::Item.bounds(), |examiner, key, value| {
            let Ok(stored) = read_item(&target.table, &key, &value) else {
                return Ok(());
            };
            for entry in derived_entries(&target.table, &key, &stored) {
                if !kinds.contains(&entry.kind) {
                    continue;
                }
                let (kind, what) = match examiner.store.snapshot.get(space, &entry.key) {
                    Ok(Some(found)) if found == entry.value => continue,
                    Ok(None) if target.filling.contains(&entry.kind) => continue,
                    // Unreadable entries were already reported.
                    Err(_) => continue,
                    Ok(None) => (FindingKind::Missing, "is missing"),
                    Ok(Some(_)) => (FindingKind::Different, "differs from its item"),
                };
                undecodable.remove(&*entry.key);
                let finding = Finding::new(kind, format!("{} {what}", name(entry.kind)));
                let finding = finding
                    .table(&target.name)
                    .index(target.index_name(entry.kind));
                let at = examiner.record(finding.key(target.key_text(&stored.item)));
                examiner.add_suspect(target, suspects, at, Suspect::Item(key.clone()))?;
            }
            Ok(())
        })
    }

    /// Checks that the size of each collection is the sum of its items and their local index entries.
    fn compare_collections(
        &mut self,
        target: &ExaminedTable,
        suspects: &mut Suspects,
    ) -> Result<()> {
        let space = target.table.space();
        let mut last: Option<(Vec<u8>, u64)> = None;
        self.visit_readable_entries(space, EntryKind::Item.bounds(), |examiner, key, value| {
            let Ok(stored) = read_item(&target.table, &key, &value) else {
                return Ok(());
            };
            let size =
                target.collection_size(&stored, &derived_entries(&target.table, &key, &stored));
            let schema = &target.table.definition().key;
            let collection = collection_key(schema, &stored.item).unwrap_or_default();
            match &mut last {
                Some((same, sum)) if *same == collection => *sum += size,
                last => {
                    let ended = last.replace((collection, size));
                    examiner.compare_collection_size(target, ended, suspects)?;
                }
            }
            Ok(())
        })?;
        self.compare_collection_size(target, last, suspects)?;
        self.visit_readable_entries(
            space,
            EntryKind::Collection.bounds(),
            |examiner, key, value| {
                let bounds = collection_bounds(&key);
                let mut items = examiner
                    .store
                    .snapshot
                    .range(space, bounds, Direction::Forward);
                match items.next() {
                    Some(_) => Ok(()),
                    None => examiner.record_wrong_size(
                        target,
                        key,
                        decode_collection_size(&value).unwrap_or(0),
                        0,
                        suspects,
                    ),
                }
            },
        )
    }

    fn compare_collection_size(
        &mut self,
        target: &ExaminedTable,
        collection: Option<(Vec<u8>, u64)>,
        suspects: &mut Suspects,
    ) -> Result<()> {
        let Some((key, expected)) = collection else {
            return Ok(());
        };
        let Ok(stored) = self.store.snapshot.get(target.table.space(), &key) else {
            return Ok(());
        };
        let found = stored
            .map_or(Ok(0), |bytes| decode_collection_size(&bytes))
            .unwrap_or(0);
        if found == expected {
            return Ok(());
        }
        self.record_wrong_size(target, key.into(), found, expected, suspects)
    }

    fn record_wrong_size(
        &mut self,
        target: &ExaminedTable,
        key: Bytes,
        found: u64,
        expected: u64,
        suspects: &mut Suspects,
    ) -> Result<()> {
        let what =
            format!("the size of a collection is wrong: bytes={found} bytes_expected={expected}");
        let finding = Finding::new(FindingKind::WrongCount, what).table(&target.name);
        let at = self.record(finding.key(hex(&key)));
        self.add_suspect(
            target,
            suspects,
            at,
            Suspect::CollectionSize {
                key,
                found,
                expected,
            },
        )
    }

    /// Adds a suspect to be repaired together with others.
    fn add_suspect(
        &mut self,
        target: &ExaminedTable,
        suspects: &mut Suspects,
        at: u64,
        suspect: Suspect,
    ) -> Result<()> {
        suspects.push((vec![at], suspect));
        if suspects.len() < SUSPECTS_MAX {
            Ok(())
        } else {
            self.repair_suspects(target, std::mem::take(suspects))
        }
    }
}

const fn name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Item => "an item",
        EntryKind::Index(_) => "an index entry",
        EntryKind::Expiry(_) => "an expiry entry",
        EntryKind::Collection => "the size of a collection",
    }
}
