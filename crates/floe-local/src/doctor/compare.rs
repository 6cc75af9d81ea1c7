//! Compares the entries of a table with its items, one by one. Only done where a sum has shown that
//! something is wrong.

use std::collections::{BTreeSet, HashSet};

use floe_store::Result;

use super::owner::{Owner, owner};
use super::repair::Doubt;
use super::subject::{Subject, derived, read_item};
use super::{Examiner, Finding, FindingKind, hex};
use crate::kv::{Bytes, Direction};
use crate::layout::key::{EntryKind, collection_bounds, collection_key};
use crate::layout::record::decode_weight;

/// The most findings whose repairs wait for each other.
const DOUBTS_MAX: usize = 100;

/// Findings that wait to be repaired together.
type Doubts = Vec<(Vec<u64>, Doubt)>;

impl Examiner<'_> {
    /// Compares all entries of these kinds with the items.
    pub(super) fn compare(&mut self, subject: &Subject, kinds: &BTreeSet<EntryKind>) -> Result<()> {
        let mut doubts = Doubts::new();
        // Entries that do not decode: those that follow from an item are told with the item.
        let mut undecodable = HashSet::new();
        for kind in kinds.iter().filter(|kind| **kind != EntryKind::Collection) {
            self.compare_entries(subject, *kind, &mut undecodable, &mut doubts)?;
        }
        self.compare_items(subject, kinds, &mut undecodable, &mut doubts)?;
        for key in undecodable {
            self.extra(subject, key, &mut doubts)?;
        }
        if kinds.contains(&EntryKind::Collection) {
            self.compare_collections(subject, &mut doubts)?;
        }
        self.repair_doubts(subject, doubts)
    }

    /// Each entry follows from an item.
    fn compare_entries(
        &mut self,
        subject: &Subject,
        kind: EntryKind,
        undecodable: &mut HashSet<Bytes>,
        doubts: &mut Doubts,
    ) -> Result<()> {
        let space = subject.table.space();
        let snapshot = self.moment.snapshot.clone();
        self.walk_quietly(space, kind.bounds(), |examiner, key, value| {
            match owner(&subject.table, &key, &value, |key| snapshot.get(space, key)) {
                Owner::Item | Owner::Unreadable => {}
                Owner::Undecodable => _ = undecodable.insert(key),
                Owner::Nobody => examiner.extra(subject, key, doubts)?,
            }
            Ok(())
        })
    }

    fn extra(&mut self, subject: &Subject, key: Bytes, doubts: &mut Doubts) -> Result<()> {
        let kind = EntryKind::of(&key).unwrap_or(EntryKind::Item);
        let finding = Finding::new(
            FindingKind::Extra,
            format!("{} follows from no item", name(kind)),
        );
        let finding = finding.table(&subject.name).index(subject.index_name(kind));
        let at = self.find(finding.key(hex(&key)));
        self.doubt(subject, doubts, at, Doubt::Entry(key))
    }

    /// Each item has the entries that follow from it.
    fn compare_items(
        &mut self,
        subject: &Subject,
        kinds: &BTreeSet<EntryKind>,
        undecodable: &mut HashSet<Bytes>,
        doubts: &mut Doubts,
    ) -> Result<()> {
        let space = subject.table.space();
        self.walk_quietly(space, EntryKind::Item.bounds(), |examiner, key, value| {
            let Ok(stored) = read_item(&subject.table, &key, &value) else {
                return Ok(());
            };
            for entry in derived(&subject.table, &key, &stored) {
                if !kinds.contains(&entry.kind) {
                    continue;
                }
                let (kind, what) = match examiner.moment.snapshot.get(space, &entry.key) {
                    Ok(Some(found)) if found == entry.value => continue,
                    Ok(None) if subject.filling.contains(&entry.kind) => continue,
                    // What cannot be read has been told already.
                    Err(_) => continue,
                    Ok(None) => (FindingKind::Missing, "is not there"),
                    Ok(Some(_)) => (
                        FindingKind::Different,
                        "does not hold what follows from its item",
                    ),
                };
                undecodable.remove(&*entry.key);
                let finding = Finding::new(kind, format!("{} {what}", name(entry.kind)));
                let finding = finding
                    .table(&subject.name)
                    .index(subject.index_name(entry.kind));
                let at = examiner.find(finding.key(subject.key_text(&stored.item)));
                examiner.doubt(subject, doubts, at, Doubt::Item(key.clone()))?;
            }
            Ok(())
        })
    }

    /// The weight of each collection is the sum of its items and their local entries.
    fn compare_collections(&mut self, subject: &Subject, doubts: &mut Doubts) -> Result<()> {
        let space = subject.table.space();
        let mut last: Option<(Vec<u8>, u64)> = None;
        self.walk_quietly(space, EntryKind::Item.bounds(), |examiner, key, value| {
            let Ok(stored) = read_item(&subject.table, &key, &value) else {
                return Ok(());
            };
            let weight = subject.weight(&stored, &derived(&subject.table, &key, &stored));
            let schema = &subject.table.definition().key;
            let collection = collection_key(schema, &stored.item).unwrap_or_default();
            match &mut last {
                Some((same, sum)) if *same == collection => *sum += weight,
                last => {
                    let ended = last.replace((collection, weight));
                    examiner.compare_weight(subject, ended, doubts)?;
                }
            }
            Ok(())
        })?;
        self.compare_weight(subject, last, doubts)?;
        self.walk_quietly(
            space,
            EntryKind::Collection.bounds(),
            |examiner, key, value| {
                let bounds = collection_bounds(&key);
                let mut items = examiner
                    .moment
                    .snapshot
                    .range(space, bounds, Direction::Forward);
                match items.next() {
                    Some(_) => Ok(()),
                    None => examiner.wrong_weight(
                        subject,
                        key,
                        decode_weight(&value).unwrap_or(0),
                        0,
                        doubts,
                    ),
                }
            },
        )
    }

    fn compare_weight(
        &mut self,
        subject: &Subject,
        collection: Option<(Vec<u8>, u64)>,
        doubts: &mut Doubts,
    ) -> Result<()> {
        let Some((key, expected)) = collection else {
            return Ok(());
        };
        let Ok(stored) = self.moment.snapshot.get(subject.table.space(), &key) else {
            return Ok(());
        };
        let found = stored
            .map_or(Ok(0), |bytes| decode_weight(&bytes))
            .unwrap_or(0);
        if found == expected {
            return Ok(());
        }
        self.wrong_weight(subject, key.into(), found, expected, doubts)
    }

    fn wrong_weight(
        &mut self,
        subject: &Subject,
        key: Bytes,
        found: u64,
        expected: u64,
        doubts: &mut Doubts,
    ) -> Result<()> {
        let what =
            format!("the weight of a collection is wrong: bytes={found} bytes_expected={expected}");
        let finding = Finding::new(FindingKind::WrongCount, what).table(&subject.name);
        let at = self.find(finding.key(hex(&key)));
        self.doubt(
            subject,
            doubts,
            at,
            Doubt::Weight {
                key,
                found,
                expected,
            },
        )
    }

    /// Has a finding repaired together with others.
    fn doubt(
        &mut self,
        subject: &Subject,
        doubts: &mut Doubts,
        at: u64,
        doubt: Doubt,
    ) -> Result<()> {
        doubts.push((vec![at], doubt));
        match doubts.len() < DOUBTS_MAX {
            true => Ok(()),
            false => self.repair_doubts(subject, std::mem::take(doubts)),
        }
    }
}

const fn name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Item => "an item",
        EntryKind::Index(_) => "an index entry",
        EntryKind::Expiry(_) => "an expiry entry",
        EntryKind::Collection => "the weight of a collection",
    }
}
