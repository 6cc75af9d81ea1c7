//! Checks the change log: no sequence number is missing, and each record is in a shard of its stream.
//!
//! All streams share one sequence, so they are merged by sequence number. Trimming leaves holes, but none after the
//! latest number that was trimmed from any stream.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

use floe_store::Result;

use super::catalog::Catalog;
use super::{Examiner, Finding, FindingKind, Stage, hex, visit};
use crate::kv::{Bytes, SalvageIter, Space};
use crate::layout::change;
use crate::layout::record::{ShardRecord, StreamRecord};

/// Maximum number of leftover records that are removed in one commit.
const LEFTOVERS_MAX: usize = 1000;

impl Examiner<'_> {
    /// Checks shards and change records.
    pub(super) fn examine_log(&mut self, catalog: &Catalog) -> Result<()> {
        self.begin(Stage::ChangeLog, None);
        for stream in catalog.streams.values() {
            self.examine_shards(stream, catalog.shards_of(stream.id));
        }
        self.examine_records(catalog, Space::Changes);
        self.find_leftover_records(catalog, Space::Changes)
    }

    /// Checks that shards follow each other without a gap, and that only the last shard of an enabled stream is open.
    fn examine_shards(&mut self, stream: &StreamRecord, shards: &[ShardRecord]) {
        let mut fault = |what: &str| {
            let what = format!("{what} stream={}", stream.id);
            self.record(Finding::new(FindingKind::ChangeLog, what).table(&stream.table_name));
        };
        for pair in shards.windows(2) {
            let [shard, next] = pair else { continue };
            if shard.end.and_then(|end| end.checked_add(1)) != Some(next.start)
                || next.parent != Some(shard.start)
            {
                let (start, next) = (shard.start, next.start);
                fault(&format!(
                    "shards do not follow each other: start={start} next={next}"
                ));
            }
        }
        let is_open = shards.last().map(|last| last.end.is_none());
        if is_open != Some(stream.disabled.is_none()) {
            fault("the last shard is open and the stream disabled, or the other way round:");
        }
    }

    fn examine_records(&mut self, catalog: &Catalog, space: Space) {
        let mut merged = MergedRecords::new(self, catalog, space);
        let mut expected = catalog.trimmed.saturating_add(1);
        while let Some((sequence, stream, value)) = merged.next(self, catalog) {
            self.count_entry();
            self.report.checked.entries += 1;
            self.report.checked.change_records += 1;
            self.examine_record(catalog, stream, sequence, &value);
            if sequence < expected {
                continue;
            }
            self.find_gap(expected, sequence, merged.complete);
            expected = sequence.saturating_add(1);
        }
        self.find_gap(
            expected,
            catalog.sequence.saturating_add(1),
            merged.complete,
        );
    }

    /// Reports missing numbers before `next`, unless they may be in an unreadable part.
    fn find_gap(&mut self, expected: u64, next: u64, complete: bool) {
        if complete && expected < next {
            let what = format!("records are missing: first={expected} last={}", next - 1);
            self.record(Finding::new(FindingKind::ChangeLog, what));
        }
    }

    fn examine_record(&mut self, catalog: &Catalog, stream: u32, sequence: u64, value: &Bytes) {
        let shards = catalog.shards_of(stream);
        let holds =
            |shard: &ShardRecord| (shard.start..=shard.end.unwrap_or(u64::MAX)).contains(&sequence);
        let trimmed = catalog.trimmed_of.get(&stream).copied().unwrap_or(0);
        let mut fault = |kind, what: &str| {
            let finding = Finding {
                table: catalog.table_name(stream),
                ..Finding::new(kind, format!("{what}: stream={stream}"))
            };
            self.record(finding.key(change::sequence_text(sequence)));
        };
        if let Err(error) = change::decode(value, sequence, 0) {
            fault(FindingKind::Undecodable, &error.to_string());
        }
        for (is_wrong, what) in [
            (
                sequence > catalog.sequence,
                "a record has a sequence number that was never assigned",
            ),
            (sequence <= trimmed, "a trimmed record still exists"),
            (!shards.iter().any(holds), "a record is in no shard"),
        ] {
            if is_wrong {
                fault(FindingKind::ChangeLog, what);
            }
        }
    }

    /// Finds records of streams that do not exist.
    fn find_leftover_records(&mut self, catalog: &Catalog, space: Space) -> Result<()> {
        let mut ranges = Vec::new();
        let mut from = Bound::Unbounded;
        for stream in catalog.streams.keys() {
            let (start, end) = change::bounds(*stream);
            if let Bound::Included(start) = start {
                ranges.push((from, Bound::Excluded(start)));
            }
            from = match end {
                Bound::Excluded(end) => Bound::Included(end),
                _ => return Ok(()),
            };
        }
        ranges.push((from, Bound::Unbounded));
        for range in ranges {
            let mut keys = Vec::new();
            self.visit_entries(space, range, |examiner, key, _| {
                examiner.report.checked.entries += 1;
                let finding = Finding::new(FindingKind::ChangeLog, "a record belongs to no stream");
                let at = examiner.record(finding.key(hex(&key)));
                keys.push((at, key));
                if keys.len() < LEFTOVERS_MAX {
                    Ok(())
                } else {
                    examiner.remove_keys(space, std::mem::take(&mut keys))
                }
            })?;
            self.remove_keys(space, keys)?;
        }
        Ok(())
    }
}

/// The records of all streams, ordered by sequence number.
struct MergedRecords {
    iterators: Vec<(u32, SalvageIter)>,
    /// The next record of each iterator.
    heads: BinaryHeap<Reverse<(u64, usize, Bytes)>>,
    /// Whether everything was readable so far.
    complete: bool,
}

impl MergedRecords {
    fn new(examiner: &mut Examiner<'_>, catalog: &Catalog, space: Space) -> Self {
        let snapshot = examiner.store.snapshot.clone();
        let iterator = |stream: &u32| {
            let iterator = snapshot.salvage(space, change::bounds(*stream));
            (*stream, iterator)
        };
        let mut merged = Self {
            iterators: catalog.streams.keys().map(iterator).collect(),
            heads: BinaryHeap::new(),
            complete: true,
        };
        for at in 0..merged.iterators.len() {
            merged.advance(examiner, catalog, at);
        }
        merged
    }

    /// Returns the next sequence number, its stream, and the record.
    fn next(
        &mut self,
        examiner: &mut Examiner<'_>,
        catalog: &Catalog,
    ) -> Option<(u64, u32, Bytes)> {
        let Reverse((sequence, at, value)) = self.heads.pop()?;
        let stream = self.iterators.get(at)?.0;
        self.advance(examiner, catalog, at);
        Some((sequence, stream, value))
    }

    fn advance(&mut self, examiner: &mut Examiner<'_>, catalog: &Catalog, at: usize) {
        let Some((stream, iterator)) = self.iterators.get_mut(at) else {
            return;
        };
        for entry in iterator {
            let what = match entry {
                Ok((key, value)) => match change::decode_key(&key) {
                    Ok((_, sequence)) => {
                        self.heads.push(Reverse((sequence, at, value)));
                        return;
                    }
                    Err(error) => (FindingKind::Undecodable, error.to_string(), Some(hex(&key))),
                },
                Err(gap) => (FindingKind::Unreadable, visit::gap_text(&gap), None),
            };
            // A number missing later may have been here.
            self.complete = false;
            let (kind, what, key) = what;
            examiner.record(Finding {
                table: catalog.table_name(*stream),
                key,
                ..Finding::new(kind, format!("{what} stream={stream}"))
            });
        }
    }
}
