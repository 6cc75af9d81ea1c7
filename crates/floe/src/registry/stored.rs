//! The attributes of the items of a registry. Only this module knows them.
//!
//! A version has the fields of its value, its number, its time of publication, its content hash, and attributes that
//! change later: the status (`latest` or `deprecated`), the expiry, the pin, and its aliases. A deleted version has
//! neither status nor expiry, but the time of its deletion: it is a tombstone.
//!
//! The pointer is a copy of the latest version without its status, so that one request reads the latest version. An
//! alias has the number of its version.

use floe_store::expr::{Condition, Path};
use floe_store::{Item, Set, Text, Timestamp, Value};

use super::keys::{GroupKey, ItemKey};
use super::schema::{ALIASES, LAST, PARTITION_KEY, PINNED, RegistrySchema, SORT_KEY};
use super::status::Status;
use crate::attribute::Expiry;
use crate::attribute::Invalid;
use crate::error::{Error, Result};

/// The metadata of a version or a pointer.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Metadata {
    /// `None` in a pointer without a version.
    pub(super) number: Option<u64>,
    /// The last number used in the group, as far as this item shows.
    pub(super) last: u64,
    pub(super) status: Option<Status>,
    pub(super) published: Option<Timestamp>,
    pub(super) expires: Option<Expiry>,
    pub(super) deleted: Option<Timestamp>,
    pub(super) is_pinned: bool,
    pub(super) aliases: Vec<String>,
    pub(super) hash: Option<String>,
}

impl Metadata {
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if an attribute has the wrong type.
    pub(super) fn of(schema: &RegistrySchema, item: &Item) -> Result<Self> {
        let number = read(schema, item, Some(schema.version), whole_number)?;
        let last = read(schema, item, Some(LAST), whole_number)?;
        let expires = read(schema, item, schema.expires, whole_number)?;
        let hash = item.get(schema.hash_attribute()).and_then(Value::as_s);
        Ok(Self {
            number,
            last: last.max(number).unwrap_or_default(),
            status: read(schema, item, schema.status, status)?,
            published: item.get(schema.published).and_then(timestamp),
            expires: expires.map(Expiry::from_secs),
            deleted: read(schema, item, Some(schema.deleted), |value| {
                timestamp(value)
                    .ok_or_else(|| Invalid::new("the stored attribute is not a timestamp"))
            })?,
            is_pinned: item.get(PINNED) == Some(&Value::Bool(true)),
            aliases: aliases(item),
            hash: hash.map(str::to_owned),
        })
    }

    /// Whether it has expired at this time, even if the store has not removed it yet.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires.is_past(now))
    }

    /// Whether it was deployed at this time. Without a status, all versions are deployed until they are deleted.
    pub(super) fn is_deployed(&self, schema: &RegistrySchema, now: Timestamp) -> bool {
        let has_status = self.status.is_some() || schema.status.is_none();
        has_status && self.deleted.is_none() && !self.is_expired(now)
    }

    /// Whether it can be the version of the pointer. Without a status, every version can.
    pub(super) fn is_latest(&self, schema: &RegistrySchema) -> bool {
        schema.status.is_none() || self.status == Some(Status::Latest)
    }

    /// The time since which it is deleted, as of now.
    pub(super) fn deleted_at(&self, now: Timestamp) -> Option<Timestamp> {
        let expired = self.expires.filter(|expires| expires.is_past(now));
        self.deleted.or(expired.map(expiry_time))
    }

    /// Whether it is exempt from expiry.
    fn is_held(&self) -> bool {
        self.is_pinned || !self.aliases.is_empty()
    }
}

/// Converts an expiry to a timestamp.
pub(super) fn expiry_time(expiry: Expiry) -> Timestamp {
    Timestamp::from_millis(expiry.as_secs().saturating_mul(1000))
}

/// Reads an attribute, if the schema has it and the item too.
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
    number.ok_or_else(|| Invalid::new("the stored attribute is not a whole number"))
}

fn status(value: &Value) -> Result<Status, Invalid> {
    let status = value.as_s().and_then(Status::from_text);
    status.ok_or_else(|| Invalid::new(format!("unknown stored status: value={value:?}")))
}

fn aliases(item: &Item) -> Vec<String> {
    match item.get(ALIASES) {
        Some(Value::Ss(names)) => names.iter().map(|name| name.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// Parses a timestamp: text, or epoch seconds, as other programs may write it.
fn timestamp(value: &Value) -> Option<Timestamp> {
    match value {
        Value::S(text) => Timestamp::from_iso(text),
        Value::N(number) => Some(expiry_time(Expiry::from_secs(number.to_u64()?))),
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

/// A copy of an item under another key.
fn copy_to(key: ItemKey, item: &Item) -> Item {
    let item = item.clone().with(PARTITION_KEY, key.pk);
    item.with(SORT_KEY, key.sk)
}

/// The item of a new version.
pub(super) fn new_version(
    group: &GroupKey,
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

/// The pointer to a version. `last` is the last number used in the group.
pub(super) fn pointer(group: &GroupKey, version: &Item, number: u64, last: u64) -> Item {
    let mut item = copy_to(group.pointer(), version);
    remove_state(group.schema, &mut item);
    if last != number {
        item.insert(LAST, last);
    }
    item
}

/// The pointer of a group without deployed versions. It keeps numbers from being reused.
pub(super) fn empty_pointer(group: &GroupKey, last: u64) -> Item {
    group.pointer().to_item().with(LAST, last)
}

/// The version that a pointer is a copy of.
pub(super) fn pointed_version(group: &GroupKey, pointer: &Item, number: u64) -> Item {
    let mut item = copy_to(group.version(number), pointer);
    item.remove(LAST);
    set_status(group.schema, &mut item, Status::Latest);
    item
}

/// Marks a version as deprecated.
pub(super) fn demote(schema: &RegistrySchema, version: &mut Item) {
    set_status(schema, version, Status::Deprecated);
}

/// Sets the expiry of a deprecated version, or removes it if the version is pinned or has aliases.
pub(super) fn expire(
    schema: &RegistrySchema,
    item: &mut Item,
    expires: Option<Expiry>,
) -> Result<()> {
    let (Some(attribute), metadata) = (schema.expires, Metadata::of(schema, item)?) else {
        return Ok(());
    };
    if metadata.is_held() {
        item.remove(attribute);
    } else if let (Some(expires), Some(Status::Deprecated)) = (expires, metadata.status) {
        item.insert(attribute, expires.as_secs());
    }
    Ok(())
}

/// A version that becomes the latest again.
pub(super) fn promoted(schema: &RegistrySchema, version: &Item) -> Item {
    let mut item = version.clone();
    set_status(schema, &mut item, Status::Latest);
    if let Some(expires) = schema.expires {
        item.remove(expires);
    }
    item
}

/// Pins or unpins a version, or a copy of it.
pub(super) fn pin(item: &mut Item, is_pinned: bool) {
    if is_pinned {
        item.insert(PINNED, true);
    } else {
        item.remove(PINNED);
    }
}

/// Adds an alias to a version, or to a copy of it, or removes it.
pub(super) fn set_alias(item: &mut Item, name: &str, is_aliased: bool) {
    let mut names = aliases(item);
    names.retain(|known| known != name);
    names.extend(is_aliased.then(|| name.to_owned()));
    names.sort_unstable();
    match Set::new(names.into_iter().map(Text::from)) {
        Ok(names) => item.insert(ALIASES, Value::Ss(names)),
        // No alias is left, and sets cannot be empty.
        Err(_) => item.remove(ALIASES),
    };
}

/// The tombstone of a version deleted at this time: the version without status, expiry and pin.
pub(super) fn tombstone(schema: &RegistrySchema, version: &Item, deleted: Timestamp) -> Item {
    let mut item = version.clone();
    remove_state(schema, &mut item);
    item.remove(PINNED);
    item.with(schema.deleted, deleted.to_iso())
}

/// The item of an alias.
pub(super) fn alias(key: &ItemKey, schema: &RegistrySchema, number: u64) -> Item {
    key.to_item().with(schema.version, number)
}

/// The condition that an item is unchanged. It covers the attributes that can change after publication.
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

/// The condition that the item does not exist.
pub(super) fn is_absent() -> Condition {
    Condition::attribute_not_exists(Path::attribute(PARTITION_KEY))
}
