//! Keys of versions, of the pointer to the latest version, and of aliases.
//!
//! One key is the group, the other the version. The key of a group consists of text and names, such as
//! `lyr#{region}.{package}`; characters in names that occur in this text are escaped as `%` and two digits, so that
//! different groups have different keys. The key of a version is a prefix and its number with leading zeros, so that
//! versions sort like numbers. In place of it, the pointer has a fixed text, and an alias that text and its name.

use std::fmt::{self, Write};

use floe_store::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use floe_store::{Item, Value};

use super::schema::{KeyPart, Layout, PARTITION_KEY, RegistrySchema, SORT_KEY};
use crate::attribute::Invalid;
use crate::error::{Error, ErrorKind, Result};

/// Digits of a version number in a key.
const VERSION_DIGITS: usize = 10;
/// Largest version number.
pub const VERSION_MAX: u64 = 9_999_999_999;

/// The key of an item of a registry, with its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ItemKey {
    pub(super) table: &'static str,
    pub(super) pk: String,
    pub(super) sk: String,
}

impl ItemKey {
    pub(super) fn to_item(&self) -> Item {
        Item::with_capacity(2)
            .with(PARTITION_KEY, self.pk.as_str())
            .with(SORT_KEY, self.sk.as_str())
    }
}

/// The key of a group, with its registry.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupKey {
    /// The group key.
    pub(super) text: String,
    pub(super) schema: &'static RegistrySchema,
}

impl GroupKey {
    /// Whether the group belongs to this registry. The compiler may duplicate constants, so equal schemas count as the
    /// same.
    pub(super) fn is_of(&self, schema: &'static RegistrySchema) -> bool {
        std::ptr::eq(self.schema, schema) || self.schema == schema
    }

    /// The key of a version.
    pub(super) fn version(&self, number: u64) -> ItemKey {
        self.item_key(version_text(self.schema, number))
    }

    /// The key of the pointer to the latest version.
    pub(super) fn pointer(&self) -> ItemKey {
        self.item_key(self.schema.latest.to_owned())
    }

    /// The key of an alias.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if the name cannot be part of a key.
    pub(super) fn alias(&self, name: &str) -> Result<ItemKey> {
        let schema = self.schema;
        if name.is_empty() {
            let invalid = Invalid::new("the name of an alias cannot be empty");
            return Err(Error::invalid(schema.name, "alias", &invalid));
        }
        let mut text = schema.latest.to_owned();
        escape(schema, name, &mut text);
        let (_, version_key) = schema.layout.keys();
        check_length(schema, "alias", version_key, &text)?;
        Ok(self.item_key(text))
    }

    fn item_key(&self, version: String) -> ItemKey {
        let (group, table) = (self.text.clone(), self.schema.table);
        let (pk, sk) = match self.schema.layout {
            Layout::Grouped => (group, version),
            Layout::Versioned => (version, group),
        };
        ItemKey { table, pk, sk }
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.schema.name, self.text)
    }
}

/// The key of the group with these names.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) if it is too long.
pub(super) fn group_text(schema: &RegistrySchema, names: &[String]) -> Result<String> {
    let mut text = String::new();
    for (at, part) in schema.group_key.iter().enumerate() {
        match part {
            KeyPart::Text(part) => text.push_str(part),
            KeyPart::Name(name) => {
                let name = names.get(*name).map(String::as_str).unwrap_or_default();
                // The last name is unambiguous, because nothing follows it.
                if schema.legacy_keys && at + 1 == schema.group_key.len() {
                    text.push_str(name);
                } else {
                    escape(schema, name, &mut text);
                }
            }
        }
    }
    let (group_key, _) = schema.layout.keys();
    check_length(schema, group_key, group_key, &text)?;
    Ok(text)
}

/// Rejects a text that is too long for a key.
fn check_length(schema: &RegistrySchema, field: &str, key: &str, text: &str) -> Result<()> {
    let (bytes, bytes_max) = match key {
        PARTITION_KEY => (text.len(), PARTITION_KEY_BYTES_MAX),
        _ => (text.len(), SORT_KEY_BYTES_MAX),
    };
    if bytes <= bytes_max {
        return Ok(());
    }
    let reason = format!("the key is too long: bytes={bytes} bytes_max={bytes_max}");
    Err(Error::invalid(schema.name, field, &Invalid::new(reason)))
}

fn escape(schema: &RegistrySchema, name: &str, out: &mut String) {
    for letter in name.chars() {
        if letter == '%' || schema.escaped.contains(letter) {
            // Only one-byte characters are escaped, and writing to a string cannot fail.
            let _infallible = write!(out, "%{:02X}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
}

fn version_text(schema: &RegistrySchema, number: u64) -> String {
    let prefix = schema.version_prefix;
    if schema.legacy_keys {
        format!("{prefix}{number}")
    } else {
        format!("{prefix}{number:0VERSION_DIGITS$}")
    }
}

/// Returns the number of a version by its key; `None` for pointers, aliases and other items of the table.
pub(super) fn version_of(schema: &RegistrySchema, key: &Item) -> Option<u64> {
    let text = |attribute| key.get(attribute).and_then(Value::as_s);
    let (group_key, version_key) = schema.layout.keys();
    let (group, version) = (text(group_key)?, text(version_key)?);
    let digits = version.strip_prefix(schema.version_prefix)?;
    let number = digits.parse().ok()?;
    let is_own = group.starts_with(schema.group_lead()) && version_text(schema, number) == version;
    is_own.then_some(number)
}

/// Returns the next version number.
///
/// # Errors
///
/// [`TooLarge`](ErrorKind::TooLarge) if no numbers are left.
pub(super) fn next_number(group: &GroupKey, last: u64) -> Result<u64> {
    if last < VERSION_MAX {
        return Ok(last + 1);
    }
    let what = "the group has no numbers left";
    let message = format!("{what}: group={group} last={last} max={VERSION_MAX}");
    Err(Error::new(ErrorKind::TooLarge, message))
}

#[cfg(test)]
pub(super) mod tests;
