//! `AttributeUpdates`: what to do to each attribute.

use floe_store::expr::{Path, SetOperand, Update};
use floe_store::json::{Named, ValueFault};
use floe_store::op::invalid;
use floe_store::{Error, Value};

use crate::wire::{Attribute, Map, Refusal, Result, Str, Voice, members};

members! {
    /// What to do to an attribute.
    AttributeValueUpdate<'a> as "AttributeValueUpdate" {
        "Value" => value: Attribute,
        "Action" => action: Str<'a>,
    }
}

/// `AttributeUpdates`, as an update.
pub(crate) fn attribute_updates(
    updates: Map<'_, AttributeValueUpdate<'_>>,
    voice: Voice,
) -> Result<Update> {
    for (name, update) in &updates.0 {
        update.check_value(name, voice)?;
    }
    for (_, update) in &updates.0 {
        update.check_action(voice)?;
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
    fn check_value(&self, name: &str, voice: Voice) -> Result<()> {
        let fault = self.value.as_ref().and_then(|value| value.fault.as_ref());
        match fault {
            Some(fault) => Err(voice.refuse_value(fault)),
            None if name.is_empty() => {
                Err(voice.refuse_value(&ValueFault::EmptyName(Named::Attribute)))
            }
            None => Ok(()),
        }
    }

    fn check_action(&self, voice: Voice) -> Result<()> {
        match self.action.as_deref() {
            None | Some("PUT" | "ADD" | "DELETE") => Ok(()),
            // The quote is DynamoDB's.
            Some(_) => {
                Err(voice
                    .refuse("Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action"))
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

/// An error of an update that came as `AttributeUpdates`, which does not speak of expressions.
pub(crate) fn without_expressions(error: Error) -> Refusal {
    const OPERAND: &str = "An operand in the update expression has an incorrect data type";
    match error {
        Error::Validation(message) if message == OPERAND => {
            Refusal::validation("Type mismatch for attribute to update")
        }
        error => error.into(),
    }
}
