//! In whose words an operation reports what is wrong with its values and expressions.

use floe_store::json::{FlagForm, Layer, Nesting, ValueFault};
use floe_store::op::enveloped;

use super::refusal::Refusal;

/// How an operation reports what is wrong with its values and expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Voice {
    /// The layer that validates the request.
    pub(crate) layer: Layer,
    /// Whether most faults are reported in the form of a constraint: `1 validation error detected: …`.
    as_constraint: bool,
}

impl From<Layer> for Voice {
    /// The voice of an operation that reports faults as they are.
    fn from(layer: Layer) -> Self {
        Self {
            layer,
            as_constraint: false,
        }
    }
}

impl Voice {
    /// The voice of PutItem, UpdateItem and DeleteItem.
    pub(crate) fn of_single_write(layer: Layer) -> Self {
        Self {
            layer,
            as_constraint: layer == Layer::Current,
        }
    }

    /// Refuses a request for a fault that this voice may report in the form of a constraint.
    pub(crate) fn refuse(self, message: impl Into<String>) -> Refusal {
        self.refuse_error(floe_store::Error::validation(message))
    }

    /// As [`refuse`](Voice::refuse), for an error of the vocabulary.
    pub(crate) fn refuse_error(self, error: floe_store::Error) -> Refusal {
        Refusal::Store(match self.as_constraint {
            true => enveloped(error),
            false => error,
        })
    }

    /// Refuses a request for a value.
    pub(crate) fn refuse_value(self, fault: &ValueFault) -> Refusal {
        self.refuse_value_as(fault, fault.message(self.layer))
    }

    /// Refuses a request for the value that a placeholder stands for.
    pub(crate) fn refuse_placeholder(self, fault: &ValueFault, key: &str) -> Refusal {
        let mut message = fault.message(self.layer);
        if names_placeholder(fault, self.layer) {
            message = format!(
                "ExpressionAttributeValues contains invalid value: {message} for key {key}"
            );
        }
        self.refuse_value_as(fault, message)
    }

    fn refuse_value_as(self, fault: &ValueFault, message: String) -> Refusal {
        match is_reported_as_it_is(fault) {
            true => Refusal::validation(message),
            false => self.refuse(message),
        }
    }
}

/// Whether no voice reports it in the form of a constraint.
const fn is_reported_as_it_is(fault: &ValueFault) -> bool {
    matches!(
        fault,
        ValueFault::Empty
            | ValueFault::Several
            | ValueFault::NullFalse(FlagForm::Text)
            | ValueFault::TooDeep(Nesting::Unread)
    )
}

/// Whether the placeholder is named that stands for the value.
const fn names_placeholder(fault: &ValueFault, layer: Layer) -> bool {
    matches!(layer, Layer::Older)
        || matches!(fault, ValueFault::EmptySet(_))
        || is_reported_as_it_is(fault)
}
