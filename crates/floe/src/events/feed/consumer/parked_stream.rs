//! A parked stream, which is the content of a dead letter.

use std::ops::Range;

use crate::events::StreamName;
use crate::events::feed::limits::REASON_CHARS_MAX;

/// A stream whose handler failed in all attempts, and the events that are therefore not handled. Each is stored as a
/// dead letter, an item of its own. Later events of the stream extend it until a retry removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedStream {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first event that is not handled.
    pub index: u64,
    /// The index after the last event that is not handled.
    pub end: u64,
    /// The error of the handler, or of reading the events.
    pub reason: String,
}

impl ParkedStream {
    /// The events of a stream that are not handled, and the reason, which is cut to its maximum length.
    pub(super) fn new(stream: StreamName, range: Range<u64>, reason: &str) -> Self {
        Self {
            stream,
            index: range.start,
            end: range.end,
            reason: reason.chars().take(REASON_CHARS_MAX).collect(),
        }
    }

    /// Adds events of the same stream: later ones, or earlier ones after the checkpoint was moved back.
    pub(super) fn extend(&mut self, added: &Self) {
        self.index = self.index.min(added.index);
        self.end = self.end.max(added.end);
    }

    /// Returns what remains after `retried`, an earlier state of this dead letter, was handled except for `failed`.
    /// Events that were added since remain too. Nothing changes if another process has changed the first index since.
    pub(super) fn after_retry(&self, retried: &Self, failed: Option<&Self>) -> Option<Self> {
        if self.index != retried.index {
            return Some(self.clone());
        }
        let index = failed.map_or(retried.end, |failed| failed.index);
        let reason = failed.map_or(&self.reason, |failed| &failed.reason);
        (index < self.end).then(|| Self {
            index,
            reason: reason.clone(),
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(index: u64, end: u64) -> ParkedStream {
        let stream = StreamName::parse("Cart-1").unwrap();
        ParkedStream::new(stream, index..end, "no")
    }

    #[test]
    fn retry_keeps_failed_and_added_events() {
        let stored = parked(3, 5);
        assert_eq!(stored.after_retry(&stored, None), None);
        let failed = parked(4, 5);
        assert_eq!(stored.after_retry(&stored, Some(&failed)), Some(failed));
        let mut extended = stored.clone();
        extended.extend(&parked(5, 8));
        assert_eq!(extended.after_retry(&stored, None), Some(parked(5, 8)));
        // The checkpoint was moved back: all events are delivered again.
        extended.extend(&parked(0, 3));
        assert_eq!(extended.after_retry(&stored, None), Some(parked(0, 8)));
    }

    #[test]
    fn reason_is_bounded() {
        let stream = StreamName::parse("Cart-1").unwrap();
        let long = ParkedStream::new(stream, 0..1, &"long".repeat(1_000));
        assert_eq!(long.reason.chars().count(), REASON_CHARS_MAX);
    }
}
