//! Groups: what has versions, named by some fields of the struct.

use std::fmt;
use std::marker::PhantomData;

use floe_store::Value;

use super::Registry;
use super::keys::{GroupPlace, group_text};
use super::schema::RegistrySchema;
use crate::attribute::{Invalid, missing};
use crate::error::{Error, Result};

/// A group of a registry: a package in a region, say.
pub struct Group<R> {
    pub(super) place: GroupPlace,
    registry: PhantomData<fn() -> R>,
}

impl<R: Registry> Group<R> {
    /// The group of these names, which the derive hands over in the order of the key.
    #[doc(hidden)]
    pub fn of(names: &[Result<Option<Value>, Invalid>]) -> Result<Self> {
        Self::in_schema(R::SCHEMA, names)
    }
}

impl<R> Group<R> {
    /// The group of these names, in the order of the key.
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
            place: GroupPlace { schema, text },
            registry: PhantomData,
        })
    }

    /// Its key, as it is stored.
    pub fn as_str(&self) -> &str {
        &self.place.text
    }
}

fn name_text(value: Option<&Value>) -> Result<String, Invalid> {
    let text = match value.ok_or_else(missing)? {
        Value::S(text) => text.as_str().to_owned(),
        Value::N(number) => number.to_string(),
        other => {
            let actual = other.value_type();
            let reason = format!("a name in a group is text or a number: actual={actual}");
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
            place: self.place.clone(),
            registry: PhantomData,
        }
    }
}

impl<R> PartialEq for Group<R> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<R> Eq for Group<R> {}

impl<R> fmt::Debug for Group<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.place)
    }
}

/// Something that names a group: its names in the order of its key, a value of it, or the [`Group`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a group of `{R}`",
    label = "not a group of `{R}`",
    note = "give the names that form the group, in the order of its key"
)]
pub trait IntoGroup<R> {
    /// The group.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a name cannot be in a key.
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
