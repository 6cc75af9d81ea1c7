//! What is delivered to the group, written down.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use floe::events::feed::{Handled, Partition};
use floe::events::{Recorded, StreamName};

use super::entry::number_of;
use super::journal::{Journal, Run};
use super::setting::{Files, PARTITIONS};
use crate::Failure;

/// Every so many calls, a member handles the first of several events only.
const PARTIAL_EVERY: u64 = 13;

/// The numbers of events. What cannot be read is found when the streams are looked over.
pub(super) fn numbers(stream: &StreamName, events: &[Recorded]) -> Vec<u64> {
    let numbers = events.iter().map(|event| number_of(stream, event));
    numbers.map(Result::unwrap_or_default).collect()
}

/// What the group is told of some partitions.
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

    /// Handles events: writes down that they came.
    pub(super) fn take(&self, stream: &StreamName, events: &[Recorded]) -> Result<Handled, Untold> {
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
        let journal = journal.ok_or_else(|| std::io::Error::other("no partition of this one"));
        journal
            .and_then(|journal| journal.tell(run))
            .map_err(Untold)?;
        Ok(handled)
    }
}

/// A delivery could not be written down.
#[derive(Debug)]
pub(super) struct Untold(std::io::Error);

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a delivery could not be written down: {}", self.0)
    }
}
