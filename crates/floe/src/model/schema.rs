//! The description of a model, from which keys, codecs, expressions, tables and the JSON Schema are derived.

use floe_store::{Item, Timestamp, Value};
use serde_json::Value as Json;

/// The compile-time description of a model.
#[derive(Debug)]
pub struct Schema {
    /// The name of the struct.
    pub model: &'static str,
    /// The table of its items.
    pub table: &'static str,
    /// All fields, in the order of the struct.
    pub fields: &'static [FieldSchema],
    /// The constant prefix of the model's sort keys, if several models share a table.
    pub sort_constant: Option<&'static str>,
    /// The encoding of the sort key.
    pub sort_key_encoding: SortKeyEncoding,
    /// Its indexes.
    pub indexes: &'static [IndexSchema],
    /// The attribute with the expiry time of an item, in epoch seconds.
    pub expires: Option<&'static str>,
    /// Whether every commit of a single item of the model is sent such that its outcome can always be determined.
    pub exactly_once: bool,
    /// Whether the table has a change stream, with each item before and after the change.
    pub stream: bool,
}

/// A field of a model.
#[derive(Debug)]
pub struct FieldSchema {
    /// The name in the struct.
    pub name: &'static str,
    /// The name in the store.
    pub attribute: &'static str,
    /// Its role in the key.
    pub role: Role,
    /// The kind of the attribute as part of a key or an index.
    pub kind: FieldKind,
    /// Whether the attribute may be absent.
    pub optional: bool,
    /// Whether it cannot be changed once the item is created.
    pub read_only: bool,
    /// Whether it has a default.
    pub has_default: bool,
    /// The JSON Schema of its values, with the constraints.
    pub json_schema: fn() -> Json,
}

/// The role of a field in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A component of the partition key.
    Partition,
    /// A component of the sort key.
    Sort,
    /// Not part of the key.
    Plain,
}

/// The encoding of numbers in a sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKeyEncoding {
    /// As text that sorts like the numbers.
    Ordered,
    /// As JSON, compatible with the JavaScript library.
    Json,
}

/// An index of a model.
#[derive(Debug)]
pub struct IndexSchema {
    /// Its name.
    pub name: &'static str,
    /// The fields of its partition key.
    pub key: &'static [&'static str],
    /// The fields of its sort key.
    pub sort: &'static [&'static str],
    /// Whether the index omits items that lack one of these fields.
    pub sparse: bool,
    /// Its projection.
    pub projection: IndexProjection,
}

/// The attributes that an index copies from an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexProjection {
    /// Everything.
    All,
    /// The keys.
    Keys,
    /// The keys and these fields.
    Include(&'static [&'static str]),
}

pub use crate::attribute::FieldKind;
pub use crate::key::{PARTITION_ATTRIBUTE, SORT_ATTRIBUTE};

/// The attribute with the stamp of the commit that wrote the item last.
pub const STAMP_ATTRIBUTE: &str = "_tx";

impl FieldSchema {
    /// Whether a value of the model must have it.
    pub(crate) const fn is_required(&self) -> bool {
        !self.optional && !self.has_default
    }
}

impl Schema {
    /// The fields of the partition key, in the order of the struct.
    pub fn partition(&self) -> impl Iterator<Item = &'static FieldSchema> {
        self.with_role(Role::Partition)
    }

    /// The fields of the sort key, in the order of the struct.
    pub fn sort(&self) -> impl Iterator<Item = &'static FieldSchema> {
        self.with_role(Role::Sort)
    }

    fn with_role(&self, role: Role) -> impl Iterator<Item = &'static FieldSchema> {
        self.fields.iter().filter(move |field| field.role == role)
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&'static FieldSchema> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The name of the field that is stored in an attribute, or the name of the attribute if there is none.
    pub(crate) fn field_of(&self, attribute: &str) -> String {
        let mut fields = self.fields.iter();
        let field = fields.find(|field| field.attribute == attribute);
        field.map_or(attribute, |field| field.name).to_owned()
    }

    /// The attributes of the key of an index.
    pub(crate) fn index_attributes(
        &self,
        index: &'static IndexSchema,
    ) -> impl Iterator<Item = &'static str> {
        let names = index.key.iter().chain(index.sort);
        names.filter_map(|name| Some(self.field(name)?.attribute))
    }

    /// Whether the item has expired at `now`. The store deletes it some time later.
    pub fn is_expired(&self, item: &Item, now: Timestamp) -> bool {
        let expires = self.expires.and_then(|attribute| item.get(attribute));
        let order = expires.and_then(|expires| expires.compare(&Value::from(now.as_secs())));
        order.is_some_and(std::cmp::Ordering::is_le)
    }

    /// Whether the field is stored as a separate attribute: every plain field, and key components that an index needs.
    pub fn is_stored(&self, field: &FieldSchema) -> bool {
        let mut indexed = self.indexes.iter().flat_map(|i| i.key.iter().chain(i.sort));
        field.role == Role::Plain || indexed.any(|name| *name == field.name)
    }
}
