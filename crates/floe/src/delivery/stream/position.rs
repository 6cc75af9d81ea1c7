//! How far each shard of a table's change streams was read, as it is kept between two runs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// How far a shard was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
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
pub(crate) fn sequence_key(sequence: &str) -> (usize, &str) {
    let digits = sequence.trim_start_matches('0');
    (digits.len(), digits)
}

/// How far each shard was read, by the key of the shard.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Positions(pub(crate) BTreeMap<String, Place>);

impl Positions {
    /// The same, or further on where another has come further; without shards that are gone.
    pub(crate) fn merged(&self, other: &Self, gone: &BTreeSet<String>) -> Self {
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

    /// Each shard with its place.
    pub(crate) fn to_json(&self) -> Value {
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
        Value::Object(shards)
    }

    /// What [`to_json`](Self::to_json) has written; `None` for anything else.
    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let places = json.as_object()?.iter().map(|(shard, place)| {
            let place = match (place.get("after"), place.get("begun")) {
                (Some(after), _) => Place::After(after.as_str()?.to_owned()),
                (None, Some(start)) => Place::Begun(start.as_str().map(str::to_owned)),
                (None, None) => place.get("end").map(|_| Place::End)?,
            };
            Some((shard.clone(), place))
        });
        places.collect::<Option<_>>().map(Self)
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
