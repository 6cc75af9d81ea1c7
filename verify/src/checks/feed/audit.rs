//! Looks over everything in the end: what stands in the streams, what the feed tells of them, what came to the group,
//! what the view holds, against what was acknowledged.

use std::collections::{BTreeMap, HashMap, HashSet};

use floe::Db;
use floe::events::feed::{Checkpoint, FeedBatch, Reader, TableLog};
use floe::events::{EventStore, StreamName};

use super::entry::{Fold, Tally, beside_key, number_of, view_key};
use super::journal::{Run, Tail};
use super::setting::{self, Files, PARTITIONS, is_pruned};
use crate::Failure;

/// How many notes are told; the others are only counted.
const NOTES_MAX: usize = 20;

/// What was found wrong, and what there was.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
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
    /// Events that came to the group once more.
    pub(super) duplicates: u64,
    /// Acknowledged events that are not in their stream, and events that never came to the group.
    pub(super) lost: u64,
    /// Events that stand twice in streams or in the feed, or that were refused and are there.
    pub(super) doubled: u64,
    /// Events that came to the group before one that stands before them.
    pub(super) out_of_order: u64,
    /// Events that the feed does not tell of.
    pub(super) skipped: u64,
    /// Streams of which the view, or the model beside them, holds something else than they come to.
    pub(super) view_mismatches: u64,
    /// Events that cannot be right, and what processes saw that must not be.
    pub(super) broken: u64,
    pub(super) notes: Vec<String>,
}

impl Findings {
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

/// What is in a stream.
#[derive(Debug, Default)]
struct Stored {
    /// The index of the first number.
    lowest: u64,
    numbers: Vec<u64>,
}

impl Stored {
    fn version(&self) -> u64 {
        self.lowest + self.numbers.len() as u64
    }
}

/// Looks over everything.
pub(super) async fn audit(db: &Db, files: &Files) -> Result<Findings, Failure> {
    let mut audit = Audit {
        store: setting::store(db),
        found: Findings::default(),
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
    found: Findings,
    streams: BTreeMap<StreamName, Stored>,
    /// The numbers that came to the group, of each stream, from the first event on.
    delivered: BTreeMap<StreamName, Vec<u64>>,
}

impl Audit {
    /// What the processes themselves had to say.
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
        let said = std::fs::read_to_string(files.stderr()).unwrap_or_default();
        if said.contains("panicked at") {
            self.found.broken(said);
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
                let what = format!("a stream is not whole: {stream} {lowest} {version}");
                self.found.broken(what);
            }
            self.found.streams += 1;
            self.found.events += version;
            self.streams.insert(stream, stored);
        }
        Ok(())
    }

    /// Reads the feed of each partition: the spans of a stream follow one another from its first event to its last.
    async fn read_feed(&mut self) -> Result<(), Failure> {
        let mut told: HashMap<StreamName, u64> = HashMap::new();
        for partition in PARTITIONS.all() {
            let index = self.store.feed_index();
            let log = TableLog::new(self.store.db().clone(), index.options().clone());
            let mut reader = Reader::new(log, partition, Checkpoint::START);
            while let Some(batch) = self.next(&mut reader).await {
                for span in batch.spans {
                    let next = told.entry(span.stream.clone()).or_default();
                    if PARTITIONS.of(&span.stream) != partition {
                        let what = format!("a stream is in partition {partition}: {}", span.stream);
                        self.found.broken(what);
                    }
                    let (start, end) = (span.start, span.end());
                    self.found.skipped += start.saturating_sub(*next);
                    self.found.doubled += next.saturating_sub(start);
                    if start != *next {
                        let stream = &span.stream;
                        let what = format!("the feed tells {start}..{end} after {next}: {stream}");
                        self.found.note(what);
                    }
                    *next = end.max(*next);
                }
            }
            self.found.epochs += u64::from(reader.checkpoint().epoch()) + 1;
        }
        for (stream, stored) in &self.streams {
            let (told, version) = (told.remove(stream).unwrap_or_default(), stored.version());
            self.found.skipped += version.saturating_sub(told);
            if told > version {
                let what = format!("the feed tells {told} of {version} events: {stream}");
                self.found.broken(what);
            }
        }
        for stream in told.keys() {
            let what = format!("the feed tells of a stream that is not there: {stream}");
            self.found.broken(what);
        }
        Ok(())
    }

    /// The next batch of the feed; none if it cannot be read.
    async fn next(&mut self, reader: &mut Reader<TableLog>) -> Option<FeedBatch> {
        let batch = reader.next().await;
        batch.unwrap_or_else(|error| {
            self.found.broken(error.to_string());
            None
        })
    }

    /// Reads what came to the group, in the order in which it came.
    fn read_deliveries(&mut self, files: &Files) -> Result<(), Failure> {
        for partition in PARTITIONS.all() {
            for line in Tail::new(files.delivered(partition)).read()? {
                let Some(run) = Run::parse(&line) else {
                    self.found.broken(format!("not a delivery: {line}"));
                    continue;
                };
                self.take_delivery(&run)?;
            }
        }
        Ok(())
    }

    fn take_delivery(&mut self, run: &Run) -> Result<(), Failure> {
        let stream = StreamName::parse(&run.stream)?;
        let came = self.delivered.entry(stream).or_default();
        self.found.deliveries += run.numbers.len() as u64;
        for (index, number) in (run.start..).zip(&run.numbers) {
            let place = usize::try_from(index).unwrap_or(usize::MAX);
            match came.get(place) {
                Some(known) if known == number => self.found.duplicates += 1,
                Some(_) => self.found.broken += 1,
                None if place == came.len() => came.push(*number),
                // What is missing before it may come later, or not at all.
                None => self.found.out_of_order += 1,
            }
        }
        Ok(())
    }

    /// Compares what came with the streams, and takes the numbers that were pruned from what came.
    fn complete(&mut self) {
        let empty = Vec::new();
        for (stream, stored) in &mut self.streams {
            let came = self.delivered.get(stream).unwrap_or(&empty);
            self.found.lost += stored.version().saturating_sub(came.len() as u64);
            let lowest = usize::try_from(stored.lowest).unwrap_or(usize::MAX);
            let (gone, left) = came.split_at(lowest.min(came.len()));
            if left
                .iter()
                .zip(&stored.numbers)
                .any(|(came, is)| came != is)
            {
                self.found.broken += 1;
                self.found
                    .notes
                    .push(format!("other events came: {stream}"));
            }
            if gone.len() == lowest {
                stored.numbers.splice(0..0, gone.iter().copied());
                stored.lowest = 0;
            }
        }
    }

    /// Compares the streams with what the writers were told.
    fn compare_written(&mut self, files: &Files) -> Result<(), Failure> {
        let mut refused = HashSet::new();
        for line in Tail::new(files.written()).read()? {
            let (outcome, rest) = line.split_once(' ').unwrap_or_default();
            if outcome == "pruned" {
                self.found.pruned += rest.parse::<u64>().unwrap_or_default();
                continue;
            }
            let Some(run) = Run::parse(rest) else {
                self.found.broken(format!("not of a writer: {line}"));
                continue;
            };
            let count = run.numbers.len() as u64;
            match outcome {
                "acked" => {
                    self.found.acked += count;
                    self.find_acked(&run)?;
                }
                "unknown" => self.found.unknown += count,
                _ => {
                    self.found.refused += count;
                    refused.extend(run.numbers);
                }
            }
        }
        let all = self.streams.values().flat_map(|stored| &stored.numbers);
        let there = all.filter(|number| refused.contains(number)).count() as u64;
        if there > 0 {
            self.found.doubled += there;
            let what = format!("events are there whose append was refused: {there}");
            self.found.note(what);
        }
        Ok(())
    }

    /// Looks for acknowledged events where they must be.
    fn find_acked(&mut self, run: &Run) -> Result<(), Failure> {
        let stream = StreamName::parse(&run.stream)?;
        let stored = self.streams.get(&stream);
        let mut missing = 0;
        for (index, number) in (run.start..).zip(&run.numbers) {
            let found = stored.and_then(|stored| {
                let place = index.checked_sub(stored.lowest)?;
                stored.numbers.get(usize::try_from(place).ok()?)
            });
            missing += u64::from(found != Some(number));
        }
        if missing > 0 {
            self.found.lost += missing;
            let what = format!("{missing} acknowledged events are not there: {run}");
            self.found.note(what);
        }
        Ok(())
    }

    /// Compares the view and the models beside the streams with what the streams come to.
    async fn compare_views(&mut self) -> Result<(), Failure> {
        let tallies = self.store.db().scan::<Tally>().all().await?;
        let tallies = tallies.into_iter().map(|tally| {
            let fold = Fold {
                entries: tally.entries,
                sum: tally.sum,
                hash: tally.hash,
            };
            (tally.key, fold)
        });
        let mut tallies: HashMap<String, Fold> = tallies.collect();
        for (stream, stored) in &self.streams {
            let fold = Fold::of(&stored.numbers);
            let is_beside = stream.id().starts_with('p');
            let keys = [
                Some(view_key(stream)),
                is_beside.then(|| beside_key(stream)),
            ];
            for key in keys.into_iter().flatten() {
                let held = tallies.remove(&key).unwrap_or_default();
                if held != fold {
                    self.found.view_mismatches += 1;
                    let what = format!("{key}: {held:?} instead of {fold:?}");
                    self.found.note(what);
                }
            }
        }
        // A view of what is not there.
        self.found.view_mismatches += tallies.len() as u64;
        Ok(())
    }
}
