//! A table: its items, and all data derived from them.
//!
//! The table's space is read once, in order. The checksum of the entries that should be derived from its items is
//! compared with that of the existing entries. A checksum does not depend on the order, so an intact table needs no
//! lookups and no memory. Entries and items are compared [one by one](super::compare) only if the checksums differ.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::Result;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::catalog::Catalog;
use super::examined_table::{ExaminedTable, derived_entries, read_item};
use super::repair::{CountChange, Suspect};
use super::{Examiner, Finding, FindingKind, Stage, hex, visit};
use crate::catalog::Table;
use crate::group::{DiskUse, Group};
use crate::kv::Bytes;
use crate::layout::item;
use crate::layout::key::{DEFINITION_KEY, EntryKind, collection_key};
use crate::layout::record::{Count, Counts, encode_collection_size};

/// Count, size and checksum of the entries of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    entries: u64,
    /// Total size by DynamoDB's rules.
    bytes: u64,
    /// Sum of their hashes.
    hashes: u128,
}

impl Sum {
    fn add(&mut self, key: &[u8], value: &[u8], size: usize) {
        let hash = xxh3_128_with_seed(value, xxh3_64(key));
        self.hashes = self.hashes.wrapping_add(hash);
        self.entries += 1;
        self.bytes += size as u64;
    }

    const fn count(&self) -> Count {
        Count {
            items: self.entries,
            bytes: self.bytes,
        }
    }
}

/// The sums over a table.
#[derive(Default)]
struct Sums {
    items: Sum,
    expected: BTreeMap<EntryKind, Sum>,
    found: BTreeMap<EntryKind, Sum>,
    /// The collection of the last item, and its size so far.
    collection: Option<(Vec<u8>, u64)>,
    /// Whether the derived entries of some items are unknown, because the items are unreadable.
    unknown: bool,
}

impl Examiner<'_> {
    /// Examines the table with this index.
    pub(super) fn examine_table(&mut self, at: usize, catalog: &Catalog) -> Result<()> {
        let Some(table) = self.store.tables.get(at) else {
            return Ok(());
        };
        let table = Table::new(table.clone(), Counts::default());
        let target = ExaminedTable::new(table, catalog);
        self.begin(Stage::Table, Some(target.name.clone()));
        self.report.checked.tables += 1;
        let mut sums = Sums::default();
        let space = target.table.space();
        self.compare_definition(&target)?;
        let complete = self.visit_entries(space, visit::unbounded(), |examiner, key, value| {
            examiner.examine_entry(&target, &mut sums, &key, &value);
            Ok(())
        })?;
        sums.end_collection();
        self.find_strays(&target, &sums)?;
        let differs = |kind: &EntryKind| {
            target.filling.contains(kind) || sums.expected.get(kind) != sums.found.get(kind)
        };
        let mut differing: BTreeSet<_> = target.kinds().into_iter().filter(differs).collect();
        // Sizes and counts cannot be computed from a part of the items.
        let known = complete && !sums.unknown;
        if !known {
            differing.remove(&EntryKind::Collection);
        }
        if !differing.is_empty() {
            self.begin(Stage::Compare, Some(target.name.clone()));
            self.compare(&target, &differing)?;
        }
        if known {
            let recorded = catalog
                .counts
                .get(&target.table.id())
                .cloned()
                .unwrap_or_default();
            self.compare_counts(&target, &sums, &recorded)?;
        }
        Ok(())
    }

    /// Checks that the copy of the table's record that is stored with its items equals the one in the catalog.
    fn compare_definition(&mut self, target: &ExaminedTable) -> Result<()> {
        let space = target.table.space();
        let (kind, what) = match self.store.snapshot.get(space, &DEFINITION_KEY) {
            Ok(Some(copy)) if *copy == target.table.record.encode() => return Ok(()),
            Ok(Some(_)) => (
                FindingKind::Different,
                "the copy of a table's record differs",
            ),
            Ok(None) => (
                FindingKind::Missing,
                "the copy of a table's record is missing",
            ),
            // The visit of all entries reports the gap.
            Err(_) => return Ok(()),
        };
        let at = self.record(Finding::new(kind, what).table(&target.name));
        if let Some(committer) = self.repair {
            let id = target.table.id();
            let write = move |group: &mut Group<'_>| {
                if let Some(table) = group.shared().catalog.get_by_id(id) {
                    group.put(table.space(), DEFINITION_KEY, table.record.encode());
                }
                Ok(())
            };
            committer.run(DiskUse::Grows, write).wait()?;
            self.report.set_repaired(at);
        }
        Ok(())
    }

    fn examine_entry(
        &mut self,
        target: &ExaminedTable,
        sums: &mut Sums,
        key: &Bytes,
        value: &Bytes,
    ) {
        if **key == DEFINITION_KEY {
            return;
        }
        let checked = &mut self.report.checked;
        checked.entries += 1;
        match EntryKind::of(key) {
            Some(EntryKind::Item) => {
                checked.items += 1;
                self.examine_item(target, sums, key, value);
            }
            Some(kind) => {
                let size = match kind {
                    EntryKind::Index(_) => item::decode_size(value).unwrap_or(0),
                    _ => 0,
                };
                sums.found.entry(kind).or_default().add(key, value, size);
                match kind {
                    EntryKind::Index(_) => checked.index_entries += 1,
                    EntryKind::Expiry(_) => checked.expiry_entries += 1,
                    _ => {}
                }
            }
            None => {
                let finding = Finding::new(
                    FindingKind::Undecodable,
                    "an entry has a key of unknown kind",
                );
                self.record(finding.table(&target.name).key(hex(key)));
            }
        }
    }

    fn examine_item(
        &mut self,
        target: &ExaminedTable,
        sums: &mut Sums,
        key: &Bytes,
        value: &Bytes,
    ) {
        let stored = match read_item(&target.table, key, value) {
            Ok(stored) => stored,
            Err(fault) => {
                sums.unknown = true;
                let finding = Finding::new(FindingKind::Undecodable, fault);
                self.record(finding.table(&target.name).key(hex(key)));
                return;
            }
        };
        sums.items.entries += 1;
        sums.items.bytes += stored.size as u64;
        let entries = derived_entries(&target.table, key, &stored);
        if target.has_collections {
            let size = target.collection_size(&stored, &entries);
            let collection = collection_key(&target.table.definition().key, &stored.item);
            sums.add_to_collection(collection.unwrap_or_default(), size);
        }
        for entry in entries {
            let sum = sums.expected.entry(entry.kind).or_default();
            sum.add(&entry.key, &entry.value, entry.size);
        }
    }

    /// Finds entries of indexes and generations that the table does not have.
    fn find_strays(&mut self, target: &ExaminedTable, sums: &Sums) -> Result<()> {
        for (kind, sum) in &sums.found {
            if target.has_kind(*kind) || target.removing.contains(kind) {
                continue;
            }
            let what = match kind {
                EntryKind::Index(id) => {
                    format!("entries of an index that does not exist: index={id}")
                }
                EntryKind::Expiry(id) => {
                    format!("expiry entries of a generation that does not exist: generation={id}")
                }
                EntryKind::Item | EntryKind::Collection => {
                    "sizes of collections in a table without local indexes:".to_owned()
                }
            };
            let what = format!("{what} entries={}", sum.entries);
            let finding = Finding::new(FindingKind::Extra, what).table(&target.name);
            let at = self.record(finding);
            self.remove_strays(target, *kind, at)?;
        }
        Ok(())
    }

    fn compare_counts(
        &mut self,
        target: &ExaminedTable,
        sums: &Sums,
        recorded: &Counts,
    ) -> Result<()> {
        let mut change = CountChange::default();
        let mut wrong = Vec::new();
        let mut compare = |index: Option<u32>, found: Count, expected: Count| {
            if found != expected {
                change.add(index, found, expected);
                let Count { items, bytes } = expected;
                wrong.push((index, format!(
                    "a count is wrong: items={} bytes={} items_expected={items} bytes_expected={bytes}",
                    found.items, found.bytes
                )));
            }
        };
        compare(None, recorded.table, sums.items.count());
        for index in &target.table.record.indexes {
            let kind = EntryKind::Index(index.id);
            // While an index is being filled, its count covers its existing entries.
            let sums = if target.filling.contains(&kind) {
                &sums.found
            } else {
                &sums.expected
            };
            let expected = sums.get(&kind).copied().unwrap_or_default().count();
            let found = recorded.indexes.get(&index.id).copied().unwrap_or_default();
            compare(Some(index.id), found, expected);
        }
        let mut numbers = Vec::new();
        for (index, what) in wrong {
            let name = index.and_then(|id| target.index_name(EntryKind::Index(id)));
            let finding = Finding::new(FindingKind::WrongCount, what).table(&target.name);
            numbers.push(self.record(finding.index(name)));
        }
        if !numbers.is_empty() {
            self.repair_suspects(target, vec![(numbers, Suspect::Counts(change))])?;
        }
        Ok(())
    }
}

impl Sums {
    fn add_to_collection(&mut self, key: Vec<u8>, size: u64) {
        // The items of a collection are adjacent.
        match &mut self.collection {
            Some((last, sum)) if *last == key => *sum += size,
            _ => {
                self.end_collection();
                self.collection = Some((key, size));
            }
        }
    }

    fn end_collection(&mut self) {
        if let Some((key, size)) = self.collection.take() {
            let sum = self.expected.entry(EntryKind::Collection).or_default();
            sum.add(&key, &encode_collection_size(size), 0);
        }
    }
}
