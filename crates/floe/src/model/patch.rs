//! Some fields of a model with their values: what a write without a read expects, and what it sets.

use std::fmt;
use std::marker::PhantomData;

use floe_store::{Name, Value};

use super::field::Rules;
use crate::error::{Error, Result};

/// Values for some of the fields of a model. Made by the generated `Order::patch()`.
pub struct Patch<M> {
    fields: Vec<PatchField>,
    /// The first value that is not allowed.
    invalid: Option<Error>,
    model: PhantomData<fn() -> M>,
}

/// A field of a patch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PatchField {
    pub(crate) field: &'static str,
    pub(crate) attribute: Name,
    pub(crate) value: Option<Value>,
    pub(crate) read_only: bool,
}

impl<M> fmt::Debug for Patch<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields.iter();
        f.debug_map()
            .entries(fields.map(|field| (field.field, &field.value)))
            .finish()
    }
}

impl<M> Default for Patch<M> {
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            invalid: None,
            model: PhantomData,
        }
    }
}

impl<M> Patch<M> {
    /// Sets a field, in place of what it was set to before.
    #[doc(hidden)]
    pub fn set<T>(&mut self, rules: &'static Rules<T>, value: &T) {
        match rules.validate(value) {
            Ok(value) => {
                self.fields.retain(|field| field.field != rules.field);
                self.fields.push(PatchField {
                    field: rules.field,
                    attribute: Name::from(rules.attribute),
                    value,
                    read_only: rules.read_only,
                });
            }
            Err(error) => {
                self.invalid.get_or_insert(error);
            }
        }
    }

    /// The fields.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when one was set to a value that is not allowed.
    pub(crate) fn into_fields(self) -> Result<Vec<PatchField>> {
        match self.invalid {
            Some(error) => Err(error),
            None => Ok(self.fields),
        }
    }
}
