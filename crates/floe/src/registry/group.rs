//! Groups of versions, identified by some fields of the struct.

use std::fmt;
use std::marker::PhantomData;

use floe_store::Value;

use super::Registry;
use super::keys::{GroupKey, group_text};
use super::schema::RegistrySchema;
use crate::attribute::{Invalid, missing};
use crate::error::{Error, Result};

/// A group of a registry, for example a package in a region.
pub struct Group<R> {
    pub(super) key: GroupKey,
    registry: PhantomData<fn() -> R>,
}

impl<R: Registry> Group<R> {
    /// Called by derived code, with the names in the order of the key.
    #[doc(hidden)]
    pub fn of(names: &[Result<Option<Value>, Invalid>]) -> Result<Self> {
        Self::in_schema(R::SCHEMA, names)
    }
}

impl<R> Group<R> {
    /// Returns the group with these names, in the order of the key.
    pub(super) fn in_schema(
        schema: &'static RegistrySchema,
        names: &[Result<Option<Value>, Invalid>],
    ) -> Result<Self> {
        let mut texts = Vec::with_capacity(names.len());
        for (field, value) in schema.group.iter().zip(names) {
            let text = value.clone().and_then(|value| name_text(value.as_ref()));
            let invalid = |invalid| Error::invalid(schema.name, field.name, &invalid);
            texts.push(text.map_err(invalid)?);
        }
        let text = group_text(schema, &texts)?;
        Ok(Self {
            key: GroupKey { schema, text },
            registry: PhantomData,
        })
    }

    /// Returns the key of the group, as stored.
    pub fn as_str(&self) -> &str {
        &self.key.text
    }
}

fn name_text(value: Option<&Value>) -> Result<String, Invalid> {
    let text = match value.ok_or_else(missing)? {
        Value::S(text) => text.as_str().to_owned(),
        Value::N(number) => number.to_string(),
        other => {
            let actual = other.value_type();
            let reason = format!("a name in a group must be text or a number: actual={actual}");
            return Err(Invalid::new(reason));
        }
    };
    if text.is_empty() {
        return Err(Invalid::new("a name in a group cannot be empty"));
    }
    Ok(text)
}

impl<R> Clone for Group<R> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            registry: PhantomData,
        }
    }
}

impl<R> PartialEq for Group<R> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<R> Eq for Group<R> {}

impl<R> fmt::Debug for Group<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)
    }
}

/// Identifies a group: its names in the order of its key, a value of it, or the [`Group`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group of `{R}`",
    label = "not a group of `{R}`",
    note = "give the names of the group, in the order of its key"
)]
pub trait IntoGroup<R> {
    /// Converts the value to a group.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a name cannot be part of a key.
    fn into_group(self) -> Result<Group<R>>;
}

impl<R> IntoGroup<R> for Group<R> {
    fn into_group(self) -> Result<Self> {
        Ok(self)
    }
}

impl<R> IntoGroup<R> for &Group<R> {
    fn into_group(self) -> Result<Group<R>> {
        Ok(self.clone())
    }
}
