//! What is appended, and what it comes to: events that a reader can check, and an order-sensitive sum of them.

use floe::Event;
use floe::Model;
use floe::events::{Access, Decider, EventData, Recorded, StreamName};

use crate::checks::stage::mixed;

/// What happens in the streams of the check.
#[derive(Clone, Debug, PartialEq, Eq, Event)]
pub(super) enum Entry {
    /// A number that no other event has.
    Noted {
        stream: String,
        /// Its place in the stream, if that was known when it was appended.
        index: Option<u64>,
        number: u64,
        check: u64,
    },
    /// All before, as a snapshot.
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

    /// The event as it is appended without a decider.
    pub(super) fn data(&self) -> floe::Result<EventData> {
        Ok(EventData::new(self.event_type(), self.encode()?))
    }
}

/// The number of an event that was read, if it is one of this stream and stands where it says.
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
            check: told,
        })) => {
            let is_whole = of == stream.as_str() && told == check(stream, number);
            let is_here = index.is_none_or(|index| index == recorded.index);
            match is_whole && is_here {
                true => Ok(number),
                false => Err(wrong("an event is not where it belongs")),
            }
        }
        _ => Err(wrong("an event cannot be read")),
    }
}

fn check(stream: &StreamName, number: u64) -> u64 {
    let stream = stream.as_str().bytes();
    stream.fold(mixed(number), |hash, byte| mixed(hash ^ u64::from(byte))) >> 16
}

/// What the numbers of a stream come to; another order is another hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fold {
    pub(super) entries: u64,
    pub(super) sum: u64,
    pub(super) hash: u64,
}

impl Fold {
    pub(super) fn add(&mut self, number: u64) {
        self.entries += 1;
        self.sum = self.sum.wrapping_add(number);
        self.hash = mixed(self.hash.rotate_left(9) ^ number);
    }

    pub(super) fn of(numbers: &[u64]) -> Self {
        let mut fold = Self::default();
        numbers.iter().for_each(|number| fold.add(*number));
        fold
    }
}

/// Streams that are decided upon.
pub(super) enum Account {}

impl Decider for Account {
    const CATEGORY: &'static str = "Account";
    type Id = str;
    type Event = Entry;
    type State = Fold;

    fn initial() -> Fold {
        Fold::default()
    }

    fn evolve(mut state: Fold, event: &Entry) -> Fold {
        match event {
            Entry::Noted { number, .. } => {
                state.add(*number);
                state
            }
            Entry::Folded { entries, sum, hash } => Fold {
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

pub(super) const fn folded(state: &Fold) -> Entry {
    Entry::Folded {
        entries: state.entries,
        sum: state.sum,
        hash: state.hash,
    }
}

/// Keeps a snapshot beside the events.
pub(super) fn snapshot() -> Access<Account> {
    Access::Snapshot {
        is_origin: is_folded,
        to_snapshot: folded,
    }
}

/// The same, and a decision to fold writes the snapshot alone.
pub(super) fn custom() -> Access<Account> {
    Access::Custom {
        is_origin: is_folded,
        transmute: |events, state| {
            let events = events.into_iter().filter(|event| !is_folded(event));
            (events.collect(), vec![folded(state)])
        },
    }
}

/// What a stream comes to, as a model: kept by a view of the feed, or in the transactions of the appends themselves.
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
    let mut fold = Fold {
        entries: *row.entries,
        sum: *row.sum,
        hash: *row.hash,
    };
    numbers.iter().for_each(|number| fold.add(*number));
    *row.entries = fold.entries;
    *row.sum = fold.sum;
    *row.hash = fold.hash;
    Ok(())
}

/// Where the view keeps what a stream comes to.
pub(super) fn view_key(stream: &StreamName) -> String {
    format!("view {stream}")
}

/// Where the transactions of the appends do.
pub(super) fn beside_key(stream: &StreamName) -> String {
    format!("beside {stream}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_order_is_another_fold() {
        assert_ne!(Fold::of(&[1, 2, 3]), Fold::of(&[1, 3, 2]));
        let all = [&[7][..], &[8]].concat();
        assert_eq!(Fold::of(&all).entries, 2);
    }
}
