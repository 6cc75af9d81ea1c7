//! How far a consumer has come, as it is stored: `$ReaderCheckpoint-<group>_<partition>` in the index table.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::{Access, Decider, Event, StreamName};

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

impl Place {
    pub(super) const fn before(checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint,
            spans: 0,
            index: 0,
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
    parked: BTreeMap<StreamName, Parked>,
}

impl Progress {
    /// The same, at another place.
    pub(super) fn at(&self, place: Place) -> Self {
        Self {
            place,
            parked: self.parked.clone(),
        }
    }

    pub(super) fn parked(&self) -> Vec<Parked> {
        self.parked.values().cloned().collect()
    }

    pub(super) fn is_parked(&self, stream: &StreamName) -> bool {
        self.parked.contains_key(stream)
    }

    /// Parks a stream; what is passed by later comes on top.
    pub(super) fn park(&mut self, parked: &Parked) {
        let known = self.parked.entry(parked.stream.clone());
        let known = known.or_insert_with(|| parked.clone());
        known.end = known.end.max(parked.end);
    }

    /// Events up to there come for a stream; if it is parked, they are passed by.
    pub(super) fn pass_by(&mut self, stream: &StreamName, end: u64) {
        if let Some(known) = self.parked.get_mut(stream) {
            known.end = known.end.max(end);
        }
    }

    /// A parked stream was tried again, up to where it was known to end. It may not have got on, or more may have come.
    pub(super) fn retried(&self, tried: &Parked, again: Option<&Parked>) -> Self {
        let mut after = self.clone();
        if let Some(known) = after.parked.get_mut(&tried.stream) {
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

const MOVED: &str = "Checkpointed";

impl Event for Progress {
    fn event_type(&self) -> &'static str {
        MOVED
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let parked: Map<String, Value> = self
            .parked
            .values()
            .map(|parked| {
                let json =
                    json!({ "index": parked.index, "end": parked.end, "reason": parked.reason });
                (parked.stream.to_string(), json)
            })
            .collect();
        let json = json!({
            "checkpoint": self.place.checkpoint.as_u64(),
            "spans": self.place.spans,
            "index": self.place.index,
            "parked": parked,
        });
        Ok(json.to_string().into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        if event_type != MOVED {
            return Ok(None);
        }
        let json: Option<Value> = serde_json::from_slice(data).ok();
        let read = json.as_ref().and_then(progress);
        read.map(Some).ok_or_else(|| {
            let data = String::from_utf8_lossy(data);
            let message = format!("the checkpoint of a consumer cannot be read: data={data}");
            Error::new(ErrorKind::InvalidEvent, message)
        })
    }
}

fn progress(json: &Value) -> Option<Progress> {
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
    Some(Progress {
        place: Place {
            checkpoint: Checkpoint::from_u64(number(json, "checkpoint")?).ok()?,
            spans: number(json, "spans")?,
            index: number(json, "index")?,
        },
        parked: parked.collect::<Option<_>>()?,
    })
}

/// The streams that checkpoints are kept in.
pub(super) enum ReaderCheckpoint {}

impl Decider for ReaderCheckpoint {
    const CATEGORY: &'static str = "$ReaderCheckpoint";
    /// The group and the number of the partition.
    type Id = (String, u32);
    type Event = Progress;
    type State = Progress;

    fn initial() -> Progress {
        Progress::default()
    }

    fn evolve(_: Progress, event: &Progress) -> Progress {
        event.clone()
    }

    fn access() -> Access<Self> {
        Access::RollingState {
            to_snapshot: Progress::clone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        progress.park(&parked(3, 5));
        let data = progress.encode().unwrap();
        assert_eq!(
            str::from_utf8(&data).unwrap(),
            r#"{"checkpoint":1000057,"index":9,"parked":{"Cart-1":{"end":5,"index":3,"reason":"no"}},"spans":2}"#
        );
        assert_eq!(Progress::decode(MOVED, &data).unwrap(), Some(progress));
        assert!(Progress::decode(MOVED, b"[]").is_err());
    }

    #[test]
    fn what_is_parked_is_tried_up_to_where_it_was_known() {
        let mut progress = Progress::default();
        progress.pass_by(&parked(0, 0).stream, 9);
        assert_eq!(progress.parked(), []);
        progress.park(&parked(3, 5));
        let known = progress.parked().remove(0);
        assert_eq!(progress.retried(&known, None).parked(), []);
        let again = progress.retried(&known, Some(&parked(4, 5)));
        assert_eq!(again.parked(), [parked(4, 5)]);
        progress.pass_by(&known.stream, 8);
        assert_eq!(progress.retried(&known, None).parked(), [parked(5, 8)]);
    }
}
