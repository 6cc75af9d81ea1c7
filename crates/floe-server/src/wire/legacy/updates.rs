//! `AttributeUpdates`: the update of each attribute.

use floe_store::expr::{Path, SetOperand, Update};
use floe_store::json::{NameKind, ValueFault};
use floe_store::op::invalid;
use floe_store::{Error, Value};

use crate::wire::{Attribute, ErrorStyle, Map, RequestError, Result, Str, members};

members! {
    /// The update of an attribute.
    AttributeValueUpdate<'a> as "AttributeValueUpdate" {
        "Value" => value: Attribute,
        "Action" => action: Str<'a>,
    }
}

/// Converts `AttributeUpdates` to an update.
pub(crate) fn attribute_updates(
    updates: Map<'_, AttributeValueUpdate<'_>>,
    style: ErrorStyle,
) -> Result<Update> {
    for (name, update) in &updates.0 {
        update.check_value(name, style)?;
    }
    for (_, update) in &updates.0 {
        update.check_action(style)?;
    }
    let update = updates
        .0
        .into_iter()
        .try_fold(Update::new(), |update, (name, attribute)| {
            attribute.add_to(update, &name)
        })?;
    Ok(update)
}

impl AttributeValueUpdate<'_> {
    fn check_value(&self, name: &str, style: ErrorStyle) -> Result<()> {
        let fault = self.value.as_ref().and_then(|value| value.fault.as_ref());
        match fault {
            Some(fault) => Err(style.value_error(fault)),
            None if name.is_empty() => {
                Err(style.value_error(&ValueFault::EmptyName(NameKind::Attribute)))
            }
            None => Ok(()),
        }
    }

    fn check_action(&self, style: ErrorStyle) -> Result<()> {
        match self.action.as_deref() {
            None | Some("PUT" | "ADD" | "DELETE") => Ok(()),
            // The unbalanced quote is DynamoDB's.
            Some(_) => {
                Err(style
                    .error("Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action"))
            }
        }
    }

    fn add_to(self, update: Update, name: &str) -> floe_store::Result<Update> {
        let path = Path::attribute(name);
        let value = self.value.map(|value| value.value);
        Ok(match (self.action.as_deref(), value) {
            (Some("DELETE"), None) => update.remove(path),
            (_, None) => {
                return Err(invalid(
                    "Only DELETE action is allowed when no attribute value is specified",
                ));
            }
            (Some("DELETE"), Some(set @ (Value::Ss(_) | Value::Ns(_) | Value::Bs(_)))) => {
                update.delete(path, set)
            }
            (Some("DELETE"), Some(value)) => {
                return Err(unsupported("DELETE action with value", &value));
            }
            (Some("ADD"), Some(Value::L(list))) => {
                let before = SetOperand::if_not_exists(path.clone(), Value::L(Vec::new()));
                update.set(path, SetOperand::list_append(before, Value::L(list)))
            }
            (
                Some("ADD"),
                Some(value @ (Value::N(_) | Value::Ss(_) | Value::Ns(_) | Value::Bs(_))),
            ) => update.add(path, value),
            (Some("ADD"), Some(value)) => return Err(unsupported("ADD action", &value)),
            (_, Some(value)) => update.set(path, value),
        })
    }
}

fn unsupported(what: &str, value: &Value) -> Error {
    let value_type = value.value_type();
    invalid(format_args!(
        "{what} is not supported for the type {value_type}"
    ))
}

/// Rewords an error of an update that was sent as `AttributeUpdates`, so that it does not mention expressions.
pub(crate) fn reword_for_attribute_updates(error: Error) -> RequestError {
    const OPERAND: &str = "An operand in the update expression has an incorrect data type";
    match error {
        Error::Validation(message) if message == OPERAND => {
            RequestError::validation("Type mismatch for attribute to update")
        }
        error => error.into(),
    }
}
