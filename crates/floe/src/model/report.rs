//! The report of a dropped row to its transaction: which fields were read, and how each was changed.

use floe_store::{NumberError, Value};

use super::field::{Change, Limit, read_only_error};
use crate::error::{Error, Result};

/// The fields of a row that were read or changed.
#[derive(Debug, Default)]
pub(crate) struct RowReport {
    pub(crate) fields: Vec<FieldReport>,
    /// Whether the row was deleted.
    pub(crate) is_deleted: bool,
}

impl RowReport {
    pub(crate) fn has_changes(&self) -> bool {
        let mut fields = self.fields.iter();
        self.is_deleted || fields.any(|field| field.change != Change::None)
    }
}

/// The read and change of a field.
#[derive(Clone, Debug)]
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
    /// The limit of the stored number, if the field is incremented; an error if no number can express it.
    pub(crate) fn limit(&self) -> Option<Result<Option<Limit>, NumberError>> {
        match &self.change {
            Change::Incremented(addition) if !addition.amount.is_zero() => Some(addition.limit()),
            _ => None,
        }
    }

    pub(crate) fn read_only_error(&self) -> Error {
        read_only_error(self.model, self.field)
    }
}
