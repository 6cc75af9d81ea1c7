//! The test table of the checks, and its items.
//!
//! An item is a function of its key, its version and the stamp of the operation that wrote it. So a check that knows
//! these three knows every attribute, and detects an item that mixes old and new values.

use std::fmt;
use std::str::FromStr;

pub(super) use floe_store::env::splitmix64;
use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Item, Result, TableDef, Value};

/// The name of the table.
pub(super) const TABLE: &str = "Stage";
/// Its global index: sparse, because one in five items lacks the key.
pub(super) const BY_GROUP: &str = "by_group";
/// Its local index, which projects a part of the item.
pub(super) const BY_VERSION: &str = "by_version";
/// Number of groups in the global index.
pub(super) const GROUPS: u64 = 7;

/// The table, with everything that a write must keep consistent: a global and a local index, a stream of both images,
/// and expiry.
pub(super) fn table() -> Result<TableDef> {
    TableDef::builder(TABLE, "pk", KeyKind::S)
        .sort_key("sk", KeyKind::N)
        .global_index(
            BY_GROUP,
            [("group", KeyKind::S)],
            [("version", KeyKind::N)],
            Projection::All,
        )
        .local_index(
            BY_VERSION,
            "version",
            KeyKind::N,
            Projection::Include(vec!["stamp".into()]),
        )
        .stream(StreamView::NewAndOldImages)
        .ttl("expires")
        .build()
}

/// The key of an item, as text `partition/sort`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) partition: String,
    pub(super) sort: u64,
}

impl Key {
    pub(super) fn new(partition: impl Into<String>, sort: u64) -> Self {
        let partition = partition.into();
        Self { partition, sort }
    }

    /// Returns the key of an item, if it has the key attributes.
    pub(super) fn of(item: &Item) -> Option<Self> {
        Some(Self::new(text(item, "pk")?, number(item, "sk")?))
    }

    /// The key attributes.
    pub(super) fn attributes(&self) -> Item {
        Item::new()
            .with("pk", self.partition.as_str())
            .with("sk", self.sort)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.partition, self.sort)
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('/');
        parts
            .and_then(|(partition, sort)| Some(Self::new(partition, sort.parse().ok()?)))
            .ok_or_else(|| format!("not a key: {text}"))
    }
}

/// The state of a key after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// An item.
    Set,
    /// An item that expires at this time in epoch seconds.
    Expiring(u64),
    /// No item.
    Absent,
}

/// A state in the history of a key. Versions only increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) version: u64,
    /// The operation that made it.
    pub(super) stamp: u64,
    pub(super) state: State,
}

impl Step {
    /// Returns the item after the step.
    pub(super) fn item(&self, key: &Key) -> Option<Item> {
        let expires = match self.state {
            State::Absent => return None,
            State::Set => None,
            State::Expiring(at) => Some(at),
        };
        let mut item = key.attributes();
        item.extend(self.body());
        item.extend(expires.map(|at| ("expires", at)));
        Some(item)
    }

    /// Returns the update that turns any item of the key into that of the step.
    pub(super) fn update(&self) -> Update {
        let body = self.body();
        let mut update = Update::new();
        for optional in ["group", "expires"] {
            if body.get(optional).is_none() {
                update = update.remove(optional);
            }
        }
        body.into_iter().fold(update, |update, (name, value)| {
            update.set(Path::attribute(name), SetOperand::Value(value))
        })
    }

    /// The attributes without the key and the expiry.
    fn body(&self) -> Item {
        let mut body = Item::new()
            .with("payload", payload(self.stamp))
            .with("stamp", self.stamp)
            .with("version", self.version);
        if !self.stamp.is_multiple_of(5) {
            body.insert("group", group(self.stamp % GROUPS));
        }
        body
    }
}

/// The partition key of a group in the global index.
pub(super) fn group(number: u64) -> String {
    format!("group-{number}")
}

/// The version and the stamp of an item.
pub(super) fn version_and_stamp(item: &Item) -> Option<(u64, u64)> {
    Some((number(item, "version")?, number(item, "stamp")?))
}

/// A condition that the item has this version or, with `None`, that there is no item.
pub(super) fn has_version(version: Option<u64>) -> Condition {
    match version {
        Some(version) => Condition::eq(Path::attribute("version"), version),
        None => Condition::attribute_not_exists("pk"),
    }
}

/// Operations with stamps from here on have large payloads, of which a few dozen fill a write buffer.
pub(super) const BULKY_STAMPS: u64 = 1 << 50;

/// Returns text that cannot be compressed, a function of the stamp.
fn payload(stamp: u64) -> String {
    let scale = if stamp < BULKY_STAMPS { 1 } else { 40 };
    let words = (4 + splitmix64(stamp) % 28) * scale;
    let text = (0..words).map(|word| format!("{:016x}", splitmix64(stamp ^ (word << 52))));
    text.collect()
}

fn number(item: &Item, name: &str) -> Option<u64> {
    item.get(name)?.as_n()?.to_u64()
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(Value::as_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_and_update_result_in_the_same_item() {
        let key = Key::new("own-3", 17);
        let old = Step {
            version: 4,
            stamp: 11,
            state: State::Expiring(99),
        };
        for stamp in 20..30 {
            let new = Step {
                version: 5,
                stamp,
                state: State::Set,
            };
            let updated = new.update().apply(&old.item(&key).unwrap()).unwrap();
            assert_eq!(Some(&updated), new.item(&key).as_ref());
            assert_eq!(version_and_stamp(&updated), Some((5, stamp)));
            assert_eq!(Key::of(&updated), Some(key.clone()));
        }
    }

    #[test]
    fn key_round_trips_as_text() {
        let key = Key::new("own-3", 17);
        assert_eq!(key.to_string().parse(), Ok(key));
        assert!("own-3".parse::<Key>().is_err());
        assert!("own-3/x".parse::<Key>().is_err());
    }
}
