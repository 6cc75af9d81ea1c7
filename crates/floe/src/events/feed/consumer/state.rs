//! The stored state of a consumer: `$ReaderCheckpoint-<group>_<partition>` in the index table.
//!
//! A consumer that starts [claims](ConsumerState::claimed) the state, which increments its term; a consumer whose
//! claimed term is not the stored one stores nothing. So a worker that resumes late cannot overwrite what its
//! successors stored. The term of the lease is stored as well: a previous lease holder cannot claim the state from the
//! current one.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::parked_stream::ParkedStream;
use crate::events::StreamName;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::span::Span;
use crate::events::feed::stored_state::StoredState;

/// A position between two events of the feed. A [`Checkpoint`] is a position between two batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct FeedPosition {
    /// The position before the batch.
    pub(super) checkpoint: Checkpoint,
    /// Number of processed spans of the batch, including those that a filter skips.
    pub(super) spans: u64,
    /// The events of the next span before this index are processed.
    pub(super) index: u64,
}

impl FeedPosition {
    /// The position before the batch at a checkpoint.
    pub(super) fn before(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint,
            ..Self::default()
        }
    }

    /// The unprocessed part of a span, given its number in the batch.
    pub(super) fn remaining(self, number: u64, span: &Span) -> Option<Span> {
        let index = match number.cmp(&self.spans) {
            Ordering::Less => return None,
            Ordering::Equal => self.index,
            Ordering::Greater => 0,
        };
        span.clone().from_index(index)
    }

    /// Number of unprocessed events of a span, given its number in the batch.
    pub(super) fn remaining_events(self, number: u64, span: &Span) -> u64 {
        let remaining = self.remaining(number, span);
        remaining.map_or(0, |span| span.types.len() as u64)
    }
}

/// The stored state of a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct ConsumerState {
    pub(super) position: FeedPosition,
    /// How often it was claimed or moved.
    pub(super) term: u64,
    /// The term of the lease of the last claim.
    lease: u64,
    /// Dead letters that an earlier version stored with the checkpoint. They are converted into items.
    pub(super) embedded: Vec<ParkedStream>,
}

impl ConsumerState {
    /// Returns the state with another position.
    pub(super) fn at(&self, position: FeedPosition) -> Self {
        Self {
            position,
            ..self.clone()
        }
    }

    /// Returns the state after a claim, under a lease of this term if there is one. `None` if a later lease has claimed
    /// it.
    pub(super) fn claimed(&self, lease: Option<u64>) -> Option<Self> {
        let lease = lease.unwrap_or(self.lease);
        (lease >= self.lease).then(|| Self {
            term: self.term + 1,
            lease,
            ..self.clone()
        })
    }

    /// Returns the state after a move to another position, which fences the consumer that claimed it.
    pub(super) fn moved(&self, position: FeedPosition) -> Self {
        Self {
            term: self.term + 1,
            ..self.at(position)
        }
    }
}

impl StoredState for ConsumerState {
    const CATEGORY: &'static str = "$ReaderCheckpoint";
    /// The group and the number of the partition.
    type Id = (String, u32);
    const EVENT_TYPE: &'static str = "Checkpointed";
    const DESCRIPTION: &'static str = "the checkpoint of a consumer";

    fn write(&self) -> Value {
        let mut json = json!({
            "checkpoint": self.position.checkpoint.as_u64(),
            "spans": self.position.spans,
            "index": self.position.index,
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
            position: FeedPosition {
                checkpoint: Checkpoint::from_u64(number(json, "checkpoint")?).ok()?,
                spans: number(json, "spans")?,
                index: number(json, "index")?,
            },
            // Added by a later version: a checkpoint without them was never claimed.
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
    use crate::events::feed::stored_state::StateEvent;

    const EVENT_TYPE: &str = ConsumerState::EVENT_TYPE;

    #[test]
    fn state_round_trips() {
        let mut state = ConsumerState::default().at(FeedPosition {
            checkpoint: Checkpoint::of(1, 57).unwrap(),
            spans: 2,
            index: 9,
        });
        let stream = StreamName::parse("Cart-1").unwrap();
        state.embedded.push(ParkedStream::new(stream, 3..5, "no"));
        let state = state.claimed(Some(4)).unwrap();
        let data = StateEvent(state.clone()).encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"checkpoint":1000057,"index":9,"lease":4,"parked":{"Cart-1":{"end":5,"index":3,"reason":"no"}},"spans":2,"term":1}"#
        );
        assert_eq!(
            StateEvent::decode(EVENT_TYPE, &data).unwrap(),
            Some(StateEvent(state))
        );
        assert!(StateEvent::<ConsumerState>::decode(EVENT_TYPE, b"[]").is_err());
        let older = br#"{"checkpoint":7,"index":0,"parked":{},"spans":0}"#;
        let StateEvent(older) = StateEvent::<ConsumerState>::decode(EVENT_TYPE, older)
            .unwrap()
            .unwrap();
        let position = FeedPosition::before(Checkpoint::of(0, 7).unwrap());
        assert_eq!(older, ConsumerState::default().at(position));
    }

    #[test]
    fn previous_lease_holder_cannot_claim() {
        let first = ConsumerState::default().claimed(Some(1)).unwrap();
        let second = first.claimed(Some(2)).unwrap();
        assert_eq!((first.term, second.term), (1, 2));
        assert_eq!(second.claimed(Some(1)), None);
        assert_eq!(second.claimed(Some(2)).unwrap().term, 3);
        // A consumer without a lease can claim too, and the lease holder can claim it back.
        let without = second.claimed(None).unwrap();
        assert_eq!(without.claimed(Some(2)).unwrap().term, 4);
        assert_eq!(without.moved(FeedPosition::default()).term, 4);
    }
}
