//! How far a consumer has come, as it is stored: `$ReaderCheckpoint-<group>_<partition>` in the index table.
//!
//! Whoever begins to consume [claims](ConsumerState::claimed) it, which raises its term; who finds another term than the one
//! that it has claimed stores nothing any more. So however late a worker wakes up, what it brings cannot undo what others
//! have done since. The term of the lease is noted as well: who held the partition earlier cannot claim it from who holds
//! it now.

use std::ops::Range;

use serde_json::{Map, Value, json};

use crate::events::StreamName;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::kept::State;
use crate::events::feed::limits::REASON_CHARS_MAX;

/// A place in the feed, down to the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Place {
    /// Before a batch.
    pub(super) checkpoint: Checkpoint,
    /// So many spans of the batch are done, whether or not a filter lets them through.
    pub(super) spans: u64,
    /// Of the span after them, the events before this index.
    pub(super) index: u64,
}

impl ParkedStream {
    /// Events of a stream that are not handled, and why.
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

    /// What remains after `tried`, an earlier state of this dead letter, was handled: all but `failed`. Events that were added
    /// since remain too. Nothing changes if the dead letter begins elsewhere by now.
    pub(super) fn after_retry(&self, tried: &Self, failed: Option<&Self>) -> Option<Self> {
        if self.index != tried.index {
            return Some(self.clone());
        }
        let index = failed.map_or(tried.end, |failed| failed.index);
        let reason = failed.map_or(&self.reason, |failed| &failed.reason);
        (index < self.end).then(|| Self {
            index,
            reason: reason.clone(),
            ..self.clone()
        })
    }
}

impl Place {
    pub(super) fn before(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint,
            ..Self::default()
        }
    }
}

/// A stream whose handler did not get on. What comes for it is passed by until it is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedStream {
    /// The stream.
    pub stream: StreamName,
    /// The index of the first event that is not handled.
    pub index: u64,
    /// The index after the last event that was passed by.
    pub end: u64,
    /// What the handler said.
    pub reason: String,
}

/// How far a consumer has come.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct ConsumerState {
    pub(super) place: Place,
    /// How often it was claimed or moved.
    pub(super) term: u64,
    /// The term of the lease under which it was claimed last.
    lease: u64,
    /// Dead letters that an earlier version stored with the checkpoint. They move into items of their own.
    pub(super) embedded: Vec<ParkedStream>,
}

impl ConsumerState {
    /// The same, at another place.
    pub(super) fn at(&self, place: Place) -> Self {
        Self {
            place,
            ..self.clone()
        }
    }

    /// The same, claimed by somebody: under a lease of this term, if there is one. `None` if a later lease has claimed it.
    pub(super) fn claimed(&self, lease: Option<u64>) -> Option<Self> {
        let lease = lease.unwrap_or(self.lease);
        (lease >= self.lease).then(|| Self {
            term: self.term + 1,
            lease,
            ..self.clone()
        })
    }

    /// The same, moved by somebody to a place: whoever has claimed it must begin anew.
    pub(super) fn moved(&self, place: Place) -> Self {
        Self {
            term: self.term + 1,
            ..self.at(place)
        }
    }
}

impl State for ConsumerState {
    const CATEGORY: &'static str = "$ReaderCheckpoint";
    /// The group and the number of the partition.
    type Id = (String, u32);
    const EVENT_TYPE: &'static str = "Checkpointed";
    const WHAT: &'static str = "the checkpoint of a consumer";

    fn write(&self) -> Value {
        let mut json = json!({
            "checkpoint": self.place.checkpoint.as_u64(),
            "spans": self.place.spans,
            "index": self.place.index,
            "term": self.term,
            "lease": self.lease,
        });
        if !self.embedded.is_empty() {
            let embedded = self.embedded.iter().map(|parked| {
                let ParkedStream {
                    index, end, reason, ..
                } = parked;
                let json = json!({ "index": index, "end": end, "reason": reason });
                (parked.stream.to_string(), json)
            });
            let embedded: Map<_, _> = embedded.collect();
            json.as_object_mut()
                .map(|json| json.insert("parked".to_owned(), embedded.into()));
        }
        json
    }

    fn read(json: &Value) -> Option<Self> {
        let number = |json: &Value, name: &str| json.get(name)?.as_u64();
        let embedded = |(stream, json): (&String, &Value)| {
            Some(ParkedStream {
                stream: StreamName::parse(stream).ok()?,
                index: number(json, "index")?,
                end: number(json, "end")?,
                reason: json.get("reason")?.as_str()?.to_owned(),
            })
        };
        let embedded: Option<Vec<_>> = match json.get("parked") {
            Some(parked) => parked.as_object()?.iter().map(embedded).collect(),
            None => Some(Vec::new()),
        };
        Some(Self {
            place: Place {
                checkpoint: Checkpoint::from_u64(number(json, "checkpoint")?).ok()?,
                spans: number(json, "spans")?,
                index: number(json, "index")?,
            },
            // These came later: a checkpoint without them was never claimed.
            term: number(json, "term").unwrap_or_default(),
            lease: number(json, "lease").unwrap_or_default(),
            embedded: embedded?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;
    use crate::events::feed::kept::Kept;

    const MOVED: &str = ConsumerState::EVENT_TYPE;

    fn parked(index: u64, end: u64) -> ParkedStream {
        ParkedStream {
            stream: StreamName::parse("Cart-1").unwrap(),
            index,
            end,
            reason: "no".to_owned(),
        }
    }

    #[test]
    fn progress_is_read_as_it_was_written() {
        let mut progress = ConsumerState::default().at(Place {
            checkpoint: Checkpoint::of(1, 57).unwrap(),
            spans: 2,
            index: 9,
        });
        progress.embedded.push(parked(3, 5));
        let progress = progress.claimed(Some(4)).unwrap();
        let data = Kept(progress.clone()).encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"checkpoint":1000057,"index":9,"lease":4,"parked":{"Cart-1":{"end":5,"index":3,"reason":"no"}},"spans":2,"term":1}"#
        );
        assert_eq!(Kept::decode(MOVED, &data).unwrap(), Some(Kept(progress)));
        assert!(Kept::<ConsumerState>::decode(MOVED, b"[]").is_err());
        let older = br#"{"checkpoint":7,"index":0,"parked":{},"spans":0}"#;
        let Kept(older) = Kept::<ConsumerState>::decode(MOVED, older)
            .unwrap()
            .unwrap();
        let place = Place::before(Checkpoint::of(0, 7).unwrap());
        assert_eq!(older, ConsumerState::default().at(place));
    }

    #[test]
    fn who_held_it_earlier_cannot_claim_it_from_who_holds_it_now() {
        let first = ConsumerState::default().claimed(Some(1)).unwrap();
        let second = first.claimed(Some(2)).unwrap();
        assert_eq!((first.term, second.term), (1, 2));
        assert_eq!(second.claimed(Some(1)), None);
        assert_eq!(second.claimed(Some(2)).unwrap().term, 3);
        // Without a lease one takes over, too, and who holds the lease takes it back.
        let without = second.claimed(None).unwrap();
        assert_eq!(without.claimed(Some(2)).unwrap().term, 4);
        assert_eq!(without.moved(Place::default()).term, 4);
    }

    #[test]
    fn retry_leaves_what_failed_and_what_was_added() {
        let known = parked(3, 5);
        assert_eq!(known.after_retry(&known, None), None);
        let failed = parked(4, 5);
        assert_eq!(known.after_retry(&known, Some(&failed)), Some(failed));
        let mut extended = known.clone();
        extended.extend(&parked(5, 8));
        assert_eq!(extended.after_retry(&known, None), Some(parked(5, 8)));
        // The checkpoint was moved back: all events are delivered again.
        extended.extend(&parked(0, 3));
        assert_eq!(extended.after_retry(&known, None), Some(parked(0, 8)));
    }

    #[test]
    fn reason_is_bounded() {
        let stream = StreamName::parse("Cart-1").unwrap();
        let long = ParkedStream::new(stream, 0..1, &"long".repeat(1_000));
        assert_eq!(long.reason.chars().count(), REASON_CHARS_MAX);
    }
}
