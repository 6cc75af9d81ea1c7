//! What a dropped row reports to its transaction: which fields were read, and how each was changed.

use floe_store::Value;

use super::field::Change;
use crate::attribute::Invalid;
use crate::error::{Error, Result};

/// What a dropped row tells: its fields, as far as they were touched.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) fields: Vec<FieldReport>,
    /// The row was asked to be deleted.
    pub(crate) is_deleted: bool,
}

impl Report {
    pub(crate) fn changes_anything(&self) -> bool {
        let mut fields = self.fields.iter();
        self.is_deleted || fields.any(|field| field.change != Change::None)
    }
}

/// What was done with a field.
#[derive(Debug)]
pub(crate) struct FieldReport {
    pub(crate) attribute: &'static str,
    pub(crate) is_read: bool,
    pub(crate) read_only: bool,
    pub(crate) change: Change,
    /// The value after a change, or why it is not allowed.
    pub(crate) value: Result<Option<Value>>,
    /// For errors.
    pub(crate) model: &'static str,
    pub(crate) field: &'static str,
}

impl FieldReport {
    pub(crate) fn read_only_error(&self) -> Error {
        let reason = Invalid::new("the field is read-only");
        Error::invalid(self.model, self.field, &reason)
    }
}
