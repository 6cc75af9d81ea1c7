//! Descriptions that were read, kept for the life of the program.
//!
//! The patterns know a registry as the derive makes it: a constant. One that is known only at run time becomes one too:
//! memory that is never given back, once for each distinct description.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::checks::{self, Keys, field_named};
use super::template::{self, Part};
use super::words::{FieldWords, Words};
use crate::error::Result;
use crate::registry::schema::{KeyPart, RegistryField, RegistrySchema, StatusIndex};

/// By what they say.
static KNOWN: Mutex<BTreeMap<String, &'static RegistrySchema>> = Mutex::new(BTreeMap::new());

impl Words {
    /// The schema of these words: the one that was made before, or a new one.
    pub(super) fn schema(&self) -> Result<&'static RegistrySchema> {
        let keys = checks::checked(self)?;
        let said = format!("{self:?}");
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(schema) = known.get(&said) {
            return Ok(schema);
        }
        let schema: &'static RegistrySchema = Box::leak(Box::new(self.leak(&keys)));
        known.insert(said, schema);
        Ok(schema)
    }

    fn leak(&self, keys: &Keys) -> RegistrySchema {
        let names: Vec<&str> = template::names(&keys.group).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let parts = keys.group.iter().map(|part| match part {
            Part::Text(part) => KeyPart::Text(text(part)),
            Part::Name(name) => KeyPart::Name(place(name).unwrap_or_default()),
        });
        let group = names.iter().filter_map(|name| field_named(self, name));
        let indexes = self.indexes.iter().map(|(name, key)| StatusIndex {
            name: text(name),
            field: place(key).unwrap_or_default(),
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

fn field(words: &FieldWords) -> RegistryField {
    RegistryField {
        name: text(&words.name),
        attribute: text(&words.attribute),
        kind: words.kind,
        is_optional: words.is_optional,
    }
}

fn text(text: &str) -> &'static str {
    Box::leak(Box::from(text))
}

fn list<T>(elements: impl Iterator<Item = T>) -> &'static [T] {
    Box::leak(elements.collect())
}
