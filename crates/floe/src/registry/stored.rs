//! What stands in the items of a registry. Nothing else knows their attributes.
//!
//! A version has the fields of its value, its number, when it was published, the hash of its content, and what changes
//! later: `latest` or `deprecated` as its status, when it expires, whether it is pinned, which aliases lead to it. Once it
//! is gone it has neither status nor expiry, but the moment of its deletion: a tombstone.
//!
//! The pointer is a copy of the latest version without its status, so that one request brings it. An alias has the number
//! that it leads to.

use floe_store::expr::{Condition, Path};
use floe_store::{Item, Number, Set, Text, Timestamp, Value};

use super::keys::{GroupPlace, Place};
use super::schema::{ALIASES, LAST, PARTITION_KEY, PINNED, RegistrySchema, SORT_KEY};
use super::status::Status;
use crate::attribute::Expiry;
use crate::attribute::Invalid;
use crate::error::{Error, Result};

/// What the registry itself knows of a version, or of a pointer.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Facts {
    /// Absent in a pointer to nothing.
    pub(super) number: Option<u64>,
    /// The greatest number that the group has given, as far as this item tells.
    pub(super) last: u64,
    pub(super) status: Option<Status>,
    pub(super) published: Option<Timestamp>,
    pub(super) expires: Option<Expiry>,
    pub(super) deleted: Option<Timestamp>,
    pub(super) is_pinned: bool,
    pub(super) aliases: Vec<String>,
    pub(super) hash: Option<String>,
}

impl Facts {
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when an attribute is of another form.
    pub(super) fn of(schema: &RegistrySchema, item: &Item) -> Result<Self> {
        let number = number(schema, item, schema.version)?;
        let last = self::number(schema, item, LAST)?;
        Ok(Self {
            number,
            last: last.max(number).unwrap_or_default(),
            status: schema
                .status
                .map_or(Ok(None), |attribute| status(schema, item, attribute))?,
            published: item.get(schema.published).and_then(moment),
            expires: schema
                .expires
                .map_or(Ok(None), |attribute| self::number(schema, item, attribute))?
                .map(Expiry::from_secs),
            deleted: match item.get(schema.deleted) {
                Some(value) => Some(moment(value).ok_or_else(|| {
                    invalid(schema, schema.deleted, "the stored attribute is no moment")
                })?),
                None => None,
            },
            is_pinned: item.get(PINNED) == Some(&Value::Bool(true)),
            aliases: match item.get(ALIASES) {
                Some(Value::Ss(names)) => names.iter().map(|name| name.to_string()).collect(),
                _ => Vec::new(),
            },
            hash: item
                .get(schema.hash_attribute())
                .and_then(Value::as_s)
                .map(str::to_owned),
        })
    }

    /// Whether its time had come by then. Then it is gone, whether or not the store has removed it yet.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires.is_past(now))
    }

    /// Whether it was deployed then. Where versions have no status, all are that are not deleted.
    pub(super) fn is_deployed(&self, schema: &RegistrySchema, now: Timestamp) -> bool {
        let has_status = self.status.is_some() || schema.status.is_none();
        has_status && self.deleted.is_none() && !self.is_expired(now)
    }

    /// Whether the pointer must lead to it, as far as it shows. Without a status, any version may be the latest.
    pub(super) fn is_latest(&self, schema: &RegistrySchema) -> bool {
        schema.status.is_none() || self.status == Some(Status::Latest)
    }

    /// The moment since when it is gone, by now.
    pub(super) fn gone(&self, now: Timestamp) -> Option<Timestamp> {
        let expired = self.expires.filter(|expires| expires.is_past(now));
        self.deleted.or(expired.map(moment_of))
    }

    /// Whether retention leaves it alone.
    fn is_held(&self) -> bool {
        self.is_pinned || !self.aliases.is_empty()
    }
}

/// The moment of an expiry.
pub(super) fn moment_of(expiry: Expiry) -> Timestamp {
    Timestamp::from_millis(expiry.as_secs().saturating_mul(1000))
}

fn invalid(schema: &RegistrySchema, attribute: &str, reason: &str) -> Error {
    Error::invalid(schema.name, attribute, &Invalid::new(reason))
}

fn number(schema: &RegistrySchema, item: &Item, attribute: &str) -> Result<Option<u64>> {
    let Some(value) = item.get(attribute) else {
        return Ok(None);
    };
    let number = value.as_n().and_then(|number| number.to_u64());
    let reason = "the stored attribute is no whole number";
    number
        .map(Some)
        .ok_or_else(|| invalid(schema, attribute, reason))
}

fn status(schema: &RegistrySchema, item: &Item, attribute: &str) -> Result<Option<Status>> {
    let Some(value) = item.get(attribute) else {
        return Ok(None);
    };
    let status = value.as_s().and_then(Status::from_text);
    status.map(Some).ok_or_else(|| {
        let reason = format!("the stored status is none: value={value:?}");
        invalid(schema, attribute, &reason)
    })
}

/// A moment as text, or in epoch seconds as others may have written it.
fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::S(text) => Timestamp::from_iso(text),
        Value::N(number) => Some(moment_of(Expiry::from_secs(number.to_u64()?))),
        _ => None,
    }
}

fn moment_value(moment: Timestamp) -> Value {
    Value::S(moment.to_iso())
}

/// The item of a new version.
pub(super) fn new_version(
    place: &Place,
    schema: &RegistrySchema,
    content: &Item,
    (number, hash, published): (u64, &str, Timestamp),
) -> Item {
    let mut item = content
        .clone()
        .with(PARTITION_KEY, place.pk.as_str())
        .with(SORT_KEY, place.sk.as_str())
        .with(schema.version, Value::N(Number::from(number)))
        .with(schema.published, moment_value(published))
        .with(schema.hash_attribute(), hash);
    if let Some(status) = schema.status {
        item.insert(status, Status::Latest.as_str());
    }
    item
}

/// The pointer to a version, in a group that has given numbers up to the last.
pub(super) fn pointer(group: &GroupPlace, version: &Item, number: u64, last: u64) -> Item {
    let (schema, place) = (group.schema, group.pointer());
    let mut item = version
        .clone()
        .with(PARTITION_KEY, place.pk)
        .with(SORT_KEY, place.sk);
    schema.state().for_each(|attribute| {
        item.remove(attribute);
    });
    if last != number {
        item.insert(LAST, Value::N(Number::from(last)));
    }
    item
}

/// The pointer of a group of which nothing is deployed: it keeps the numbers from being given again.
pub(super) fn empty_pointer(group: &GroupPlace, last: u64) -> Item {
    let key = group.pointer().key();
    key.with(LAST, Value::N(Number::from(last)))
}

/// The version that a pointer is a copy of.
pub(super) fn pointed_version(group: &GroupPlace, pointer: &Item, number: u64) -> Item {
    let place = group.version(number);
    let mut item = pointer
        .clone()
        .with(PARTITION_KEY, place.pk)
        .with(SORT_KEY, place.sk);
    item.remove(LAST);
    if let Some(status) = group.schema.status {
        item.insert(status, Status::Latest.as_str());
    }
    item
}

/// A version that is no longer the latest. What holds it keeps it from expiring.
pub(super) fn demoted(
    schema: &RegistrySchema,
    version: &Item,
    expires: Option<Expiry>,
) -> Result<Item> {
    let mut item = version.clone();
    if let Some(status) = schema.status {
        item.insert(status, Status::Deprecated.as_str());
    }
    expire(schema, &mut item, expires)?;
    Ok(item)
}

/// Sets the expiry of a deprecated version, or takes it away if something holds it.
fn expire(schema: &RegistrySchema, item: &mut Item, expires: Option<Expiry>) -> Result<()> {
    let (Some(attribute), facts) = (schema.expires, Facts::of(schema, item)?) else {
        return Ok(());
    };
    if facts.is_held() {
        item.remove(attribute);
    } else if let (Some(expires), Some(Status::Deprecated)) = (expires, facts.status) {
        item.insert(attribute, Value::from(expires.as_secs()));
    }
    Ok(())
}

/// A version that is the latest again.
pub(super) fn promoted(schema: &RegistrySchema, version: &Item) -> Item {
    let mut item = version.clone();
    if let Some(status) = schema.status {
        item.insert(status, Status::Latest.as_str());
    }
    if let Some(expires) = schema.expires {
        item.remove(expires);
    }
    item
}

/// A version, or a copy of it, that is pinned or not. One that is let go gets a new expiry.
pub(super) fn pinned(
    schema: &RegistrySchema,
    item: &Item,
    is_pinned: bool,
    expires: Option<Expiry>,
) -> Result<Item> {
    let mut item = item.clone();
    match is_pinned {
        true => drop(item.insert(PINNED, true)),
        false => drop(item.remove(PINNED)),
    }
    expire(schema, &mut item, expires)?;
    Ok(item)
}

/// A version, or a copy of it, to which an alias leads or no longer does.
pub(super) fn aliased(
    schema: &RegistrySchema,
    item: &Item,
    name: &str,
    is_aliased: bool,
    expires: Option<Expiry>,
) -> Result<Item> {
    let mut names = Facts::of(schema, item)?.aliases;
    names.retain(|known| known != name);
    names.extend(is_aliased.then(|| name.to_owned()));
    names.sort_unstable();
    let mut item = item.clone();
    match Set::new(names.into_iter().map(Text::from)) {
        Ok(names) => drop(item.insert(ALIASES, Value::Ss(names))),
        // None is left, and there are no empty sets.
        Err(_) => drop(item.remove(ALIASES)),
    }
    expire(schema, &mut item, expires)?;
    Ok(item)
}

/// The tombstone of a version that is gone since then: neither status nor expiry, and all that it was besides.
pub(super) fn tombstone(schema: &RegistrySchema, version: &Item, deleted: Timestamp) -> Item {
    let mut item = version.clone();
    schema.state().for_each(|attribute| {
        item.remove(attribute);
    });
    item.remove(PINNED);
    item.with(schema.deleted, moment_value(deleted))
}

/// The item of an alias.
pub(super) fn alias(place: &Place, schema: &RegistrySchema, number: u64) -> Item {
    place
        .key()
        .with(schema.version, Value::N(Number::from(number)))
}

/// The condition that an item is as it was, as far as the registry looks at it: what was published never changes.
pub(super) fn as_it_was(schema: &RegistrySchema, item: &Item) -> Condition {
    let own = [schema.version, LAST, PINNED, ALIASES];
    let there = Condition::attribute_exists(Path::attribute(PARTITION_KEY));
    let attributes = own.into_iter().chain(schema.state());
    attributes.fold(there, |condition, attribute| {
        let path = Path::attribute(attribute);
        condition.and(match item.get(attribute) {
            Some(value) => Condition::eq(path, value.clone()),
            None => Condition::attribute_not_exists(path),
        })
    })
}

/// The condition that there is no such item.
pub(super) fn is_absent() -> Condition {
    Condition::attribute_not_exists(Path::attribute(PARTITION_KEY))
}
