//! The streams of both sides: events and states.

use floe::Event;
use floe::events::{Access, Decider};

/// Number of events in a stream before the next stream is started.
pub(super) const STREAM_EVENTS: u64 = 20;

#[derive(Clone, Event)]
pub(super) enum Entry {
    Booked { note: String },
    Counted { entries: u64 },
}

impl Entry {
    /// Creates an event of about 200 bytes.
    pub(super) fn new() -> Self {
        Self::Booked { note: note() }
    }
}

/// The text of an event, 200 bytes.
pub(super) fn note() -> String {
    "lorem ipsum dolor sit amet ".repeat(8).split_off(16)
}

/// The body of an event as stored.
pub(super) fn body() -> Vec<u8> {
    format!(r#"{{"note":"{}"}}"#, note()).into_bytes()
}

/// Streams of entries. The state is the number of entries.
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

/// An access strategy that finds the state in the Tip.
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
    fn event_size_matches_the_help() {
        let encoded = Entry::new().encode().unwrap();
        assert_eq!((note().len(), encoded.len()), (200, 211));
        assert_eq!(encoded, body());
    }
}
