//! The events of the check, which a reader can verify, and order-sensitive digests of them.

use floe::Event;
use floe::Model;
use floe::events::{Access, Decider, EventData, Recorded, StreamName};

use crate::checks::test_table::splitmix64;

/// The events in the streams of the check.
#[derive(Clone, Debug, PartialEq, Eq, Event)]
pub(super) enum Entry {
    /// An event with a unique number.
    Noted {
        stream: String,
        /// Its position in the stream, if known at the append.
        index: Option<u64>,
        number: u64,
        check: u64,
    },
    /// A snapshot of all earlier events.
    Folded { entries: u64, sum: u64, hash: u64 },
}

impl Entry {
    pub(super) fn noted(stream: &StreamName, index: Option<u64>, number: u64) -> Self {
        Self::Noted {
            stream: stream.to_string(),
            index,
            number,
            check: check(stream, number),
        }
    }

    /// Returns the event in the form for appends without a decider.
    pub(super) fn data(&self) -> floe::Result<EventData> {
        Ok(EventData::new(self.event_type(), self.encode()?))
    }
}

/// Returns the number of an event, after checking that it belongs to this stream and position.
pub(super) fn number_of(stream: &StreamName, recorded: &Recorded) -> Result<u64, String> {
    let event = &recorded.event;
    let wrong = |what: &str| {
        let index = recorded.index;
        let event = String::from_utf8_lossy(&event.data);
        format!("{what}: stream={stream} index={index} event={event}")
    };
    match Entry::decode(&event.event_type, &event.data) {
        Ok(Some(Entry::Noted {
            stream: of,
            index,
            number,
            check: stored,
        })) => {
            let is_whole = of == stream.as_str() && stored == check(stream, number);
            let is_here = index.is_none_or(|index| index == recorded.index);
            if is_whole && is_here {
                Ok(number)
            } else {
                Err(wrong("an event is in the wrong stream or position"))
            }
        }
        _ => Err(wrong("an event cannot be read")),
    }
}

fn check(stream: &StreamName, number: u64) -> u64 {
    let stream = stream.as_str().bytes();
    stream.fold(splitmix64(number), |hash, byte| {
        splitmix64(hash ^ u64::from(byte))
    }) >> 16
}

/// The digest of a stream's numbers; it depends on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    pub(super) entries: u64,
    pub(super) sum: u64,
    pub(super) hash: u64,
}

impl Digest {
    pub(super) fn add(&mut self, number: u64) {
        self.entries += 1;
        self.sum = self.sum.wrapping_add(number);
        self.hash = splitmix64(self.hash.rotate_left(9) ^ number);
    }

    pub(super) fn of(numbers: &[u64]) -> Self {
        let mut digest = Self::default();
        numbers.iter().for_each(|number| digest.add(*number));
        digest
    }
}

/// The decider of the streams.
pub(super) enum Account {}

impl Decider for Account {
    const CATEGORY: &'static str = "Account";
    type Id = str;
    type Event = Entry;
    type State = Digest;

    fn initial() -> Digest {
        Digest::default()
    }

    fn evolve(mut state: Digest, event: &Entry) -> Digest {
        match event {
            Entry::Noted { number, .. } => {
                state.add(*number);
                state
            }
            Entry::Folded { entries, sum, hash } => Digest {
                entries: *entries,
                sum: *sum,
                hash: *hash,
            },
        }
    }
}

const fn is_folded(event: &Entry) -> bool {
    matches!(event, Entry::Folded { .. })
}

pub(super) const fn folded(state: &Digest) -> Entry {
    Entry::Folded {
        entries: state.entries,
        sum: state.sum,
        hash: state.hash,
    }
}

/// Stores a snapshot with the events.
pub(super) fn snapshot() -> Access<Account> {
    Access::Snapshot {
        is_origin: is_folded,
        to_snapshot: folded,
    }
}

/// Stores a snapshot with the events; a decision to fold writes only the snapshot.
pub(super) fn custom() -> Access<Account> {
    Access::Custom {
        is_origin: is_folded,
        transmute: |events, state| {
            let events = events.into_iter().filter(|event| !is_folded(event));
            (events.collect(), vec![folded(state)])
        },
    }
}

/// The digest of a stream as a model, maintained by the view or in the transactions of the appends.
#[derive(Model)]
#[model(table = "Tallies")]
pub(super) struct Tally {
    #[model(key)]
    pub(super) key: String,
    pub(super) entries: u64,
    pub(super) sum: u64,
    pub(super) hash: u64,
}

impl Tally {
    pub(super) fn new(key: String) -> Self {
        Self {
            key,
            entries: 0,
            sum: 0,
            hash: 0,
        }
    }
}

/// Adds numbers to a tally in a transaction.
pub(super) async fn tally(tx: &floe::Tx, key: String, numbers: &[u64]) -> floe::Result<()> {
    let mut row = tx.get_or_create(Tally::new(key)).await?;
    let mut digest = Digest {
        entries: *row.entries,
        sum: *row.sum,
        hash: *row.hash,
    };
    numbers.iter().for_each(|number| digest.add(*number));
    *row.entries = digest.entries;
    *row.sum = digest.sum;
    *row.hash = digest.hash;
    Ok(())
}

/// The key of the digest that the view maintains.
pub(super) fn view_key(stream: &StreamName) -> String {
    format!("view {stream}")
}

/// The key of the digest that the transactions of the appends maintain.
pub(super) fn transaction_key(stream: &StreamName) -> String {
    format!("transaction {stream}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_depends_on_the_order() {
        assert_ne!(Digest::of(&[1, 2, 3]), Digest::of(&[1, 3, 2]));
        let all = [&[7][..], &[8]].concat();
        assert_eq!(Digest::of(&all).entries, 2);
    }
}
