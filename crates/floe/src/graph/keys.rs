//! Keys: what names an entity, and the texts that stand for it in the tables.
//!
//! The parts of a key are joined by `:`. A `:` or `\` inside a part is written with a `\` before it, so no two keys have
//! the same text, and a part without them is written as it is. No part is empty; texts with an empty part are left for
//! what the graph itself keeps.

use std::fmt;

use floe_store::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use floe_store::{Number, Timestamp, Value, hex};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::attribute::Invalid;
use crate::error::{Error, ErrorKind, Result};

/// What joins the parts of a key.
pub(crate) const DELIMITER: char = ':';
/// What stands before a delimiter that is part of a part.
const ESCAPE: char = '\\';
/// How long a scope may be, as it is written: so that what the graph itself keeps of a scope has room in a key beside it.
pub(crate) const SCOPE_BYTES_MAX: usize = 900;
/// How many digits the index of an edge has in a key, so that the order of the texts is that of the numbers.
pub(crate) const INDEX_DIGITS: usize = 16;

/// Names an entity inside a scope: its type and its id.
///
/// ```
/// use floe::graph::EntityKey;
///
/// let key = EntityKey::new("author", "ann");
/// assert_eq!(key, EntityKey::from(("author", "ann")));
/// assert_eq!(key.to_string(), "author:ann");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityKey {
    type_name: String,
    id: String,
}

impl EntityKey {
    /// The entity of this type and id.
    pub fn new(type_name: impl Into<String>, id: impl ToId) -> Self {
        Self {
            type_name: type_name.into(),
            id: id.to_id(),
        }
    }

    /// The name of its type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join([self.type_name.as_str(), self.id.as_str()]))
    }
}

impl<T: Into<String>, I: ToId> From<(T, I)> for EntityKey {
    fn from((type_name, id): (T, I)) -> Self {
        Self::new(type_name, id)
    }
}

impl From<&Self> for EntityKey {
    fn from(key: &Self) -> Self {
        key.clone()
    }
}

/// A type that an id can have: it is stored as text.
#[diagnostic::on_unimplemented(
    message = "an id cannot be a `{Self}`",
    label = "not a type of ids",
    note = "ids are text, uuids or whole numbers"
)]
pub trait ToId {
    /// The text of the id.
    fn to_id(&self) -> String;
}

/// A type that the id of a typed entity can have.
#[diagnostic::on_unimplemented(
    message = "the id of an entity cannot be a `{Self}`",
    label = "not a type of ids",
    note = "ids are `String`, `Uuid`, `i32`, `i64`, `u32` or `u64`"
)]
pub trait Id: ToId + Sized {
    /// The id of this text.
    fn from_id(text: &str) -> Option<Self>;
}

impl<T: ToId + ?Sized> ToId for &T {
    fn to_id(&self) -> String {
        (**self).to_id()
    }
}

impl ToId for str {
    fn to_id(&self) -> String {
        self.to_owned()
    }
}

macro_rules! ids {
    ($($type:ty: |$id:ident| $to:expr, |$text:ident| $from:expr;)*) => {$(
        impl ToId for $type {
            fn to_id(&self) -> String {
                let $id = self;
                $to
            }
        }

        impl Id for $type {
            fn from_id($text: &str) -> Option<Self> {
                $from
            }
        }
    )*};
}

ids! {
    String: |id| id.clone(), |text| Some(text.to_owned());
    Uuid: |id| id.hyphenated().to_string(), |text| Self::try_parse(text).ok();
    i32: |id| id.to_string(), |text| text.parse().ok();
    i64: |id| id.to_string(), |text| text.parse().ok();
    u32: |id| id.to_string(), |text| text.parse().ok();
    u64: |id| id.to_string(), |text| text.parse().ok();
}

/// An entity with its scope: what the graph itself goes by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) scope: String,
    pub(crate) key: EntityKey,
}

impl Place {
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a part is empty or the texts are too long for keys.
    pub(crate) fn new(scope: &str, key: EntityKey) -> Result<Self> {
        let place = Self {
            scope: scope.to_owned(),
            key,
        };
        check_scope(&place.scope)?;
        check_part("type", &place.key.type_name)?;
        check_part("id", &place.key.id)?;
        check_length("_id", &place.key.id, PARTITION_KEY_BYTES_MAX)?;
        check_length("_scope_type_key", &place.type_key(), SORT_KEY_BYTES_MAX)?;
        check_length("_subject_key", &place.text(), PARTITION_KEY_BYTES_MAX)?;
        Ok(place)
    }

    /// `scope:type`.
    pub(crate) fn type_key(&self) -> String {
        type_key(&self.scope, &self.key.type_name)
    }

    /// `scope:type:id`.
    /// An error about the entity.
    pub(crate) fn error(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(kind, format!("{what}: entity={self}"))
    }

    pub(crate) fn text(&self) -> String {
        join([&self.scope, &self.key.type_name, &self.key.id].map(String::as_str))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// `scope:type`.
pub(crate) fn type_key(scope: &str, type_name: &str) -> String {
    join([scope, type_name])
}

/// The places of entities of a scope.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) when a key is empty or too long.
pub(crate) fn places<'k>(
    scope: &str,
    keys: impl IntoIterator<Item = &'k EntityKey>,
) -> Result<Vec<Place>> {
    let keys = keys.into_iter();
    keys.map(|key| Place::new(scope, key.clone())).collect()
}

/// `predicate:index:type:id`.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) when it is too long for a key.
pub(crate) fn predicate_key(predicate: &str, index: u64, object: &EntityKey) -> Result<String> {
    let index = format!("{index:0width$}", width = INDEX_DIGITS);
    let text = join([predicate, &index, &object.type_name, &object.id]);
    check_length("_predicate_key", &text, SORT_KEY_BYTES_MAX)?;
    Ok(text)
}

/// What the keys of all edges of a predicate begin with, and of no other.
pub(crate) fn predicate_prefix(predicate: &str) -> String {
    let mut prefix = join([predicate]);
    prefix.push(DELIMITER);
    prefix
}

/// The parts, escaped and joined.
pub(crate) fn join<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    let mut text = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            text.push(DELIMITER);
        }
        for letter in part.chars() {
            if letter == DELIMITER || letter == ESCAPE {
                text.push(ESCAPE);
            }
            text.push(letter);
        }
    }
    text
}

/// The parts of a text.
pub(crate) fn split(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ESCAPE => part.extend(letters.next()),
            DELIMITER => parts.push(std::mem::take(&mut part)),
            letter => part.push(letter),
        }
    }
    parts.push(part);
    parts
}

/// The sort key of what the graph itself keeps of a scope: the parts, or where they are too long for a key, what stands for
/// them. No entity has such a one: no type is empty.
pub(crate) fn own_key<'p>(scope: &'p str, parts: impl IntoIterator<Item = &'p str>) -> String {
    let text = join([scope, ""].into_iter().chain(parts));
    if text.len() <= SORT_KEY_BYTES_MAX {
        return text;
    }
    let digest = Sha256::digest(text.as_bytes());
    join([scope, "", &hex::encode(&digest)])
}

/// Refuses a scope that is empty or too long.
pub(crate) fn check_scope(scope: &str) -> Result<()> {
    check_part("scope", scope)?;
    check_length("scope", &join([scope]), SCOPE_BYTES_MAX)
}

/// Refuses an empty part of a key.
pub(crate) fn check_part(part: &str, text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(invalid(part, "a part of a key is empty"));
    }
    Ok(())
}

/// Refuses a text that no key can have.
pub(crate) fn check_length(attribute: &str, text: &str, bytes_max: usize) -> Result<()> {
    let bytes = text.len();
    if bytes <= bytes_max {
        return Ok(());
    }
    let reason = format!("the key is too long: bytes={bytes} bytes_max={bytes_max}");
    Err(invalid(attribute, &reason))
}

pub(crate) fn invalid(field: &str, reason: &str) -> Error {
    Error::invalid("graph", field, &Invalid::new(reason))
}

/// A key of an index: text, or a number, which keeps its order among others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey(String);

impl IndexKey {
    /// A key that is text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A key that is a number: as text whose order is that of the numbers.
    pub fn number(number: impl Into<Number>) -> Self {
        Self(crate::key::ordered_number(&number.into()))
    }

    /// The text that is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is empty or too long.
    pub(crate) fn check(&self, index: &str) -> Result<()> {
        check_part(index, &self.0)?;
        check_length(index, &self.0, SORT_KEY_BYTES_MAX)?;
        check_length(index, &join([index, self.as_str()]), SORT_KEY_BYTES_MAX)
    }
}

/// A type whose values are keys of an index.
pub trait ToIndexKey {
    /// The key.
    fn to_index_key(&self) -> IndexKey;
}

/// What a query of an index is asked by: `str` for keys that are `String`, the key itself for others.
pub trait Borrowed: ToIndexKey {
    /// The form.
    type Form: ToIndexKey + ?Sized;
}

impl<T: ToIndexKey + ?Sized> ToIndexKey for &T {
    fn to_index_key(&self) -> IndexKey {
        (**self).to_index_key()
    }
}

impl ToIndexKey for str {
    fn to_index_key(&self) -> IndexKey {
        IndexKey::text(self)
    }
}

macro_rules! index_keys {
    ($($type:ty, $form:ty: |$value:ident| $key:expr;)*) => {$(
        impl ToIndexKey for $type {
            fn to_index_key(&self) -> IndexKey {
                let $value = self;
                $key
            }
        }

        impl Borrowed for $type {
            type Form = $form;
        }
    )*};
}

index_keys! {
    IndexKey, Self: |key| key.clone();
    String, str: |text| IndexKey::text(text.as_str());
    Uuid, Self: |id| IndexKey::text(id.hyphenated().to_string());
    Timestamp, Self: |moment| IndexKey::number(moment.as_millis());
}

macro_rules! number_keys {
    ($($number:ty)*) => {
        index_keys! {$( $number, Self: |number| IndexKey::number(*number); )*}
    };
}

number_keys!(i8 i16 i32 i64 u8 u16 u32 u64 Number);

impl From<&IndexKey> for Value {
    fn from(key: &IndexKey) -> Self {
        Self::from(key.as_str())
    }
}

#[cfg(test)]
mod tests;
