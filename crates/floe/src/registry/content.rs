//! The content of versions: structs that derive [`Registry`], or items of a registry that is known by its schema only.

use floe_store::{Item, Value};

use super::Registry;
use super::group::Group;
use super::schema::{RegistryField, RegistrySchema};
use crate::attribute::{Invalid, mismatch, missing};
use crate::error::{Error, Result};

/// The content of a version: a struct that derives [`Registry`], or an [`Item`] with the attributes of its fields. Not
/// meant to be implemented otherwise.
pub trait Content: Sized {
    /// Returns the group of a value.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a name cannot be part of a key.
    fn group_in(&self, schema: &'static RegistrySchema) -> Result<Group<Self>>;

    /// Converts all fields to stored attributes.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a field cannot be stored, or does not match the schema.
    fn attributes_in(&self, schema: &'static RegistrySchema) -> Result<Item>;

    /// Converts a stored version.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it does not match the type.
    fn of_version(schema: &'static RegistrySchema, item: &Item) -> Result<Self>;
}

impl<R: Registry> Content for R {
    fn group_in(&self, _: &'static RegistrySchema) -> Result<Group<Self>> {
        self.group()
    }

    fn attributes_in(&self, _: &'static RegistrySchema) -> Result<Item> {
        self.to_attributes()
    }

    fn of_version(_: &'static RegistrySchema, item: &Item) -> Result<Self> {
        Self::from_item(item)
    }
}

impl Content for Item {
    fn group_in(&self, schema: &'static RegistrySchema) -> Result<Group<Self>> {
        let names = schema.group.iter().map(|field| {
            let value = self.get(field.attribute);
            check(field, value).map(|()| value.cloned())
        });
        Group::in_schema(schema, &names.collect::<Vec<_>>())
    }

    fn attributes_in(&self, schema: &'static RegistrySchema) -> Result<Item> {
        let is_field = |name: &str| schema.fields.iter().any(|field| field.attribute == name);
        if let Some((name, _)) = self.iter().find(|(name, _)| !is_field(name)) {
            let invalid = Invalid::new("the registry has no field with this attribute");
            return Err(Error::invalid(schema.name, name, &invalid));
        }
        for field in schema.fields {
            let checked = check(field, self.get(field.attribute));
            checked.map_err(|invalid| Error::invalid(schema.name, field.name, &invalid))?;
        }
        Ok(self.clone())
    }

    fn of_version(schema: &'static RegistrySchema, item: &Item) -> Result<Self> {
        let attributes = schema.fields.iter().map(|field| field.attribute);
        let values = attributes.filter_map(|name| Some((name, item.get(name)?.clone())));
        Ok(values.collect())
    }
}

/// Rejects values that the field of a struct could not have.
fn check(field: &RegistryField, value: Option<&Value>) -> Result<(), Invalid> {
    match (value, field.kind.key_kind()) {
        (None, _) if !field.is_optional => Err(missing()),
        (Some(value), Some(kind)) if !kind.matches(value) => Err(mismatch(kind.as_str(), value)),
        _ => Ok(()),
    }
}
