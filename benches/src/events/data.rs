//! The streams of both benchmarks: what their events are, and what they come to.

use floe::Event;
use floe::events::{Access, Decider};

/// How many events a stream has before the next one is begun.
pub(super) const STREAM_EVENTS: u64 = 20;

#[derive(Clone, Event)]
pub(super) enum Entry {
    Booked { note: String },
    Counted { entries: u64 },
}

impl Entry {
    /// An event of some 200 bytes.
    pub(super) fn new() -> Self {
        Self::Booked { note: note() }
    }
}

/// What an event says, in 200 bytes.
pub(super) fn note() -> String {
    "lorem ipsum dolor sit amet ".repeat(8).split_off(16)
}

/// The body of an event, as it is stored.
pub(super) fn body() -> Vec<u8> {
    format!(r#"{{"note":"{}"}}"#, note()).into_bytes()
}

/// Streams of entries, whose state is how many there are.
pub(super) enum Ledger {}

impl Decider for Ledger {
    const CATEGORY: &'static str = "Ledger";
    type Id = str;
    type Event = Entry;
    type State = u64;

    fn initial() -> u64 {
        0
    }

    fn evolve(entries: u64, event: &Entry) -> u64 {
        match event {
            Entry::Booked { .. } => entries + 1,
            Entry::Counted { entries } => *entries,
        }
    }
}

/// Finds the state in the Tip.
pub(super) fn snapshot() -> Access<Ledger> {
    Access::Snapshot {
        is_origin: |event| matches!(event, Entry::Counted { .. }),
        to_snapshot: |entries| Entry::Counted { entries: *entries },
    }
}

#[cfg(test)]
mod tests {
    use floe::events::Event;

    use super::*;

    #[test]
    fn an_event_is_of_the_size_that_the_help_tells() {
        let encoded = Entry::new().encode().unwrap();
        assert_eq!((note().len(), encoded.len()), (200, 211));
        assert_eq!(encoded, body());
    }
}
