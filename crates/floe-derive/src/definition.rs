//! The description of a model, from its attributes.

use std::ops::Deref;

use quote::format_ident;
use syn::{Ident, Path, Type, Visibility};

use crate::constraint::Constraint;
use crate::index::IndexDef;
use crate::shape::{Shape, option_of};
use crate::stored::StoredField;

/// A checked model.
pub(crate) struct ModelDef {
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) krate: Path,
    pub(crate) table: String,
    pub(crate) sort_constant: Option<String>,
    pub(crate) json_sort_key: bool,
    pub(crate) exactly_once: bool,
    pub(crate) stream: bool,
    pub(crate) indexes: Vec<IndexDef>,
    /// In the order of the struct.
    pub(crate) fields: Vec<FieldDef>,
}

/// A field of a model.
pub(crate) struct FieldDef {
    pub(crate) stored: StoredField,
    pub(crate) role: Role,
    pub(crate) read_only: bool,
    pub(crate) expires: bool,
    pub(crate) constraints: Vec<Constraint>,
}

impl Deref for FieldDef {
    type Target = StoredField;

    fn deref(&self) -> &StoredField {
        &self.stored
    }
}

/// The role of a field in the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Partition,
    Sort,
    Plain,
}

impl ModelDef {
    pub(crate) fn field(&self, name: &Ident) -> Option<&FieldDef> {
        self.fields.iter().find(|field| field.ident == *name)
    }

    /// The name of a generated struct: the model's name with a suffix.
    pub(crate) fn derived_name(&self, suffix: &str) -> Ident {
        format_ident!("{}{suffix}", self.ident)
    }

    pub(crate) fn with_role(&self, role: Role) -> impl Iterator<Item = &FieldDef> {
        self.fields.iter().filter(move |field| field.role == role)
    }

    /// The key fields: first the partition key, then the sort key, each in the order of the struct.
    pub(crate) fn components(&self) -> Vec<&FieldDef> {
        let partition = self.with_role(Role::Partition);
        partition.chain(self.with_role(Role::Sort)).collect()
    }

    /// Whether the field is stored as an attribute: every field outside of the key, and key fields that an index
    /// uses.
    pub(crate) fn is_stored(&self, field: &FieldDef) -> bool {
        let mut indexed = self.indexes.iter().flat_map(IndexDef::key_fields);
        field.role == Role::Plain || indexed.any(|name| *name == field.ident)
    }
}

impl FieldDef {
    pub(crate) fn is_optional(&self) -> bool {
        option_of(&self.ty).is_some()
    }

    /// The type of the values: the inner type of an `Option`.
    pub(crate) fn value_type(&self) -> &Type {
        option_of(&self.ty).unwrap_or(&self.ty)
    }

    /// The shape of the values.
    pub(crate) fn shape(&self) -> Shape {
        if self.is_serde {
            return Shape::Unknown;
        }
        Shape::of(self.value_type())
    }
}
