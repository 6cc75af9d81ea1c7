//! How far a consumer has come, as it is stored: `$ReaderCheckpoint-<group>_<partition>` in the index table.
//!
//! Whoever begins to consume [claims](Progress::claimed) it, which raises its term; who finds another term than the one
//! that it has claimed stores nothing any more. So however late a worker wakes up, what it brings cannot undo what others
//! have done since. The term of the lease is noted as well: who held the partition earlier cannot claim it from who holds
//! it now.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind, Result};
use crate::events::StreamName;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::kept::State;
use crate::events::feed::limits::{PARKED_MAX, REASON_CHARS_MAX};

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

impl Parked {
    /// Events of a stream that are not handled, and why.
    pub(super) fn new(stream: StreamName, range: Range<u64>, reason: &str) -> Self {
        Self {
            stream,
            index: range.start,
            end: range.end,
            reason: reason.chars().take(REASON_CHARS_MAX).collect(),
        }
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
pub struct Parked {
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
pub(super) struct Progress {
    pub(super) place: Place,
    /// How often it was claimed or moved.
    pub(super) term: u64,
    /// The term of the lease under which it was claimed last.
    lease: u64,
    parked: BTreeMap<StreamName, Parked>,
}

impl Progress {
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

    pub(super) fn parked(&self) -> Vec<Parked> {
        self.parked.values().cloned().collect()
    }

    pub(super) fn is_parked(&self, stream: &StreamName) -> bool {
        self.parked.contains_key(stream)
    }

    /// The same, as far as this stream was tried again elsewhere.
    pub(super) fn without_parked(&self, stream: &StreamName) -> Self {
        let mut after = self.clone();
        after.parked.remove(stream);
        after
    }

    /// What is parked of a stream.
    pub(super) fn parked_of(&self, stream: &StreamName) -> Option<&Parked> {
        self.parked.get(stream)
    }

    /// How many events are parked.
    pub(super) fn parked_events(&self) -> u64 {
        let parked = self.parked.values();
        parked.map(|parked| parked.end - parked.index).sum()
    }

    /// Parks a stream. If it is parked already, that is the more: also what was handled and comes again.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when so many are parked that it is not the streams that are at fault.
    pub(super) fn park(&mut self, parked: Parked) -> Result<()> {
        let (count, max) = (self.parked.len(), PARKED_MAX);
        match self.parked.entry(parked.stream.clone()) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.index = known.index.min(parked.index);
                known.end = known.end.max(parked.end);
            }
            Entry::Vacant(_) if count >= max => {
                let Parked { stream, reason, .. } = parked;
                let message = format!(
                    "too many streams are parked: max={max} stream={stream} reason={reason}"
                );
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            Entry::Vacant(unknown) => {
                unknown.insert(parked);
            }
        }
        Ok(())
    }

    /// A parked stream was tried again, up to where it was known to end. It may not have got on, or more may have come.
    /// If it has to be handled from elsewhere by now, nothing counts.
    pub(super) fn retried(&self, tried: &Parked, again: Option<&Parked>) -> Self {
        let mut after = self.clone();
        let known = after.parked.get_mut(&tried.stream);
        if let Some(known) = known.filter(|known| known.index == tried.index) {
            known.index = again.map_or(tried.end, |again| again.index);
            if let Some(again) = again {
                known.reason.clone_from(&again.reason);
            }
            if known.index >= known.end {
                after.parked.remove(&tried.stream);
            }
        }
        after
    }
}

impl State for Progress {
    const CATEGORY: &'static str = "$ReaderCheckpoint";
    /// The group and the number of the partition.
    type Id = (String, u32);
    const EVENT_TYPE: &'static str = "Checkpointed";
    const WHAT: &'static str = "the checkpoint of a consumer";

    fn write(&self) -> Value {
        let parked = self.parked.iter().map(|(stream, parked)| {
            let Parked {
                index, end, reason, ..
            } = parked;
            let json = json!({ "index": index, "end": end, "reason": reason });
            (stream.to_string(), json)
        });
        json!({
            "checkpoint": self.place.checkpoint.as_u64(),
            "spans": self.place.spans,
            "index": self.place.index,
            "term": self.term,
            "lease": self.lease,
            "parked": parked.collect::<Map<_, _>>(),
        })
    }

    fn read(json: &Value) -> Option<Self> {
        let number = |json: &Value, name: &str| json.get(name)?.as_u64();
        let parked = json.get("parked")?.as_object()?.iter();
        let parked = parked.map(|(stream, json)| {
            let stream = StreamName::parse(stream).ok()?;
            let parked = Parked {
                stream: stream.clone(),
                index: number(json, "index")?,
                end: number(json, "end")?,
                reason: json.get("reason")?.as_str()?.to_owned(),
            };
            Some((stream, parked))
        });
        Some(Self {
            place: Place {
                checkpoint: Checkpoint::from_u64(number(json, "checkpoint")?).ok()?,
                spans: number(json, "spans")?,
                index: number(json, "index")?,
            },
            // These came later: a checkpoint without them was never claimed.
            term: number(json, "term").unwrap_or_default(),
            lease: number(json, "lease").unwrap_or_default(),
            parked: parked.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;
    use crate::events::feed::kept::Kept;

    const MOVED: &str = Progress::EVENT_TYPE;

    fn parked(index: u64, end: u64) -> Parked {
        Parked {
            stream: StreamName::parse("Cart-1").unwrap(),
            index,
            end,
            reason: "no".to_owned(),
        }
    }

    #[test]
    fn progress_is_read_as_it_was_written() {
        let mut progress = Progress::default().at(Place {
            checkpoint: Checkpoint::of(1, 57).unwrap(),
            spans: 2,
            index: 9,
        });
        progress.park(parked(3, 5)).unwrap();
        let progress = progress.claimed(Some(4)).unwrap();
        let data = Kept(progress.clone()).encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"checkpoint":1000057,"index":9,"lease":4,"parked":{"Cart-1":{"end":5,"index":3,"reason":"no"}},"spans":2,"term":1}"#
        );
        assert_eq!(Kept::decode(MOVED, &data).unwrap(), Some(Kept(progress)));
        assert!(Kept::<Progress>::decode(MOVED, b"[]").is_err());
        let older = br#"{"checkpoint":7,"index":0,"parked":{},"spans":0}"#;
        let Kept(older) = Kept::<Progress>::decode(MOVED, older).unwrap().unwrap();
        let place = Place::before(Checkpoint::of(0, 7).unwrap());
        assert_eq!(older, Progress::default().at(place));
    }

    #[test]
    fn who_held_it_earlier_cannot_claim_it_from_who_holds_it_now() {
        let first = Progress::default().claimed(Some(1)).unwrap();
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
    fn there_is_an_end_to_parking() {
        let mut progress = Progress::default();
        let stream = |id: usize| StreamName::new("Cart", &(id as u64)).unwrap();
        for id in 0..PARKED_MAX {
            let parked = Parked::new(stream(id), 0..1, &"long".repeat(1_000));
            progress.park(parked).unwrap();
        }
        let (first, last) = (stream(0), stream(PARKED_MAX));
        progress.park(Parked::new(first, 0..2, "")).unwrap();
        let error = progress.park(Parked::new(last, 0..1, "why")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "too many streams are parked: max=500 stream=Cart-500 reason=why"
        );
        assert!(Kept(progress).encode().unwrap().len() < 300_000);
    }

    #[test]
    fn what_is_parked_is_tried_up_to_where_it_was_known() {
        let mut progress = Progress::default();
        progress.park(parked(3, 5)).unwrap();
        let known = progress.parked().remove(0);
        assert_eq!(progress.retried(&known, None).parked(), []);
        let again = progress.retried(&known, Some(&parked(4, 5)));
        assert_eq!(again.parked(), [parked(4, 5)]);
        progress.park(parked(5, 8)).unwrap();
        assert_eq!(progress.parked_events(), 5);
        assert_eq!(progress.retried(&known, None).parked(), [parked(5, 8)]);
        // Who was moved back is told of all of it again.
        progress.park(parked(0, 3)).unwrap();
        assert_eq!(progress.retried(&known, None).parked(), [parked(0, 8)]);
    }
}
