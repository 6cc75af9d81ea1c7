//! Patches: values of some fields of a model, the expected or new values of a blind write.

use std::fmt;
use std::marker::PhantomData;

use floe_store::{Name, Value};

use super::field::Rules;
use crate::error::Result;

/// Values for some of the fields of a model. Created by the generated `Order::patch()`.
pub struct Patch<M> {
    /// The fields, or the first value that is not allowed.
    fields: Result<Vec<PatchField>>,
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
        let fields = self.fields.iter().flatten();
        let fields = fields.map(|field| (field.field, &field.value));
        f.debug_map().entries(fields).finish()
    }
}

impl<M> Default for Patch<M> {
    fn default() -> Self {
        Self {
            fields: Ok(Vec::new()),
            model: PhantomData,
        }
    }
}

impl<M> Patch<M> {
    /// Sets a field. It replaces an earlier value.
    #[doc(hidden)]
    pub fn set<T>(&mut self, rules: &'static Rules<T>, value: &T) {
        let Ok(fields) = &mut self.fields else {
            return;
        };
        match rules.validate(value) {
            Ok(value) => {
                fields.retain(|field| field.field != rules.field);
                fields.push(PatchField {
                    field: rules.field,
                    attribute: Name::from(rules.attribute),
                    value,
                    read_only: rules.read_only,
                });
            }
            Err(error) => self.fields = Err(error),
        }
    }

    /// The fields.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a field was set to a value that is not allowed.
    pub(crate) fn into_fields(self) -> Result<Vec<PatchField>> {
        self.fields
    }
}
