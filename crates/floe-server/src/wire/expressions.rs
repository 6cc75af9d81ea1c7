//! What requests with expressions have in common: the placeholders, and the older parameters that expressions
//! have replaced and cannot be mixed with.

use std::collections::BTreeMap;

use floe_store::expr::Parser;
use floe_store::json::ValueFault;
use floe_store::limits::EXPRESSION_BYTES_MAX;
use floe_store::{Name, Value};

use super::read::{Map, Str};
use super::refusal::{Refusal, Result};
use super::value::Attribute;
use super::voice::Voice;

/// What `#name` and `:value` stand for in a request.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    names: Option<BTreeMap<String, Name>>,
    values: Option<BTreeMap<String, Value>>,
}

impl Placeholders {
    /// The `ExpressionAttributeNames` and `ExpressionAttributeValues` of a request.
    pub(crate) fn new(
        names: Option<Map<'_, Str<'_>>>,
        values: Option<Map<'_, Attribute>>,
        voice: impl Into<Voice>,
    ) -> Result<Self> {
        let names = names.map(|Map(names)| {
            let names = names.into_iter();
            let names = names.map(|(key, name)| (key.into_owned(), Name::from(&*name)));
            names.collect()
        });
        let mut first = None;
        let values = values.map(|Map(values)| {
            let values = values.into_iter().map(|(key, attribute)| {
                if let Some(fault) = attribute.fault {
                    first.get_or_insert((key.to_string(), fault));
                    return (key.into_owned(), Value::Null);
                }
                (key.into_owned(), attribute.value)
            });
            values.collect()
        });
        let placeholders = Self { names, values };
        match &first {
            None => Ok(placeholders),
            Some((key, fault)) => Err(placeholders.refuse(voice.into(), key, fault)),
        }
    }

    /// Refuses a value, unless something is wrong with the placeholders themselves, which comes first.
    #[cold]
    fn refuse(&self, voice: Voice, key: &str, fault: &ValueFault) -> Refusal {
        match self.parser().check_placeholders() {
            Err(error) => voice.refuse_error(error),
            Ok(()) => voice.refuse_placeholder(fault, key),
        }
    }

    /// A parser for the expressions of the request.
    pub(crate) fn parser(&self) -> Parser<'_> {
        Parser::new(self.names.as_ref(), self.values.as_ref())
    }
}

/// The parameters of a request that go together with expressions, and those that do not. Each is given with its name
/// and whether the request has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters<'p> {
    /// Those that expressions have replaced.
    pub(crate) replaced: &'p [(&'static str, bool)],
    /// The expressions.
    pub(crate) expressions: &'p [(&'static str, bool)],
    /// Whether there is a map of names.
    pub(crate) names: bool,
    /// Whether there is a map of values.
    pub(crate) values: bool,
}

impl Parameters<'_> {
    /// Refuses what cannot be mixed, and maps of placeholders without an expression.
    pub(crate) fn check(&self, voice: impl Into<Voice>) -> Result<()> {
        let voice = voice.into();
        if let Some(message) = mixed(self.replaced, self.expressions) {
            return Err(voice.refuse(message));
        }
        if self.expressions.iter().any(|(_, given)| *given) {
            return Ok(());
        }
        for (map, given) in [
            ("ExpressionAttributeNames", self.names),
            ("ExpressionAttributeValues", self.values),
        ] {
            if given {
                let message = format!("{map} can only be specified when using expressions");
                return Err(voice.refuse(message));
            }
        }
        Ok(())
    }
}

/// Refuses a request that has expressions and parameters which they have replaced. Each parameter is given with its
/// name and whether the request has it.
pub(crate) fn check_unmixed(
    replaced: &[(&'static str, bool)],
    expressions: &[(&'static str, bool)],
) -> Result<()> {
    match mixed(replaced, expressions) {
        Some(message) => Err(Refusal::validation(message)),
        None => Ok(()),
    }
}

/// Refuses a condition that is too long, of which alone DynamoDB reports the length.
pub(crate) fn check_condition_size(text: &str, voice: Voice) -> Result<()> {
    match text.len() {
        size if size > EXPRESSION_BYTES_MAX => Err(voice.refuse(format!(
            "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: \
             {size}"
        ))),
        _ => Ok(()),
    }
}

fn mixed(
    replaced: &[(&'static str, bool)],
    expressions: &[(&'static str, bool)],
) -> Option<String> {
    let given = |parameters: &[(&'static str, bool)]| -> Vec<&'static str> {
        let given = parameters.iter().filter(|(_, given)| *given);
        given.map(|(name, _)| *name).collect()
    };
    let (replaced, expressions) = (given(replaced), given(expressions));
    if replaced.is_empty() || expressions.is_empty() {
        return None;
    }
    Some(format!(
        "Can not use both expression and non-expression parameters in the same request: Non-expression parameters: \
         {{{}}} Expression parameters: {{{}}}",
        replaced.join(", "),
        expressions.join(", ")
    ))
}
