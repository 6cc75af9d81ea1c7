//! The schema of a registry, known at compile time: its keys and attributes.

use crate::attribute::FieldKind;

/// The attribute of the partition key in every table with registries.
pub const PARTITION_KEY: &str = "pk";
/// The attribute of the sort key.
pub const SORT_KEY: &str = "sk";
/// Set on a pinned version and on copies of it: exempts it from expiry.
pub const PINNED: &str = "_pinned";
/// Set on a version and on the pointer to it: the names of its aliases.
pub const ALIASES: &str = "_aliases";
/// Set on a pointer: the last number used, unless it is the number of the pointer's version.
pub const LAST: &str = "_last";
/// The attribute of the content hash, unless a field is the hash.
pub const CONTENT_HASH: &str = "content_hash";

/// The schema of a registry, as defined by `#[derive(Registry)]`. Programs without the struct read it as
/// [text](super::describe).
#[derive(Debug, PartialEq, Eq)]
pub struct RegistrySchema {
    /// The name of the struct.
    pub name: &'static str,
    /// The table of its items.
    pub table: &'static str,
    /// Which key contains the version.
    pub layout: Layout,
    /// The key of a group: alternating text and fields.
    pub group_key: &'static [KeyPart],
    /// The characters escaped in names, besides `%`.
    pub escaped: &'static str,
    /// The fields that form the group, in the order of its key.
    pub group: &'static [RegistryField],
    /// The text before the number in the key of a version.
    pub version_prefix: &'static str,
    /// The version part of a pointer's key. In the key of an alias, its name follows.
    pub latest: &'static str,
    /// Whether numbers in keys have no leading zeros, so that 10 sorts before 2, and names at the end of a key are not
    /// escaped.
    pub legacy_keys: bool,
    /// All fields, including those of the group.
    pub fields: &'static [RegistryField],
    /// The attribute of the number.
    pub version: &'static str,
    /// The attribute of the time of publication.
    pub published: &'static str,
    /// The attribute of the status, if versions have one.
    pub status: Option<&'static str>,
    /// The attribute of the expiry, in epoch seconds.
    pub expires: Option<&'static str>,
    /// The attribute of the time of deletion.
    pub deleted: &'static str,
    /// Retention of deprecated versions, in seconds.
    pub retention_secs: Option<u64>,
    /// The attribute of the field that is the content hash. Without it, the hash is computed from all fields.
    pub hash: Option<&'static str>,
    /// The sparse indexes by status.
    pub indexes: &'static [StatusIndex],
}

/// The assignment of the two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The partition key is the group, and the sort key the version.
    Grouped,
    /// The partition key is the version, and the sort key the group: all pointers share a partition.
    Versioned,
}

impl Layout {
    /// The attributes of the group key and of the version key.
    pub(crate) const fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Grouped => (PARTITION_KEY, SORT_KEY),
            Self::Versioned => (SORT_KEY, PARTITION_KEY),
        }
    }
}

/// A part of the key of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// Fixed text.
    Text(&'static str),
    /// A field of the group, by its index.
    Name(usize),
}

/// A field of the struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryField {
    /// The field name in the struct.
    pub name: &'static str,
    /// The attribute name.
    pub attribute: &'static str,
    /// The type of the attribute.
    pub kind: FieldKind,
    /// Whether its attribute may be absent.
    pub is_optional: bool,
}

/// A sparse index by a field of the group and the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusIndex {
    /// The index name.
    pub name: &'static str,
    /// The index of the field in the group.
    pub field: usize,
}

impl RegistrySchema {
    /// The attribute of the hash.
    pub(crate) const fn hash_attribute(&self) -> &'static str {
        match self.hash {
            Some(attribute) => attribute,
            None => CONTENT_HASH,
        }
    }

    /// The attributes that change after publication, besides pin and aliases.
    pub(crate) fn state(&self) -> impl Iterator<Item = &'static str> {
        let attributes = [self.status, self.expires, Some(self.deleted)];
        attributes.into_iter().flatten()
    }

    /// The prefixes of the keys of versions, and of pointers and aliases.
    pub(crate) fn version_leads(&self) -> [&'static str; 2] {
        [self.version_prefix, self.latest]
    }

    /// The prefix of the group keys.
    pub(crate) fn group_lead(&self) -> &'static str {
        match self.group_key.first() {
            Some(KeyPart::Text(text)) => text,
            _ => "",
        }
    }

    /// Returns a field by its name or its attribute.
    pub(crate) fn field(&self, name: &str) -> Option<&'static RegistryField> {
        let mut fields = self.fields.iter();
        fields
            .clone()
            .find(|field| field.name == name)
            .or_else(|| fields.find(|field| field.attribute == name))
    }

    /// Returns the field of an index.
    pub(crate) fn index_field(&self, index: &StatusIndex) -> Option<&'static RegistryField> {
        self.group.get(index.field)
    }
}
