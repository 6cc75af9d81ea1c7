//! What is known of a registry when the program is compiled: its keys, and where everything stands in its items.

use crate::attribute::FieldKind;

/// The attribute of the partition key in every table of registries.
pub const PARTITION_KEY: &str = "pk";
/// The attribute of the sort key.
pub const SORT_KEY: &str = "sk";
/// In a version, and in the copies of it: retention leaves it alone.
pub const PINNED: &str = "_pinned";
/// In a version, and in the pointer to it: the names of the aliases that lead to it.
pub const ALIASES: &str = "_aliases";
/// In a pointer: the greatest number that was given, where that is not the one it points to.
pub const LAST: &str = "_last";
/// Where the hash of the content stands, if it is no field.
pub const CONTENT_HASH: &str = "content_hash";

/// A registry, as `#[derive(Registry)]` describes it. [As text](super::describe) it is known to programs without the struct.
#[derive(Debug, PartialEq, Eq)]
pub struct RegistrySchema {
    /// The name of the struct.
    pub name: &'static str,
    /// The table in which its items are.
    pub table: &'static str,
    /// Which of the two keys names the version.
    pub layout: Layout,
    /// The key of a group: text and fields in turn.
    pub group_key: &'static [KeyPart],
    /// What is escaped in names, besides `%`.
    pub escaped: &'static str,
    /// The fields that form the group, in the order of its key.
    pub group: &'static [RegistryField],
    /// What stands before the number in the key of a version.
    pub version_prefix: &'static str,
    /// What stands in the place of the version's key in a pointer; names of aliases follow it.
    pub latest: &'static str,
    /// Whether numbers stand in keys as they are, so that 10 sorts before 2, and names that end a key are not escaped.
    pub legacy_keys: bool,
    /// All fields, those of the group among them.
    pub fields: &'static [RegistryField],
    /// The attribute of the number.
    pub version: &'static str,
    /// The attribute of the moment of publication.
    pub published: &'static str,
    /// The attribute of the status, if versions have one.
    pub status: Option<&'static str>,
    /// The attribute of the moment of expiry, in epoch seconds.
    pub expires: Option<&'static str>,
    /// The attribute of the moment since when a version is gone.
    pub deleted: &'static str,
    /// How long deprecated versions stay.
    pub retention_secs: Option<u64>,
    /// The field that is the hash of the content; without it the hash is made of all fields.
    pub hash: Option<&'static str>,
    /// The sparse indexes by status.
    pub indexes: &'static [StatusIndex],
}

/// Which key is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The partition is the group, and its versions are sorted in it.
    Grouped,
    /// The partition is the version, and groups are sorted in it: all pointers are one partition.
    Versioned,
}

impl Layout {
    /// The attributes that are the key of the group and that of the version.
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
    /// Text, as it is.
    Text(&'static str),
    /// A field of the group, by its place among them.
    Name(usize),
}

/// A field of the struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryField {
    /// Its name in the struct.
    pub name: &'static str,
    /// Its attribute.
    pub attribute: &'static str,
    /// What its attribute is.
    pub kind: FieldKind,
    /// Whether its attribute may be absent.
    pub is_optional: bool,
}

/// A sparse index: by a field of the group, and in it by status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusIndex {
    /// Its name.
    pub name: &'static str,
    /// The field, by its place in the group.
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

    /// What changes in a version once it is published, besides its pin and its aliases.
    pub(crate) fn state(&self) -> impl Iterator<Item = &'static str> {
        let attributes = [self.status, self.expires, Some(self.deleted)];
        attributes.into_iter().flatten()
    }

    /// What the keys of its versions, pointers and aliases begin with.
    pub(crate) fn version_leads(&self) -> [&'static str; 2] {
        [self.version_prefix, self.latest]
    }

    /// What the keys of its groups begin with.
    pub(crate) fn group_lead(&self) -> &'static str {
        match self.group_key.first() {
            Some(KeyPart::Text(text)) => text,
            _ => "",
        }
    }

    /// A field by its name, or by its attribute.
    pub(crate) fn field(&self, name: &str) -> Option<&'static RegistryField> {
        let mut fields = self.fields.iter();
        fields
            .clone()
            .find(|field| field.name == name)
            .or_else(|| fields.find(|field| field.attribute == name))
    }

    /// The field of an index.
    pub(crate) fn index_field(&self, index: &StatusIndex) -> Option<&'static RegistryField> {
        self.group.get(index.field)
    }
}
