//! Common parts of requests with expressions: placeholders, and checks against mixing expressions with the legacy
//! parameters that they replace.

use std::collections::BTreeMap;

use floe_store::expr::Parser;
use floe_store::json::ValueFault;
use floe_store::limits::EXPRESSION_BYTES_MAX;
use floe_store::{Name, Value};

use super::error_style::ErrorStyle;
use super::read::{Map, Str};
use super::request_error::{RequestError, Result};
use super::value::Attribute;

/// The names and values behind `#name` and `:value` in a request.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    names: Option<BTreeMap<String, Name>>,
    values: Option<BTreeMap<String, Value>>,
}

impl Placeholders {
    /// Takes the `ExpressionAttributeNames` and `ExpressionAttributeValues` of a request.
    pub(crate) fn new(
        names: Option<Map<'_, Str<'_>>>,
        values: Option<Map<'_, Attribute>>,
        style: impl Into<ErrorStyle>,
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
            Some((key, fault)) => Err(placeholders.value_error(style.into(), key, fault)),
        }
    }

    /// Rejects an invalid value. Invalid placeholders are reported first.
    #[cold]
    fn value_error(&self, style: ErrorStyle, key: &str, fault: &ValueFault) -> RequestError {
        match self.parser().check_placeholders() {
            Err(error) => style.wrap(error),
            Ok(()) => style.placeholder_error(fault, key),
        }
    }

    /// Returns a parser for the expressions of the request.
    pub(crate) fn parser(&self) -> Parser<'_> {
        Parser::new(self.names.as_ref(), self.values.as_ref())
    }
}

/// The expressions of a request and the parameters that cannot be combined with them: name, and whether the request has
/// it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters<'p> {
    /// Legacy parameters that expressions replace.
    pub(crate) replaced: &'p [(&'static str, bool)],
    /// The expressions.
    pub(crate) expressions: &'p [(&'static str, bool)],
    /// Whether the request has `ExpressionAttributeNames`.
    pub(crate) names: bool,
    /// Whether the request has `ExpressionAttributeValues`.
    pub(crate) values: bool,
}

impl Parameters<'_> {
    /// Rejects forbidden combinations, and placeholders without an expression.
    pub(crate) fn check(&self, style: impl Into<ErrorStyle>) -> Result<()> {
        let style = style.into();
        if let Some(message) = mixed(self.replaced, self.expressions) {
            return Err(style.error(message));
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
                return Err(style.error(message));
            }
        }
        Ok(())
    }
}

/// Rejects a request that combines expressions with legacy parameters. Each parameter is given with its name and
/// whether the request has it.
pub(crate) fn check_unmixed(
    replaced: &[(&'static str, bool)],
    expressions: &[(&'static str, bool)],
) -> Result<()> {
    match mixed(replaced, expressions) {
        Some(message) => Err(RequestError::validation(message)),
        None => Ok(()),
    }
}

/// Rejects a condition that is too long. It is the only expression whose length DynamoDB reports.
pub(crate) fn check_condition_size(text: &str, style: ErrorStyle) -> Result<()> {
    match text.len() {
        size if size > EXPRESSION_BYTES_MAX => Err(style.error(format!(
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
