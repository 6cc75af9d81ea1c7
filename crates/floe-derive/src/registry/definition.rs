//! The description of a registry, from its attributes.

use syn::ext::IdentExt;
use syn::{Ident, LitStr, Path, Visibility};

use super::template::Template;
use crate::attributes::SeenAttributes;
use crate::stored::StoredField;

/// A struct whose values are published in versions.
pub(super) struct RegistryDef {
    pub(super) ident: Ident,
    pub(super) vis: Visibility,
    pub(super) words: RegistryAttributes,
    pub(super) keys: Keys,
    pub(super) fields: Vec<StoredField>,
}

/// The attributes of the struct.
pub(super) struct RegistryAttributes {
    pub(super) krate: Path,
    pub(super) table: Option<String>,
    pub(super) pk: Option<Template>,
    pub(super) sk: Option<Template>,
    pub(super) latest: Option<LitStr>,
    pub(super) version: String,
    pub(super) published: String,
    pub(super) deleted: String,
    pub(super) status: Option<String>,
    pub(super) expires: Option<String>,
    pub(super) retention_secs: Option<u64>,
    pub(super) indexes: Vec<IndexDef>,
    pub(super) legacy_keys: bool,
    pub(super) seen: SeenAttributes,
}

/// The two keys.
pub(super) struct Keys {
    pub(super) group: Template,
    pub(super) version_prefix: String,
    pub(super) latest: String,
    /// Whether the partition key contains the version.
    pub(super) is_versioned: bool,
}

/// An index by status.
pub(super) struct IndexDef {
    pub(super) name: LitStr,
    pub(super) key: Ident,
}

impl RegistryDef {
    pub(super) fn name(&self) -> String {
        self.ident.unraw().to_string()
    }

    /// The fields of the group, in the order of its key.
    pub(super) fn group(&self) -> Vec<&StoredField> {
        let names = self.keys.group.names();
        names
            .filter_map(|name| field_named(&self.fields, name))
            .collect()
    }

    pub(super) fn hash(&self) -> Option<&StoredField> {
        self.fields.iter().find(|field| field.is_marked)
    }
}

/// The field with this name.
pub(super) fn field_named<'f>(fields: &'f [StoredField], name: &str) -> Option<&'f StoredField> {
    fields.iter().find(|field| field.ident.unraw() == name)
}
