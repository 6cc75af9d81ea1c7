//! How far an indexer has come in each shard of a change stream, as it is stored.
//!
//! One small item, `$IndexerPosition-<name>`, is replaced by each step, after what was read is in the epochs. Who dies
//! between the two reads some records again, and the epochs know them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind, Result};
use crate::events::{Access, Decider, Event};

/// How far a shard was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Not yet, but it was found. With the number that its records begin with, if it matters whether they are all there:
    /// for who has never read anything before it does not.
    Begun(Option<String>),
    /// Up to the record of this sequence number.
    After(String),
    /// To its end: it is closed.
    End,
}

impl Place {
    /// The one that is further on.
    fn max(self, other: Self) -> Self {
        match (self, other) {
            (Self::After(one), Self::After(other)) => {
                let is_behind = sequence_key(&one) < sequence_key(&other);
                Self::After(if is_behind { other } else { one })
            }
            (Self::Begun(_), further) => further,
            (further, Self::Begun(_)) => further,
            _ => Self::End,
        }
    }
}

/// What sequence numbers are ordered by: as numbers, which may be longer than any of ours.
pub(super) fn sequence_key(sequence: &str) -> (usize, &str) {
    let digits = sequence.trim_start_matches('0');
    (digits.len(), digits)
}

/// How far each shard was read, by the key of the shard.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Positions(pub(super) BTreeMap<String, Place>);

impl Positions {
    /// The same, or further on where another has come further; without shards that are gone.
    pub(super) fn merged(&self, other: &Self, gone: &BTreeSet<String>) -> Self {
        let mut merged = self.clone();
        for (shard, place) in &other.0 {
            let place = match merged.0.remove(shard) {
                Some(known) => known.max(place.clone()),
                None => place.clone(),
            };
            merged.0.insert(shard.clone(), place);
        }
        merged.0.retain(|shard, _| !gone.contains(shard));
        merged
    }
}

const MOVED: &str = "Moved";

impl Event for Positions {
    fn event_type(&self) -> &'static str {
        MOVED
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let shards: Map<String, Value> = self
            .0
            .iter()
            .map(|(shard, place)| {
                let place = match place {
                    Place::Begun(start) => json!({ "begun": start }),
                    Place::After(sequence) => json!({ "after": sequence }),
                    Place::End => json!({ "end": true }),
                };
                (shard.clone(), place)
            })
            .collect();
        Ok(json!({ "shards": shards }).to_string().into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        if event_type != MOVED {
            return Ok(None);
        }
        let json: Option<Value> = serde_json::from_slice(data).ok();
        let read = json.as_ref().and_then(positions);
        read.map(Some).ok_or_else(|| {
            let data = String::from_utf8_lossy(data);
            let message = format!("the position of an indexer cannot be read: data={data}");
            Error::new(ErrorKind::InvalidEvent, message)
        })
    }
}

fn positions(json: &Value) -> Option<Positions> {
    let shards = json.get("shards")?.as_object()?;
    let places = shards.iter().map(|(shard, place)| {
        let place = match (place.get("after"), place.get("begun")) {
            (Some(after), _) => Place::After(after.as_str()?.to_owned()),
            (None, Some(start)) => Place::Begun(start.as_str().map(str::to_owned)),
            (None, None) => place.get("end").map(|_| Place::End)?,
        };
        Some((shard.clone(), place))
    });
    places.collect::<Option<_>>().map(Positions)
}

/// The streams that positions are kept in.
pub(super) enum IndexerPosition {}

impl Decider for IndexerPosition {
    const CATEGORY: &'static str = "$IndexerPosition";
    type Id = str;
    type Event = Positions;
    type State = Positions;

    fn initial() -> Positions {
        Positions::default()
    }

    fn evolve(_: Positions, event: &Positions) -> Positions {
        event.clone()
    }

    fn access() -> Access<Self> {
        Access::RollingState {
            to_snapshot: Positions::clone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sequence: &str) -> Place {
        Place::After(sequence.to_owned())
    }

    fn of<const N: usize>(places: [(&str, Place); N]) -> Positions {
        Positions(
            places
                .map(|(shard, place)| (shard.to_owned(), place))
                .into(),
        )
    }

    #[test]
    fn positions_are_read_as_they_were_written() {
        let begun = Place::Begun(Some("7".to_owned()));
        let positions = of([
            ("a", after("007")),
            ("b", Place::End),
            ("c", begun),
            ("d", Place::Begun(None)),
        ]);
        let data = positions.encode().unwrap();
        let text = r#"{"shards":{"a":{"after":"007"},"b":{"end":true},"c":{"begun":"7"},"d":{"begun":null}}}"#;
        assert_eq!(data, text.as_bytes());
        assert_eq!(Positions::decode(MOVED, &data).unwrap(), Some(positions));
        assert_eq!(Positions::decode("Other", &data).unwrap(), None);
        let error = Positions::decode(MOVED, b"{}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    }

    #[test]
    fn who_is_further_on_counts() {
        let begun = || Place::Begun(None);
        let one = of([
            ("a", after("9")),
            ("b", Place::End),
            ("c", after("1")),
            ("e", begun()),
            ("f", begun()),
        ]);
        let other = of([
            ("a", after("10")),
            ("b", after("5")),
            ("d", after("2")),
            ("e", after("1")),
            ("f", Place::End),
        ]);
        let gone = BTreeSet::from(["c".to_owned()]);
        let expected = of([
            ("a", after("10")),
            ("b", Place::End),
            ("d", after("2")),
            ("e", after("1")),
            ("f", Place::End),
        ]);
        assert_eq!(one.merged(&other, &gone), expected);
        assert_eq!(other.merged(&one, &gone), expected);
    }
}
