//! The final audit: compares the streams, the feed, the deliveries to the group and the view with the acknowledged
//! appends.

use std::collections::{BTreeMap, HashMap, HashSet};

use floe::Db;
use floe::events::feed::{Checkpoint, FeedBatch, Reader, TableLog};
use floe::events::{EventStore, StreamName};

use super::config::{self, Files, PARTITIONS, is_pruned};
use super::entry::{Digest, Tally, number_of, transaction_key, view_key};
use super::journal::{Run, Tail};
use crate::Failure;

/// Maximum number of notes kept; further findings are only counted.
const NOTES_MAX: usize = 20;

/// The result of the audit.
#[derive(Clone, Debug, Default)]
pub(super) struct AuditReport {
    pub(super) events: u64,
    pub(super) streams: u64,
    pub(super) acked: u64,
    pub(super) unknown: u64,
    pub(super) refused: u64,
    pub(super) pruned: u64,
    pub(super) epochs: u64,
    pub(super) repeated_records: u64,
    pub(super) late_records: u64,
    pub(super) deliveries: u64,
    /// Repeated deliveries of events to the group.
    pub(super) duplicates: u64,
    /// Acknowledged events missing from their stream, and events never delivered to the group.
    pub(super) lost: u64,
    /// Events that occur twice in streams or in the feed, or exist although their append was rejected.
    pub(super) doubled: u64,
    /// Events delivered to the group before an earlier event of their stream.
    pub(super) out_of_order: u64,
    /// Events missing from the feed.
    pub(super) skipped: u64,
    /// Streams for which the view, or the model written with them, has a wrong digest.
    pub(super) view_mismatches: u64,
    /// Impossible events, and errors that the processes reported.
    pub(super) broken: u64,
    pub(super) notes: Vec<String>,
}

impl AuditReport {
    pub(super) const fn is_clean(&self) -> bool {
        let found = self.lost
            + self.doubled
            + self.out_of_order
            + self.skipped
            + self.view_mismatches
            + self.broken;
        found == 0
    }

    pub(super) fn note(&mut self, what: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(what);
        }
    }

    pub(super) fn broken(&mut self, what: String) {
        self.broken += 1;
        self.note(what);
    }
}

/// The content of a stream.
#[derive(Debug, Default)]
struct Stored {
    /// The index of the first stored number; earlier events were pruned.
    lowest: u64,
    numbers: Vec<u64>,
}

impl Stored {
    fn version(&self) -> u64 {
        self.lowest + self.numbers.len() as u64
    }
}

/// Audits everything.
pub(super) async fn audit(db: &Db, files: &Files) -> Result<AuditReport, Failure> {
    let mut audit = Audit {
        store: config::store(db),
        found: AuditReport::default(),
        streams: BTreeMap::new(),
        delivered: BTreeMap::new(),
    };
    audit.read_notes(files)?;
    audit.read_streams().await?;
    audit.read_feed().await?;
    audit.read_deliveries(files)?;
    audit.complete();
    audit.compare_written(files)?;
    audit.compare_views().await?;
    Ok(audit.found)
}

struct Audit {
    store: EventStore,
    found: AuditReport,
    streams: BTreeMap<StreamName, Stored>,
    /// The numbers delivered to the group, of each stream, from the first event.
    delivered: BTreeMap<StreamName, Vec<u64>>,
}

impl Audit {
    /// Reads the notes of the processes.
    fn read_notes(&mut self, files: &Files) -> Result<(), Failure> {
        for line in Tail::new(files.notes()).read()? {
            match line.split_once(' ') {
                Some(("faults", counts)) => {
                    let (repeated, late) = counts.split_once(' ').unwrap_or_default();
                    self.found.repeated_records += repeated.parse::<u64>().unwrap_or_default();
                    self.found.late_records += late.parse::<u64>().unwrap_or_default();
                }
                _ => self.found.broken(line),
            }
        }
        let stderr = std::fs::read_to_string(files.stderr()).unwrap_or_default();
        if stderr.contains("panicked at") {
            self.found.broken(stderr);
        }
        Ok(())
    }

    /// Reads every stream from its first event to its last.
    async fn read_streams(&mut self) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        for stream in self.store.streams(None).collect().await? {
            let version = self.store.version(&stream).await;
            let version = version.unwrap_or_else(|error| {
                self.found.broken(error.to_string());
                0
            });
            let events = self.store.read(&stream).collect().await;
            let events = events.unwrap_or_else(|error| {
                self.found.broken(error.to_string());
                Vec::new()
            });
            let mut stored = Stored {
                lowest: events.first().map_or(version, |first| first.index),
                numbers: Vec::new(),
            };
            for event in &events {
                match number_of(&stream, event) {
                    Ok(number) => {
                        stored.numbers.push(number);
                        self.found.doubled += u64::from(!seen.insert(number));
                    }
                    Err(what) => self.found.broken(what),
                }
            }
            if stored.version() != version || (stored.lowest > 0 && !is_pruned(&stream)) {
                let lowest = stored.lowest;
                let what = format!("a stream is incomplete: {stream} {lowest} {version}");
                self.found.broken(what);
            }
            self.found.streams += 1;
            self.found.events += version;
            self.streams.insert(stream, stored);
        }
        Ok(())
    }

    /// Reads the feed of each partition: the spans of a stream must be contiguous from its first event to its last.
    async fn read_feed(&mut self) -> Result<(), Failure> {
        let mut ends: HashMap<StreamName, u64> = HashMap::new();
        for partition in PARTITIONS.all() {
            let index = self.store.feed_index();
            let log = TableLog::new(self.store.db().clone(), index.options().clone());
            let mut reader = Reader::new(log, partition, Checkpoint::START);
            while let Some(batch) = self.next(&mut reader).await {
                for span in batch.spans {
                    let next = ends.entry(span.stream.clone()).or_default();
                    if PARTITIONS.of(&span.stream) != partition {
                        let what = format!(
                            "stream in the wrong partition: {} partition={partition}",
                            span.stream
                        );
                        self.found.broken(what);
                    }
                    let (start, end) = (span.start, span.end());
                    self.found.skipped += start.saturating_sub(*next);
                    self.found.doubled += next.saturating_sub(start);
                    if start != *next {
                        let stream = &span.stream;
                        let what = format!("the feed has {start}..{end} after {next}: {stream}");
                        self.found.note(what);
                    }
                    *next = end.max(*next);
                }
            }
            self.found.epochs += u64::from(reader.checkpoint().epoch()) + 1;
        }
        for (stream, stored) in &self.streams {
            let (end, version) = (ends.remove(stream).unwrap_or_default(), stored.version());
            self.found.skipped += version.saturating_sub(end);
            if end > version {
                let what = format!("the feed has {end} events, the stream {version}: {stream}");
                self.found.broken(what);
            }
        }
        for stream in ends.keys() {
            let what = format!("the feed has events of an unknown stream: {stream}");
            self.found.broken(what);
        }
        Ok(())
    }

    /// Returns the next batch of the feed, or `None` if it cannot be read.
    async fn next(&mut self, reader: &mut Reader<TableLog>) -> Option<FeedBatch> {
        let batch = reader.next().await;
        batch.unwrap_or_else(|error| {
            self.found.broken(error.to_string());
            None
        })
    }

    /// Reads the deliveries to the group, in their order.
    fn read_deliveries(&mut self, files: &Files) -> Result<(), Failure> {
        for partition in PARTITIONS.all() {
            for line in Tail::new(files.delivered(partition)).read()? {
                let Some(run) = Run::parse(&line) else {
                    self.found.broken(format!("not a delivery: {line}"));
                    continue;
                };
                self.record_delivery(&run)?;
            }
        }
        Ok(())
    }

    fn record_delivery(&mut self, run: &Run) -> Result<(), Failure> {
        let stream = StreamName::parse(&run.stream)?;
        let delivered = self.delivered.entry(stream).or_default();
        self.found.deliveries += run.numbers.len() as u64;
        for (index, number) in (run.start..).zip(&run.numbers) {
            let position = usize::try_from(index).unwrap_or(usize::MAX);
            match delivered.get(position) {
                Some(known) if known == number => self.found.duplicates += 1,
                Some(_) => self.found.broken += 1,
                None if position == delivered.len() => delivered.push(*number),
                // The missing events may be delivered later, or never.
                None => self.found.out_of_order += 1,
            }
        }
        Ok(())
    }

    /// Compares the deliveries with the streams, and completes pruned streams from the deliveries.
    fn complete(&mut self) {
        let empty = Vec::new();
        for (stream, stored) in &mut self.streams {
            let delivered = self.delivered.get(stream).unwrap_or(&empty);
            self.found.lost += stored.version().saturating_sub(delivered.len() as u64);
            let lowest = usize::try_from(stored.lowest).unwrap_or(usize::MAX);
            let (pruned, left) = delivered.split_at(lowest.min(delivered.len()));
            if left
                .iter()
                .zip(&stored.numbers)
                .any(|(delivered, stored)| delivered != stored)
            {
                self.found.broken += 1;
                self.found
                    .notes
                    .push(format!("delivered events differ from the stream: {stream}"));
            }
            if pruned.len() == lowest {
                stored.numbers.splice(0..0, pruned.iter().copied());
                stored.lowest = 0;
            }
        }
    }

    /// Compares the streams with the outcomes that the writers recorded.
    fn compare_written(&mut self, files: &Files) -> Result<(), Failure> {
        let mut refused = HashSet::new();
        for line in Tail::new(files.written()).read()? {
            let (outcome, rest) = line.split_once(' ').unwrap_or_default();
            if outcome == "pruned" {
                self.found.pruned += rest.parse::<u64>().unwrap_or_default();
                continue;
            }
            let Some(run) = Run::parse(rest) else {
                self.found.broken(format!("not a writer's record: {line}"));
                continue;
            };
            let count = run.numbers.len() as u64;
            match outcome {
                "acked" => {
                    self.found.acked += count;
                    self.check_acked(&run)?;
                }
                "unknown" => self.found.unknown += count,
                _ => {
                    self.found.refused += count;
                    refused.extend(run.numbers);
                }
            }
        }
        let all = self.streams.values().flat_map(|stored| &stored.numbers);
        let applied = all.filter(|number| refused.contains(number)).count() as u64;
        if applied > 0 {
            self.found.doubled += applied;
            let what = format!("events of rejected appends exist: {applied}");
            self.found.note(what);
        }
        Ok(())
    }

    /// Looks up acknowledged events at their positions.
    fn check_acked(&mut self, run: &Run) -> Result<(), Failure> {
        let stream = StreamName::parse(&run.stream)?;
        let stored = self.streams.get(&stream);
        let mut missing = 0;
        for (index, number) in (run.start..).zip(&run.numbers) {
            let found = stored.and_then(|stored| {
                let position = index.checked_sub(stored.lowest)?;
                stored.numbers.get(usize::try_from(position).ok()?)
            });
            missing += u64::from(found != Some(number));
        }
        if missing > 0 {
            self.found.lost += missing;
            let what = format!("acknowledged events are missing: count={missing} {run}");
            self.found.note(what);
        }
        Ok(())
    }

    /// Compares the view, and the models written with the streams, with the digests of the streams.
    async fn compare_views(&mut self) -> Result<(), Failure> {
        let tallies = self.store.db().scan::<Tally>().all().await?;
        let tallies = tallies.into_iter().map(|tally| {
            let digest = Digest {
                entries: tally.entries,
                sum: tally.sum,
                hash: tally.hash,
            };
            (tally.key, digest)
        });
        let mut tallies: HashMap<String, Digest> = tallies.collect();
        for (stream, stored) in &self.streams {
            let digest = Digest::of(&stored.numbers);
            let has_transaction_key = stream.id().starts_with('p');
            let keys = [
                Some(view_key(stream)),
                has_transaction_key.then(|| transaction_key(stream)),
            ];
            for key in keys.into_iter().flatten() {
                let held = tallies.remove(&key).unwrap_or_default();
                if held != digest {
                    self.found.view_mismatches += 1;
                    let what = format!("{key}: found={held:?} expected={digest:?}");
                    self.found.note(what);
                }
            }
        }
        // Digests of unknown streams.
        self.found.view_mismatches += tallies.len() as u64;
        Ok(())
    }
}
