//! Keys: of versions, of the pointer to the latest, and of aliases.
//!
//! One key is the group, the other the version. A group is text and names in turn, as `lyr#{region}.{package}`; what could
//! be taken for the text between is escaped inside of names, by `%` and two digits, so that no two groups have one key.
//! A version is its number after a prefix, with zeros before it, so that versions sort as their numbers do. The pointer
//! has another text there, and an alias that text and its name.

use std::fmt::{self, Write};

use floe_store::limits::{PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX};
use floe_store::{Item, Value};

use super::schema::{KeyPart, Layout, PARTITION_KEY, RegistrySchema, SORT_KEY};
use crate::attribute::Invalid;
use crate::error::{Error, ErrorKind, Result};

/// How many digits a number has in a key.
const VERSION_DIGITS: usize = 10;
/// The greatest number that a version can have.
pub const VERSION_MAX: u64 = 9_999_999_999;

/// An item of a registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(super) table: &'static str,
    pub(super) pk: String,
    pub(super) sk: String,
}

impl Place {
    pub(super) fn key(&self) -> Item {
        Item::with_capacity(2)
            .with(PARTITION_KEY, self.pk.as_str())
            .with(SORT_KEY, self.sk.as_str())
    }
}

/// A group, and the registry that it is of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GroupPlace {
    /// Its key.
    pub(super) text: String,
    pub(super) schema: &'static RegistrySchema,
}

impl GroupPlace {
    /// Whether it is one of this registry. The same constant may stand in several places of a program.
    pub(super) fn is_of(&self, schema: &'static RegistrySchema) -> bool {
        std::ptr::eq(self.schema, schema) || self.schema == schema
    }

    /// Where the version of this number is.
    pub(super) fn version(&self, number: u64) -> Place {
        self.beside(version_text(self.schema, number))
    }

    /// Where the pointer to the latest version is.
    pub(super) fn pointer(&self) -> Place {
        self.beside(self.schema.latest.to_owned())
    }

    /// Where an alias is.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when the name cannot be in a key.
    pub(super) fn alias(&self, name: &str) -> Result<Place> {
        let schema = self.schema;
        if name.is_empty() {
            let invalid = Invalid::new("the name of an alias cannot be empty");
            return Err(Error::invalid(schema.name, "alias", &invalid));
        }
        let mut text = schema.latest.to_owned();
        escape(schema, name, &mut text);
        let (_, version_key) = schema.layout.keys();
        check_length(schema, "alias", version_key, &text)?;
        Ok(self.beside(text))
    }

    fn beside(&self, version: String) -> Place {
        let (group, table) = (self.text.clone(), self.schema.table);
        let (pk, sk) = match self.schema.layout {
            Layout::Grouped => (group, version),
            Layout::Versioned => (version, group),
        };
        Place { table, pk, sk }
    }
}

impl fmt::Display for GroupPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.schema.name, self.text)
    }
}

/// The key of the group of these names.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when it is too long.
pub(super) fn group_text(schema: &RegistrySchema, names: &[String]) -> Result<String> {
    let mut text = String::new();
    for (at, part) in schema.group_key.iter().enumerate() {
        match part {
            KeyPart::Text(part) => text.push_str(part),
            KeyPart::Name(name) => {
                let name = names.get(*name).map(String::as_str).unwrap_or_default();
                // Nothing follows the last name that it could be taken for.
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

/// Refuses a text that is too long for the key that it is.
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
            // Only letters of one byte are ever escaped, and writing to a string cannot fail.
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

/// The number of a version whose key this is; `None` of pointers, aliases and whatever else is in the table.
pub(super) fn version_of(schema: &RegistrySchema, key: &Item) -> Option<u64> {
    let text = |attribute| key.get(attribute).and_then(Value::as_s);
    let (group_key, version_key) = schema.layout.keys();
    let (group, version) = (text(group_key)?, text(version_key)?);
    let digits = version.strip_prefix(schema.version_prefix)?;
    let number = digits.parse().ok()?;
    let is_own = group.starts_with(schema.group_lead()) && version_text(schema, number) == version;
    is_own.then_some(number)
}

/// The number after this one.
///
/// # Errors
///
/// [`TooLarge`](ErrorKind::TooLarge) when there is none.
pub(super) fn next_number(group: &GroupPlace, last: u64) -> Result<u64> {
    if last < VERSION_MAX {
        return Ok(last + 1);
    }
    let what = "the group has no numbers left";
    let message = format!("{what}: group={group} last={last} max={VERSION_MAX}");
    Err(Error::new(ErrorKind::TooLarge, message))
}

#[cfg(test)]
pub(super) mod tests;
