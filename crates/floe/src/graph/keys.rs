//! Keys of entities, and their texts in the tables.
//!
//! The parts of a key are joined by `:`. A `:` or `\` inside a part is escaped by a `\`, so that different keys have
//! different texts, and a part without these letters is stored unchanged. No part is empty; texts with an empty part
//! are reserved for items of the graph itself.

use std::fmt;

use floe_store::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use floe_store::{Number, Timestamp, Value, hex};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::attribute::Invalid;
use crate::error::{Error, ErrorKind, Result};

/// Joins the parts of a key.
pub(crate) const DELIMITER: char = ':';
/// Escapes a delimiter inside a part.
const ESCAPE: char = '\\';
/// Maximum length of a scope, escaped. Leaves room for the keys of the graph's own items.
pub(crate) const SCOPE_BYTES_MAX: usize = 900;
/// Digits of the index of an edge in a key. Texts sort like numbers.
pub(crate) const INDEX_DIGITS: usize = 16;

/// Identifies an entity inside a scope: its type and its id.
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
    /// Returns the key of a type and an id.
    pub fn new(type_name: impl Into<String>, id: impl ToId) -> Self {
        Self {
            type_name: type_name.into(),
            id: id.to_id(),
        }
    }

    /// The type name.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// The id.
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

/// A type of ids, stored as text.
#[diagnostic::on_unimplemented(
    message = "an id cannot be a `{Self}`",
    label = "not a type of ids",
    note = "ids are text, uuids or whole numbers"
)]
pub trait ToId {
    /// The text of the id.
    fn to_id(&self) -> String;
}

/// A type that the id field of a typed entity can have.
#[diagnostic::on_unimplemented(
    message = "the id of an entity cannot be a `{Self}`",
    label = "not a type of ids",
    note = "ids are `String`, `Uuid`, `i32`, `i64`, `u32` or `u64`"
)]
pub trait Id: ToId + Sized {
    /// Parses an id. Returns `None` if the text is not an id of this type.
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

/// The key of an entity with its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ScopedKey {
    pub(crate) scope: String,
    pub(crate) key: EntityKey,
}

impl ScopedKey {
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a part is empty or a text is too long for a key.
    pub(crate) fn new(scope: &str, key: EntityKey) -> Result<Self> {
        let scoped_key = Self {
            scope: scope.to_owned(),
            key,
        };
        check_scope(&scoped_key.scope)?;
        check_part("type", &scoped_key.key.type_name)?;
        check_part("id", &scoped_key.key.id)?;
        check_length("_id", &scoped_key.key.id, PARTITION_KEY_BYTES_MAX)?;
        check_length(
            "_scope_type_key",
            &scoped_key.type_key(),
            SORT_KEY_BYTES_MAX,
        )?;
        check_length("_subject_key", &scoped_key.text(), PARTITION_KEY_BYTES_MAX)?;
        Ok(scoped_key)
    }

    /// `scope:type`.
    pub(crate) fn type_key(&self) -> String {
        type_key(&self.scope, &self.key.type_name)
    }

    /// An error about the entity.
    pub(crate) fn error(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(kind, format!("{what}: entity={self}"))
    }

    /// `scope:type:id`.
    pub(crate) fn text(&self) -> String {
        join([&self.scope, &self.key.type_name, &self.key.id].map(String::as_str))
    }
}

impl fmt::Display for ScopedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// `scope:type`.
pub(crate) fn type_key(scope: &str, type_name: &str) -> String {
    join([scope, type_name])
}

/// The scoped keys of entities.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if a key is empty or too long.
pub(crate) fn scoped_keys<'k>(
    scope: &str,
    keys: impl IntoIterator<Item = &'k EntityKey>,
) -> Result<Vec<ScopedKey>> {
    let keys = keys.into_iter();
    keys.map(|key| ScopedKey::new(scope, key.clone())).collect()
}

/// `predicate:index:type:id`.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if it is too long for a key.
pub(crate) fn predicate_key(predicate: &str, index: u64, object: &EntityKey) -> Result<String> {
    let index = format!("{index:0width$}", width = INDEX_DIGITS);
    let text = join([predicate, &index, &object.type_name, &object.id]);
    check_length("_predicate_key", &text, SORT_KEY_BYTES_MAX)?;
    Ok(text)
}

/// The common prefix of the keys of all edges of a predicate, and of no others.
pub(crate) fn predicate_prefix(predicate: &str) -> String {
    let mut prefix = join([predicate]);
    prefix.push(DELIMITER);
    prefix
}

/// Escapes and joins the parts of a key.
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

/// Splits a key into its parts.
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

/// The sort key of an item of the graph itself: the parts, or their digest if they are too long. It differs from the
/// keys of entities, because no type is empty.
pub(crate) fn own_key<'p>(scope: &'p str, parts: impl IntoIterator<Item = &'p str>) -> String {
    let text = join([scope, ""].into_iter().chain(parts));
    if text.len() <= SORT_KEY_BYTES_MAX {
        return text;
    }
    let digest = Sha256::digest(text.as_bytes());
    join([scope, "", &hex::encode(&digest)])
}

/// Rejects a scope that is empty or too long.
pub(crate) fn check_scope(scope: &str) -> Result<()> {
    check_part("scope", scope)?;
    check_length("scope", &join([scope]), SCOPE_BYTES_MAX)
}

/// Rejects an empty part of a key.
pub(crate) fn check_part(part: &str, text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(invalid(part, "a part of the key is empty"));
    }
    Ok(())
}

/// Rejects a text that is too long for a key.
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

/// A key of an index: text, or a number, which sorts as a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey(String);

impl IndexKey {
    /// Returns a text key.
    pub fn text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns a number key. It is stored as text that sorts like the numbers.
    pub fn number(number: impl Into<Number>) -> Self {
        Self(crate::key::ordered_number(&number.into()))
    }

    /// The stored text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it is empty or too long.
    pub(crate) fn check(&self, index: &str) -> Result<()> {
        check_part(index, &self.0)?;
        check_length(index, &self.0, SORT_KEY_BYTES_MAX)?;
        check_length(index, &join([index, self.as_str()]), SORT_KEY_BYTES_MAX)
    }
}

/// A type that converts to an index key.
pub trait ToIndexKey {
    /// Converts the value to an index key.
    fn to_index_key(&self) -> IndexKey;
}

/// Maps a key type to the type that queries take by reference: `str` for `String`, the key type itself for others.
pub trait IndexKeyRef: ToIndexKey {
    /// The type that queries take by reference.
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

        impl IndexKeyRef for $type {
            type Form = $form;
        }
    )*};
}

index_keys! {
    IndexKey, Self: |key| key.clone();
    String, str: |text| IndexKey::text(text.as_str());
    Uuid, Self: |id| IndexKey::text(id.hyphenated().to_string());
    Timestamp, Self: |timestamp| IndexKey::number(timestamp.as_millis());
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
