//! The description of a registry as text: what the derive knows, for programs that have not got the struct.
//!
//! It is JSON in the words of the derive:
//!
//! ```
//! use floe::registry::{Registry, RegistrySchema};
//!
//! #[derive(floe::Registry)]
//! #[registry(table = "images", pk = "img#{service}", sk = "v{version}", latest = "latest")]
//! struct Image { service: String, digest: String }
//!
//! # fn main() -> Result<(), floe::Error> {
//! let text = Image::SCHEMA.describe();
//! assert!(text.contains("\"pk\": \"img#{service}\""));
//! assert_eq!(RegistrySchema::from_description(&text)?, Image::SCHEMA);
//! # Ok(())
//! # }
//! ```
//!
//! [`ensure_registries`](crate::Db::ensure_registries) keeps it in the table of the registry. What is read of it is checked
//! as the derive checks a struct, so that no key is ever made that a program would not make.

mod checks;
mod intern;
mod template;
mod words;

use super::schema::{KeyPart, Layout, RegistryField, RegistrySchema};
use crate::attribute::FieldKind;
use crate::error::Result;
use crate::tables::node::Node;
use words::Words;

/// What stands for the number in a key.
const VERSION: &str = "{version}";

impl RegistrySchema {
    /// The description as text.
    pub fn describe(&self) -> String {
        // Texts, flags and lists of them have a form in JSON always.
        serde_json::to_string_pretty(&self.node()).unwrap_or_default() + "\n"
    }

    /// The registry that a text describes.
    ///
    /// What is known of a registry is known for as long as the program runs, as if the derive had made it. So one is kept
    /// for each distinct description that was ever read, and is never let go: read descriptions of your own tables, not
    /// of whatever strangers send.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when it is no description, or one that the derive would refuse.
    pub fn from_description(text: &str) -> Result<&'static Self> {
        Words::parse(text)?.schema()
    }

    /// The registry that a text describes, in another table than it says: one that was copied there.
    ///
    /// # Errors
    ///
    /// As for [`from_description`](Self::from_description).
    pub fn from_description_in(text: &str, table: &str) -> Result<&'static Self> {
        let words = Words::parse(text)?;
        Words {
            table: table.to_owned(),
            ..words
        }
        .schema()
    }

    fn node(&self) -> Node {
        let version = format!("{}{VERSION}", self.version_prefix);
        let group = self.group_text();
        let (pk, sk) = match self.layout {
            Layout::Grouped => (group, version),
            Layout::Versioned => (version, group),
        };
        let retention = self.retention_text();
        let texts = [
            ("name", Some(self.name)),
            ("table", Some(self.table)),
            ("pk", Some(&*pk)),
            ("sk", Some(&*sk)),
            ("latest", Some(self.latest)),
            ("version", Some(self.version)),
            ("published", Some(self.published)),
            ("deleted", Some(self.deleted)),
            ("status", self.status),
            ("expires", self.expires),
            ("retention", retention.as_deref()),
        ];
        let texts = texts.into_iter();
        let texts = texts.filter_map(|(word, text)| Some((word, Node::text(text?))));
        let mut words: Vec<_> = texts.collect();
        if self.legacy_keys {
            words.push(("legacy_keys", Node::Flag(true)));
        }
        let fields = self.fields.iter().map(|field| self.field_node(field));
        words.push(("fields", Node::List(fields.collect())));
        let indexes = self.indexes.iter().filter_map(|index| {
            let key = Node::text(self.index_field(index)?.name);
            Some(Node::map([("name", Node::text(index.name)), ("key", key)]))
        });
        let indexes: Vec<_> = indexes.collect();
        if !indexes.is_empty() {
            words.push(("indexes", Node::List(indexes)));
        }
        Node::map(words)
    }

    fn field_node(&self, field: &RegistryField) -> Node {
        let mut words = vec![
            ("name", Node::text(field.name)),
            ("attribute", Node::text(field.attribute)),
            ("kind", Node::text(field.kind.as_str())),
        ];
        if field.is_optional {
            words.push(("optional", Node::Flag(true)));
        }
        if self.hash == Some(field.attribute) {
            words.push(("hash", Node::Flag(true)));
        }
        Node::map(words)
    }

    /// How long deprecated versions stay, as the derive is told it: `30d`.
    pub fn retention_text(&self) -> Option<String> {
        self.retention_secs.map(retention_text)
    }

    /// The key of a group as the derive is told it: `lyr#{region}.{package}`.
    pub fn group_text(&self) -> String {
        let mut text = String::new();
        for part in self.group_key {
            match part {
                KeyPart::Text(part) => text.push_str(part),
                KeyPart::Name(at) => {
                    let name = self.group.get(*at).map_or("", |field| field.name);
                    text.extend(["{", name, "}"]);
                }
            }
        }
        text
    }
}

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

/// A duration as one writes it: in the greatest unit of which it is a number.
fn retention_text(secs: u64) -> String {
    let unit = UNITS.iter().find(|(_, unit)| secs.is_multiple_of(*unit));
    let (name, unit) = unit.copied().unwrap_or(("s", 1));
    format!("{}{name}", secs / unit)
}

fn retention_secs(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(split)?;
    let (_, secs) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: u64 = number.parse().ok()?;
    number.checked_mul(*secs).filter(|secs| *secs > 0)
}

fn kind_of(text: &str) -> Option<FieldKind> {
    let kinds = [
        FieldKind::Text,
        FieldKind::Number,
        FieldKind::Bytes,
        FieldKind::Other,
    ];
    kinds.into_iter().find(|kind| kind.as_str() == text)
}

#[cfg(test)]
mod tests;
