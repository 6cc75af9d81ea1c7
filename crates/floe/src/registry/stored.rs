//! What stands in the items of a registry. Nothing else knows their attributes.
//!
//! A version has the fields of its value, its number, when it was published, the hash of its content, and what changes
//! later: `latest` or `deprecated` as its status, when it expires, whether it is pinned, which aliases lead to it. Once it
//! is gone it has neither status nor expiry, but the moment of its deletion: a tombstone.
//!
//! The pointer is a copy of the latest version without its status, so that one request brings it. An alias has the number
//! that it leads to.

use floe_store::expr::{Condition, Path};
use floe_store::{Item, Set, Text, Timestamp, Value};

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
        let number = read(schema, item, Some(schema.version), whole_number)?;
        let last = read(schema, item, Some(LAST), whole_number)?;
        let expires = read(schema, item, schema.expires, whole_number)?;
        let hash = item.get(schema.hash_attribute()).and_then(Value::as_s);
        Ok(Self {
            number,
            last: last.max(number).unwrap_or_default(),
            status: read(schema, item, schema.status, status)?,
            published: item.get(schema.published).and_then(moment),
            expires: expires.map(Expiry::from_secs),
            deleted: read(schema, item, Some(schema.deleted), |value| {
                moment(value).ok_or_else(|| Invalid::new("the stored attribute is no moment"))
            })?,
            is_pinned: item.get(PINNED) == Some(&Value::Bool(true)),
            aliases: aliases(item),
            hash: hash.map(str::to_owned),
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

/// An attribute, if the registry has one of that name and the item too.
fn read<T>(
    schema: &RegistrySchema,
    item: &Item,
    attribute: Option<&str>,
    convert: impl FnOnce(&Value) -> Result<T, Invalid>,
) -> Result<Option<T>> {
    let Some(attribute) = attribute else {
        return Ok(None);
    };
    let converted = item.get(attribute).map(convert).transpose();
    converted.map_err(|invalid| Error::invalid(schema.name, attribute, &invalid))
}

fn whole_number(value: &Value) -> Result<u64, Invalid> {
    let number = value.as_n().and_then(|number| number.to_u64());
    number.ok_or_else(|| Invalid::new("the stored attribute is no whole number"))
}

fn status(value: &Value) -> Result<Status, Invalid> {
    let status = value.as_s().and_then(Status::from_text);
    status.ok_or_else(|| Invalid::new(format!("the stored status is none: value={value:?}")))
}

fn aliases(item: &Item) -> Vec<String> {
    match item.get(ALIASES) {
        Some(Value::Ss(names)) => names.iter().map(|name| name.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// A moment as text, or in epoch seconds as others may have written it.
fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::S(text) => Timestamp::from_iso(text),
        Value::N(number) => Some(moment_of(Expiry::from_secs(number.to_u64()?))),
        _ => None,
    }
}

fn set_status(schema: &RegistrySchema, item: &mut Item, status: Status) {
    if let Some(attribute) = schema.status {
        item.insert(attribute, status.as_str());
    }
}

fn remove_state(schema: &RegistrySchema, item: &mut Item) {
    for attribute in schema.state() {
        item.remove(attribute);
    }
}

/// A copy of an item, for another place.
fn copy_to(place: Place, item: &Item) -> Item {
    let item = item.clone().with(PARTITION_KEY, place.pk);
    item.with(SORT_KEY, place.sk)
}

/// The item of a new version.
pub(super) fn new_version(
    group: &GroupPlace,
    content: &Item,
    (number, hash, published): (u64, &str, Timestamp),
) -> Item {
    let schema = group.schema;
    let mut item = copy_to(group.version(number), content)
        .with(schema.version, number)
        .with(schema.published, published.to_iso())
        .with(schema.hash_attribute(), hash);
    set_status(schema, &mut item, Status::Latest);
    item
}

/// The pointer to a version, in a group that has given numbers up to the last.
pub(super) fn pointer(group: &GroupPlace, version: &Item, number: u64, last: u64) -> Item {
    let mut item = copy_to(group.pointer(), version);
    remove_state(group.schema, &mut item);
    if last != number {
        item.insert(LAST, last);
    }
    item
}

/// The pointer of a group of which nothing is deployed: it keeps the numbers from being given again.
pub(super) fn empty_pointer(group: &GroupPlace, last: u64) -> Item {
    group.pointer().key().with(LAST, last)
}

/// The version that a pointer is a copy of.
pub(super) fn pointed_version(group: &GroupPlace, pointer: &Item, number: u64) -> Item {
    let mut item = copy_to(group.version(number), pointer);
    item.remove(LAST);
    set_status(group.schema, &mut item, Status::Latest);
    item
}

/// A version that is no longer the latest. What holds it keeps it from expiring.
pub(super) fn demote(schema: &RegistrySchema, version: &mut Item) {
    set_status(schema, version, Status::Deprecated);
}

/// Sets the expiry of a deprecated version, or takes it away if something holds it.
pub(super) fn expire(
    schema: &RegistrySchema,
    item: &mut Item,
    expires: Option<Expiry>,
) -> Result<()> {
    let (Some(attribute), facts) = (schema.expires, Facts::of(schema, item)?) else {
        return Ok(());
    };
    if facts.is_held() {
        item.remove(attribute);
    } else if let (Some(expires), Some(Status::Deprecated)) = (expires, facts.status) {
        item.insert(attribute, expires.as_secs());
    }
    Ok(())
}

/// A version that is the latest again.
pub(super) fn promoted(schema: &RegistrySchema, version: &Item) -> Item {
    let mut item = version.clone();
    set_status(schema, &mut item, Status::Latest);
    if let Some(expires) = schema.expires {
        item.remove(expires);
    }
    item
}

/// Pins a version, or a copy of it, or unpins it.
pub(super) fn pin(item: &mut Item, is_pinned: bool) {
    if is_pinned {
        item.insert(PINNED, true);
    } else {
        item.remove(PINNED);
    }
}

/// Adds an alias that leads to a version, or to a copy of it, or removes it.
pub(super) fn lead(item: &mut Item, name: &str, is_aliased: bool) {
    let mut names = aliases(item);
    names.retain(|known| known != name);
    names.extend(is_aliased.then(|| name.to_owned()));
    names.sort_unstable();
    match Set::new(names.into_iter().map(Text::from)) {
        Ok(names) => item.insert(ALIASES, Value::Ss(names)),
        // None is left, and there are no empty sets.
        Err(_) => item.remove(ALIASES),
    };
}

/// The tombstone of a version that is gone since then: neither status nor expiry, and all that it was besides.
pub(super) fn tombstone(schema: &RegistrySchema, version: &Item, deleted: Timestamp) -> Item {
    let mut item = version.clone();
    remove_state(schema, &mut item);
    item.remove(PINNED);
    item.with(schema.deleted, deleted.to_iso())
}

/// The item of an alias.
pub(super) fn alias(place: &Place, schema: &RegistrySchema, number: u64) -> Item {
    place.key().with(schema.version, number)
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
