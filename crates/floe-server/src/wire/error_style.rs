//! How operations format errors of values and expressions.

use floe_store::json::{DepthFault, FlagForm, ValidationLayer, ValueFault};
use floe_store::op::as_constraint_error;

use super::request_error::RequestError;

/// How an operation formats errors of values and expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorStyle {
    /// The layer that validates the request.
    pub(crate) layer: ValidationLayer,
    /// Whether most faults are reported as a constraint: `1 validation error detected: …`.
    as_constraint: bool,
}

impl From<ValidationLayer> for ErrorStyle {
    /// Returns the style of an operation that reports faults without the constraint form.
    fn from(layer: ValidationLayer) -> Self {
        Self {
            layer,
            as_constraint: false,
        }
    }
}

impl ErrorStyle {
    /// Returns the style of PutItem, UpdateItem and DeleteItem.
    pub(crate) fn of_single_write(layer: ValidationLayer) -> Self {
        Self {
            layer,
            as_constraint: layer == ValidationLayer::Current,
        }
    }

    /// Returns a validation error, in the constraint form if the style demands it.
    pub(crate) fn error(self, message: impl Into<String>) -> RequestError {
        self.wrap(floe_store::Error::validation(message))
    }

    /// Like [`error`](ErrorStyle::error), for an error of `floe-store`.
    pub(crate) fn wrap(self, error: floe_store::Error) -> RequestError {
        RequestError::Store(if self.as_constraint {
            as_constraint_error(error)
        } else {
            error
        })
    }

    /// Returns the error for an invalid value.
    pub(crate) fn value_error(self, fault: &ValueFault) -> RequestError {
        self.value_error_with(fault, fault.message(self.layer))
    }

    /// Returns the error for an invalid value behind a placeholder.
    pub(crate) fn placeholder_error(self, fault: &ValueFault, key: &str) -> RequestError {
        let mut message = fault.message(self.layer);
        if names_placeholder(fault, self.layer) {
            message = format!(
                "ExpressionAttributeValues contains invalid value: {message} for key {key}"
            );
        }
        self.value_error_with(fault, message)
    }

    fn value_error_with(self, fault: &ValueFault, message: String) -> RequestError {
        if is_never_constraint(fault) {
            RequestError::validation(message)
        } else {
            self.error(message)
        }
    }
}

/// Whether the fault is never reported in the constraint form.
const fn is_never_constraint(fault: &ValueFault) -> bool {
    matches!(
        fault,
        ValueFault::Empty
            | ValueFault::MultipleTypes
            | ValueFault::NullFalse(FlagForm::Text)
            | ValueFault::TooDeep(DepthFault::InParser)
    )
}

/// Whether the error names the placeholder of the value.
const fn names_placeholder(fault: &ValueFault, layer: ValidationLayer) -> bool {
    matches!(layer, ValidationLayer::Older)
        || matches!(fault, ValueFault::EmptySet(_))
        || is_never_constraint(fault)
}
