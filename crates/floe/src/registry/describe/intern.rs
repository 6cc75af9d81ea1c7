//! Interned schemas of parsed descriptions.
//!
//! The registry expects schemas to be constants, as the derive generates them. A schema that is known only at run time
//! is therefore leaked, once for each distinct description.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::checks::{self, Keys, field_named};
use super::parse::{Description, FieldDescription};
use super::template::{self, Part};
use crate::error::Result;
use crate::registry::schema::{KeyPart, RegistryField, RegistrySchema, StatusIndex};

/// Key: the debug text of the description.
static INTERNED: Mutex<BTreeMap<String, &'static RegistrySchema>> = Mutex::new(BTreeMap::new());

impl Description {
    /// Returns the schema of this description: the interned one, or a new one.
    pub(super) fn schema(&self) -> Result<&'static RegistrySchema> {
        let keys = checks::checked(self)?;
        let text_key = format!("{self:?}");
        let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = interned.get(&text_key) {
            return Ok(schema);
        }
        let schema: &'static RegistrySchema = Box::leak(Box::new(self.leak(&keys)));
        interned.insert(text_key, schema);
        Ok(schema)
    }

    fn leak(&self, keys: &Keys) -> RegistrySchema {
        let names: Vec<&str> = template::names(&keys.group).collect();
        let index = |name: &str| names.iter().position(|known| *known == name);
        let parts = keys.group.iter().map(|part| match part {
            Part::Text(part) => KeyPart::Text(text(part)),
            Part::Name(name) => KeyPart::Name(index(name).unwrap_or_default()),
        });
        let group = names.iter().filter_map(|name| field_named(self, name));
        let indexes = self.indexes.iter().map(|(name, key)| StatusIndex {
            name: text(name),
            field: index(key).unwrap_or_default(),
        });
        let hash = self.fields.iter().find(|field| field.is_hash);
        RegistrySchema {
            name: text(&self.name),
            table: text(&self.table),
            layout: keys.layout,
            group_key: list(parts),
            escaped: text(&template::escaped(&keys.group)),
            group: list(group.map(field)),
            version_prefix: text(&keys.version_prefix),
            latest: text(&self.latest),
            legacy_keys: self.legacy_keys,
            fields: list(self.fields.iter().map(field)),
            version: text(&self.version),
            published: text(&self.published),
            status: self.status.as_deref().map(text),
            expires: self.expires.as_deref().map(text),
            deleted: text(&self.deleted),
            retention_secs: self.retention_secs,
            hash: hash.map(|field| text(&field.attribute)),
            indexes: list(indexes),
        }
    }
}

fn field(description: &FieldDescription) -> RegistryField {
    RegistryField {
        name: text(&description.name),
        attribute: text(&description.attribute),
        kind: description.kind,
        is_optional: description.is_optional,
    }
}

fn text(text: &str) -> &'static str {
    Box::leak(Box::from(text))
}

fn list<T>(elements: impl Iterator<Item = T>) -> &'static [T] {
    Box::leak(elements.collect())
}
