//! Records the deliveries to the group.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use floe::events::feed::{Handled, Partition};
use floe::events::{Recorded, StreamName};

use super::config::{Files, PARTITIONS};
use super::entry::number_of;
use super::journal::{Journal, Run};
use crate::Failure;

/// In one of this many calls, only the first of several events is handled.
const PARTIAL_EVERY: u64 = 13;

/// The numbers of events. Unreadable events are found in the audit of the streams.
pub(super) fn numbers(stream: &StreamName, events: &[Recorded]) -> Vec<u64> {
    let numbers = events.iter().map(|event| number_of(stream, event));
    numbers.map(Result::unwrap_or_default).collect()
}

/// Records deliveries of some partitions.
pub(super) struct Deliveries {
    files: Files,
    journals: BTreeMap<Partition, Journal>,
    calls: AtomicU64,
}

impl Deliveries {
    pub(super) fn new(
        files: &Files,
        partitions: impl IntoIterator<Item = Partition>,
    ) -> Result<Self, Failure> {
        let mut journals = BTreeMap::new();
        for partition in partitions {
            journals.insert(partition, Journal::open(&files.delivered(partition))?);
        }
        Ok(Self {
            journals,
            files: files.clone(),
            calls: AtomicU64::new(0),
        })
    }

    pub(super) const fn files(&self) -> &Files {
        &self.files
    }

    /// Handles events: records that they were delivered.
    pub(super) fn record(
        &self,
        stream: &StreamName,
        events: &[Recorded],
    ) -> Result<Handled, RecordError> {
        let is_partial = self
            .calls
            .fetch_add(1, Ordering::Relaxed)
            .is_multiple_of(PARTIAL_EVERY);
        let (events, handled) = match events {
            [first, _, ..] if is_partial => {
                (std::slice::from_ref(first), Handled::UpTo(first.index + 1))
            }
            all => (all, Handled::All),
        };
        let run = Run {
            stream: stream.to_string(),
            start: events.first().map_or(0, |first| first.index),
            numbers: numbers(stream, events),
        };
        let journal = self.journals.get(&PARTITIONS.of(stream));
        let journal = journal.ok_or_else(|| std::io::Error::other("the partition is not assigned"));
        journal
            .and_then(|journal| journal.append(run))
            .map_err(RecordError)?;
        Ok(handled)
    }
}

/// A delivery could not be recorded.
#[derive(Debug)]
pub(super) struct RecordError(std::io::Error);

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot record a delivery: {}", self.0)
    }
}
