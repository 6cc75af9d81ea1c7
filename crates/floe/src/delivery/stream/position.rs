//! The stored position in each shard of a table's change streams.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The position in a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShardPosition {
    /// The shard was found but not read. Holds its first sequence number if all its records are needed; `None` for a
    /// consumer that starts without any position.
    Begun(Option<String>),
    /// Read up to the record with this sequence number.
    After(String),
    /// Read to the end of a closed shard.
    End,
}

impl ShardPosition {
    /// Returns the later position.
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

/// The sort key of a sequence number: its numeric order, for any number of digits.
pub(crate) fn sequence_key(sequence: &str) -> (usize, &str) {
    let digits = sequence.trim_start_matches('0');
    (digits.len(), digits)
}

/// The position in each shard, by the key of the shard.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct ShardPositions(pub(crate) BTreeMap<String, ShardPosition>);

impl ShardPositions {
    /// Merges two states: the later position of each shard, without shards that no longer exist.
    pub(crate) fn merged(&self, other: &Self, gone: &BTreeSet<String>) -> Self {
        let mut merged = self.clone();
        for (shard, position) in &other.0 {
            let position = match merged.0.remove(shard) {
                Some(stored) => stored.max(position.clone()),
                None => position.clone(),
            };
            merged.0.insert(shard.clone(), position);
        }
        merged.0.retain(|shard, _| !gone.contains(shard));
        merged
    }

    /// Encodes the positions.
    pub(crate) fn to_json(&self) -> Value {
        let shards: Map<String, Value> = self
            .0
            .iter()
            .map(|(shard, position)| {
                let position = match position {
                    ShardPosition::Begun(start) => json!({ "begun": start }),
                    ShardPosition::After(sequence) => json!({ "after": sequence }),
                    ShardPosition::End => json!({ "end": true }),
                };
                (shard.clone(), position)
            })
            .collect();
        Value::Object(shards)
    }

    /// Decodes the output of [`to_json`](Self::to_json). Returns `None` for anything else.
    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let positions = json.as_object()?.iter().map(|(shard, position)| {
            let position = match (position.get("after"), position.get("begun")) {
                (Some(after), _) => ShardPosition::After(after.as_str()?.to_owned()),
                (None, Some(start)) => ShardPosition::Begun(start.as_str().map(str::to_owned)),
                (None, None) => position.get("end").map(|_| ShardPosition::End)?,
            };
            Some((shard.clone(), position))
        });
        positions.collect::<Option<_>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(sequence: &str) -> ShardPosition {
        ShardPosition::After(sequence.to_owned())
    }

    fn of<const N: usize>(positions: [(&str, ShardPosition); N]) -> ShardPositions {
        ShardPositions(
            positions
                .map(|(shard, position)| (shard.to_owned(), position))
                .into(),
        )
    }

    #[test]
    fn merge_takes_the_later_position() {
        let begun = || ShardPosition::Begun(None);
        let one = of([
            ("a", after("9")),
            ("b", ShardPosition::End),
            ("c", after("1")),
            ("e", begun()),
            ("f", begun()),
        ]);
        let other = of([
            ("a", after("10")),
            ("b", after("5")),
            ("d", after("2")),
            ("e", after("1")),
            ("f", ShardPosition::End),
        ]);
        let gone = BTreeSet::from(["c".to_owned()]);
        let expected = of([
            ("a", after("10")),
            ("b", ShardPosition::End),
            ("d", after("2")),
            ("e", after("1")),
            ("f", ShardPosition::End),
        ]);
        assert_eq!(one.merged(&other, &gone), expected);
        assert_eq!(other.merged(&one, &gone), expected);
    }
}
