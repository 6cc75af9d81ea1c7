//! The change log: no number is missing, and each record is in a shard of its stream.
//!
//! All streams share one sequence, so they are read together, merged by their numbers. Trimming leaves
//! holes, but none behind the last number that was trimmed from any stream.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;

use floe_store::Result;

use super::catalog::Catalog;
use super::{Examiner, Finding, FindingKind, Stage, hex, walk};
use crate::kv::{Bytes, Salvage, Space};
use crate::layout::change;
use crate::layout::record::{ShardRecord, StreamRecord};

/// The most leftover records that are removed in one commit.
const LEFTOVERS_MAX: usize = 1000;

impl Examiner<'_> {
    /// Examines shards and change records.
    pub(super) fn examine_log(&mut self, catalog: &Catalog) -> Result<()> {
        self.begin(Stage::ChangeLog, None);
        for stream in catalog.streams.values() {
            self.examine_shards(stream, catalog.shards_of(stream.id));
        }
        self.examine_records(catalog, Space::Changes);
        self.find_leftover_records(catalog, Space::Changes)
    }

    /// Shards follow each other without a gap, and only the last of a stream that is on is open.
    fn examine_shards(&mut self, stream: &StreamRecord, shards: &[ShardRecord]) {
        let mut fault = |what: &str| {
            let what = format!("{what} stream={}", stream.id);
            self.find(Finding::new(FindingKind::ChangeLog, what).table(&stream.table_name));
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
            fault("the last shard is open although the stream is off, or the other way round");
        }
    }

    fn examine_records(&mut self, catalog: &Catalog, space: Space) {
        let mut merged = Merged::new(self, catalog, space);
        let mut expected = catalog.trimmed.saturating_add(1);
        while let Some((sequence, stream, value)) = merged.next(self, catalog) {
            self.tell_now_and_then();
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

    /// Tells of numbers that are missing before `next`, unless they can be in what cannot be read.
    fn find_gap(&mut self, expected: u64, next: u64, complete: bool) {
        if complete && expected < next {
            let what = format!("records are missing: first={expected} last={}", next - 1);
            self.find(Finding::new(FindingKind::ChangeLog, what));
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
            self.find(finding.key(change::sequence_text(sequence)));
        };
        if let Err(error) = change::decode(value, sequence, 0) {
            fault(FindingKind::Undecodable, &error.to_string());
        }
        for (is_wrong, what) in [
            (
                sequence > catalog.sequence,
                "a record has a number that was not given out yet",
            ),
            (sequence <= trimmed, "a record is there that was trimmed"),
            (!shards.iter().any(holds), "a record is in no shard"),
        ] {
            if is_wrong {
                fault(FindingKind::ChangeLog, what);
            }
        }
    }

    /// Records of streams that are not there.
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
            self.walk(space, range, |examiner, key, _| {
                examiner.report.checked.entries += 1;
                let finding = Finding::new(FindingKind::ChangeLog, "a record belongs to no stream");
                let at = examiner.find(finding.key(hex(&key)));
                keys.push((at, key));
                match keys.len() < LEFTOVERS_MAX {
                    true => Ok(()),
                    false => examiner.remove_keys(space, std::mem::take(&mut keys)),
                }
            })?;
            self.remove_keys(space, keys)?;
        }
        Ok(())
    }
}

/// The records of all streams in the order of their numbers.
struct Merged {
    walks: Vec<(u32, Salvage)>,
    /// The next record of each walk.
    heads: BinaryHeap<Reverse<(u64, usize, Bytes)>>,
    /// Whether everything could be read so far.
    complete: bool,
}

impl Merged {
    fn new(examiner: &mut Examiner<'_>, catalog: &Catalog, space: Space) -> Self {
        let snapshot = examiner.moment.snapshot.clone();
        let walk = |stream: &u32| {
            let walk = snapshot.salvage(space, change::bounds(*stream));
            (*stream, walk)
        };
        let mut merged = Self {
            walks: catalog.streams.keys().map(walk).collect(),
            heads: BinaryHeap::new(),
            complete: true,
        };
        for at in 0..merged.walks.len() {
            merged.advance(examiner, catalog, at);
        }
        merged
    }

    /// The next number, its stream, and the record.
    fn next(
        &mut self,
        examiner: &mut Examiner<'_>,
        catalog: &Catalog,
    ) -> Option<(u64, u32, Bytes)> {
        let Reverse((sequence, at, value)) = self.heads.pop()?;
        let stream = self.walks.get(at)?.0;
        self.advance(examiner, catalog, at);
        Some((sequence, stream, value))
    }

    fn advance(&mut self, examiner: &mut Examiner<'_>, catalog: &Catalog, at: usize) {
        let Some((stream, walk)) = self.walks.get_mut(at) else {
            return;
        };
        for entry in walk {
            let what = match entry {
                Ok((key, value)) => match change::decode_key(&key) {
                    Ok((_, sequence)) => {
                        self.heads.push(Reverse((sequence, at, value)));
                        return;
                    }
                    Err(error) => (FindingKind::Undecodable, error.to_string(), Some(hex(&key))),
                },
                Err(gap) => (FindingKind::Unreadable, walk::gap_text(&gap), None),
            };
            // What is missing behind it may have been there.
            self.complete = false;
            let (kind, what, key) = what;
            examiner.find(Finding {
                table: catalog.table_name(*stream),
                key,
                ..Finding::new(kind, format!("{what} stream={stream}"))
            });
        }
    }
}
