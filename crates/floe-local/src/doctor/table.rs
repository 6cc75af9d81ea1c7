//! A table: its items, and everything that follows from them.
//!
//! All that is in the table's space is read once, in order. From each item follow the entries that it
//! should have; their sum is compared with the sum of those that are there. A sum does not depend on the
//! order, so a table in which nothing is wrong needs no lookups and no memory. Only where the sums differ
//! are entries and items compared [one by one](super::compare).

use std::collections::{BTreeMap, BTreeSet};

use floe_store::Result;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128_with_seed};

use super::catalog::Catalog;
use super::repair::{CountChange, Doubt};
use super::subject::{Subject, derived, read_item};
use super::{Examiner, Finding, FindingKind, Stage, hex, walk};
use crate::catalog::Table;
use crate::group::{Effect, Group};
use crate::kv::Bytes;
use crate::layout::item;
use crate::layout::key::{DEFINITION_KEY, EntryKind, collection_key};
use crate::layout::record::{Count, Counts, encode_weight};

/// The entries of a kind, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    entries: u64,
    /// Their size as DynamoDB counts it.
    bytes: u64,
    /// The sum of their hashes.
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

/// What a walk through a table adds up to.
#[derive(Default)]
struct Sums {
    items: Sum,
    expected: BTreeMap<EntryKind, Sum>,
    found: BTreeMap<EntryKind, Sum>,
    /// The collection of the last item, and its weight so far.
    collection: Option<(Vec<u8>, u64)>,
    /// Whether there are items that say nothing about what follows from them.
    unknown: bool,
}

impl Examiner<'_> {
    /// Examines the table of this number.
    pub(super) fn examine_table(&mut self, at: usize, catalog: &Catalog) -> Result<()> {
        let Some(table) = self.moment.tables.get(at) else {
            return Ok(());
        };
        let table = Table::new(table.clone(), Counts::default());
        let subject = Subject::new(table, catalog);
        self.begin(Stage::Table, Some(subject.name.clone()));
        self.report.checked.tables += 1;
        let mut sums = Sums::default();
        let space = subject.table.space();
        self.compare_definition(&subject)?;
        let complete = self.walk(space, walk::everything(), |examiner, key, value| {
            examiner.take_entry(&subject, &mut sums, &key, &value);
            Ok(())
        })?;
        sums.end_collection();
        self.find_strays(&subject, &sums)?;
        let differs = |kind: &EntryKind| {
            subject.filling.contains(kind) || sums.expected.get(kind) != sums.found.get(kind)
        };
        let mut doubtful: BTreeSet<_> = subject.kinds().into_iter().filter(differs).collect();
        // Weights and counters cannot be worked out from a part of the items.
        let known = complete && !sums.unknown;
        if !known {
            doubtful.remove(&EntryKind::Collection);
        }
        if !doubtful.is_empty() {
            self.begin(Stage::Compare, Some(subject.name.clone()));
            self.compare(&subject, &doubtful)?;
        }
        if known {
            let recorded = catalog
                .counts
                .get(&subject.table.id())
                .cloned()
                .unwrap_or_default();
            self.compare_counts(&subject, &sums, &recorded)?;
        }
        Ok(())
    }

    /// The copy of the record that stands with the items is as in the catalog.
    fn compare_definition(&mut self, subject: &Subject) -> Result<()> {
        let space = subject.table.space();
        let (kind, what) = match self.moment.snapshot.get(space, &DEFINITION_KEY) {
            Ok(Some(copy)) if *copy == subject.table.record.encode() => return Ok(()),
            Ok(Some(_)) => (
                FindingKind::Different,
                "the copy of a table's record differs",
            ),
            Ok(None) => (
                FindingKind::Missing,
                "the copy of a table's record is missing",
            ),
            // The walk reports the gap.
            Err(_) => return Ok(()),
        };
        let at = self.find(Finding::new(kind, what).table(&subject.name));
        if let Some(committer) = self.repair {
            let id = subject.table.id();
            let write = move |group: &mut Group<'_>| {
                if let Some(table) = group.shared().catalog.get_by_id(id) {
                    group.put(table.space(), DEFINITION_KEY, table.record.encode());
                }
                Ok(())
            };
            committer.run(Effect::Grows, write).wait()?;
            self.report.set_repaired(at);
        }
        Ok(())
    }

    fn take_entry(&mut self, subject: &Subject, sums: &mut Sums, key: &Bytes, value: &Bytes) {
        if **key == DEFINITION_KEY {
            return;
        }
        let checked = &mut self.report.checked;
        checked.entries += 1;
        match EntryKind::of(key) {
            Some(EntryKind::Item) => {
                checked.items += 1;
                self.take_item(subject, sums, key, value);
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
                let finding =
                    Finding::new(FindingKind::Undecodable, "an entry has a key of no kind");
                self.find(finding.table(&subject.name).key(hex(key)));
            }
        }
    }

    fn take_item(&mut self, subject: &Subject, sums: &mut Sums, key: &Bytes, value: &Bytes) {
        let stored = match read_item(&subject.table, key, value) {
            Ok(stored) => stored,
            Err(fault) => {
                sums.unknown = true;
                let finding = Finding::new(FindingKind::Undecodable, fault);
                self.find(finding.table(&subject.name).key(hex(key)));
                return;
            }
        };
        sums.items.entries += 1;
        sums.items.bytes += stored.size as u64;
        let entries = derived(&subject.table, key, &stored);
        if subject.has_collections {
            let weight = subject.weight(&stored, &entries);
            let collection = collection_key(&subject.table.definition().key, &stored.item);
            sums.add_to_collection(collection.unwrap_or_default(), weight);
        }
        for entry in entries {
            let sum = sums.expected.entry(entry.kind).or_default();
            sum.add(&entry.key, &entry.value, entry.size);
        }
    }

    /// Entries of indexes and generations that the table does not have.
    fn find_strays(&mut self, subject: &Subject, sums: &Sums) -> Result<()> {
        for (kind, sum) in &sums.found {
            if subject.knows(*kind) || subject.removing.contains(kind) {
                continue;
            }
            let what = match kind {
                EntryKind::Index(id) => {
                    format!("entries of an index that is not there: index={id}")
                }
                EntryKind::Expiry(id) => {
                    format!("expiry entries of a generation that is not there: generation={id}")
                }
                EntryKind::Item | EntryKind::Collection => {
                    "weights of collections that nothing needs".to_owned()
                }
            };
            let what = format!("{what} entries={}", sum.entries);
            let finding = Finding::new(FindingKind::Extra, what).table(&subject.name);
            let at = self.find(finding);
            self.remove_strays(subject, *kind, at)?;
        }
        Ok(())
    }

    fn compare_counts(&mut self, subject: &Subject, sums: &Sums, recorded: &Counts) -> Result<()> {
        let mut change = CountChange::default();
        let mut wrong = Vec::new();
        let mut compare = |index: Option<u32>, found: Count, expected: Count| {
            if found != expected {
                change.add(index, found, expected);
                let Count { items, bytes } = expected;
                wrong.push((index, format!(
                    "a counter is wrong: items={} bytes={} items_expected={items} bytes_expected={bytes}",
                    found.items, found.bytes
                )));
            }
        };
        compare(None, recorded.table, sums.items.count());
        for index in &subject.table.record.indexes {
            let kind = EntryKind::Index(index.id);
            // While an index is being filled, it counts what it has so far.
            let sums = if subject.filling.contains(&kind) {
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
            let name = index.and_then(|id| subject.index_name(EntryKind::Index(id)));
            let finding = Finding::new(FindingKind::WrongCount, what).table(&subject.name);
            numbers.push(self.find(finding.index(name)));
        }
        if !numbers.is_empty() {
            self.repair_doubts(subject, vec![(numbers, Doubt::Counts(change))])?;
        }
        Ok(())
    }
}

impl Sums {
    fn add_to_collection(&mut self, key: Vec<u8>, weight: u64) {
        // The items of a collection follow each other.
        match &mut self.collection {
            Some((last, sum)) if *last == key => *sum += weight,
            _ => {
                self.end_collection();
                self.collection = Some((key, weight));
            }
        }
    }

    fn end_collection(&mut self) {
        if let Some((key, weight)) = self.collection.take() {
            let sum = self.expected.entry(EntryKind::Collection).or_default();
            sum.add(&key, &encode_weight(weight), 0);
        }
    }
}
