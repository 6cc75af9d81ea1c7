//! Legacy parameters, converted to the expressions that replace them.
//!
//! `Expected` and the filters are conditions on attributes, joined by AND or OR (`ConditionalOperator`).
//! `AttributeUpdates` is an update with one action for each attribute.

mod comparison;
pub(crate) mod filter;
mod updates;

pub(crate) use comparison::Comparison;
pub(crate) use updates::{AttributeValueUpdate, attribute_updates, reword_for_attribute_updates};

use floe_store::Value;
use floe_store::expr::{Condition, Path, Paths};
use floe_store::json::{NameKind, ValueFault};
use floe_store::limits::ATTRIBUTE_NAME_BYTES_MAX;
use floe_store::op::{Faults, invalid};

use super::error_style::ErrorStyle;
use super::read::{Map, Str, members};
use super::request_error::{RequestError, Result};
use super::value::Attribute;

/// Records the fault of an `AttributesToGet` with too few or too many names.
pub(crate) fn attributes_to_get_faults(faults: &mut Faults, names: Option<&[Str<'_>]>) {
    const NAMES: std::ops::RangeInclusive<usize> = 1..=255;
    if let Some(names) = names
        && !NAMES.contains(&names.len())
    {
        let constraint = if names.is_empty() {
            "Member must have length greater than or equal to 1"
        } else {
            "Member must have length less than or equal to 255"
        };
        let shown = format_args!("[{}]", names.join(", "));
        faults.add(shown, "attributesToGet", constraint);
    }
}

/// Converts `AttributesToGet`: attribute names without duplicates.
pub(crate) fn attributes_to_get(names: &[Str<'_>]) -> Result<Paths> {
    if names.iter().any(|name| name.is_empty()) {
        return Err(RequestError::validation("Empty attribute name"));
    }
    let is_too_long = |name: &Str<'_>| name.len() > ATTRIBUTE_NAME_BYTES_MAX;
    if names.iter().any(is_too_long) {
        return Err(RequestError::from(invalid(
            "Attribute name is too large, must be less than 65536 bytes",
        )));
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(repeated) = names.iter().find(|name| !seen.insert(&***name)) {
        return Err(RequestError::validation(format!(
            "One or more parameter values were invalid: Duplicate value in attribute name: {repeated}"
        )));
    }
    Ok(Paths(
        names.iter().map(|name| Path::attribute(&**name)).collect(),
    ))
}

members! {
    /// The expected state of an attribute.
    ExpectedAttributeValue<'a> as "ExpectedAttributeValue" {
        "Value" => value: Attribute,
        "Exists" => exists: Flag,
        "ComparisonOperator" => comparison_operator: Str<'a>,
        "AttributeValueList" => attribute_value_list: Vec<Attribute>,
    }
}

/// A boolean that may also be sent as text, which only the older validation layer accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag(pub(crate) bool);

impl<'a> super::read::Read<'a> for Flag {
    const CLASS: &'static str = bool::CLASS;

    fn read(
        reader: &mut floe_store::json::Reader<'a>,
        context: super::read::ValueContext,
    ) -> Result<Self> {
        reader.needs_older_layer |= reader.peek()? == floe_store::json::Token::String;
        bool::read(reader, context).map(Self)
    }
}

/// How conditions are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogicalOperator {
    And,
    Or,
}

impl LogicalOperator {
    /// Parses `ConditionalOperator` for this number of conditions.
    pub(crate) fn of(
        operator: Option<&str>,
        conditions: usize,
    ) -> std::result::Result<Self, &'static str> {
        match (operator, conditions) {
            (None, _) => Ok(Self::And),
            (Some(_), 0) => Err("ConditionalOperator cannot be used without Filter or Expected"),
            (Some(_), 1) => Err(
                "ConditionalOperator can only be used when Filter or Expected has two or more elements",
            ),
            (Some("AND"), _) => Ok(Self::And),
            (Some("OR"), _) => Ok(Self::Or),
            (Some(_), _) => {
                Err("Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]")
            }
        }
    }

    /// Joins conditions; `None` if there are none.
    pub(crate) fn all(self, conditions: impl IntoIterator<Item = Condition>) -> Option<Condition> {
        conditions.into_iter().reduce(match self {
            Self::And => Condition::and,
            Self::Or => Condition::or,
        })
    }
}

/// Converts `Expected` and `ConditionalOperator` to a condition.
pub(crate) fn expected(
    expected: Option<Map<'_, ExpectedAttributeValue<'_>>>,
    operator: Option<&str>,
    style: ErrorStyle,
) -> Result<Option<Condition>> {
    let expected = expected.map(|expected| expected.0).unwrap_or_default();
    let join =
        LogicalOperator::of(operator, expected.len()).map_err(|message| style.error(message))?;
    for (name, condition) in &expected {
        condition.check_values(name, style)?;
    }
    let conditions = expected.into_iter();
    let conditions = conditions.map(|(name, condition)| condition.on(&name));
    let conditions: floe_store::Result<Vec<_>> = conditions.collect();
    let conditions = conditions.map_err(|error| style.wrap(error))?;
    Ok(join.all(conditions))
}

impl ExpectedAttributeValue<'_> {
    fn check_values(&self, name: &str, style: ErrorStyle) -> Result<()> {
        if name.is_empty() {
            return Err(style.value_error(&ValueFault::EmptyName(NameKind::Attribute)));
        }
        let list = self.attribute_value_list.iter().flatten();
        let mut values = self.value.iter().chain(list);
        match values.find_map(|value| value.fault.as_ref()) {
            None => Ok(()),
            Some(fault) => Err(style.value_error(fault)),
        }
    }

    fn on(self, name: &str) -> floe_store::Result<Condition> {
        let wrong = |message: &str| invalid(format_args!("{message} for Attribute: {name}"));
        let exists = self.exists.map(|Flag(exists)| exists);
        let path = || Path::attribute(name);
        let (value, list) = (self.value, self.attribute_value_list);
        match (self.comparison_operator, value, list) {
            (Some(_), ..) if exists.is_some() => Err(wrong(
                "Exists and ComparisonOperator cannot be used together",
            )),
            (_, Some(_), Some(_)) => Err(wrong(
                "Value and AttributeValueList cannot be used together",
            )),
            (Some(operator), value, list) => {
                let values = values(value, list);
                Ok(Comparison::expected(&operator, values, name)?.on(name))
            }
            (None, _, Some(_)) => Err(wrong(
                "AttributeValueList can only be used with a ComparisonOperator",
            )),
            (None, Some(_), None) if exists == Some(false) => {
                Err(wrong("Value cannot be used when Exists is false"))
            }
            (None, Some(value), None) => Ok(Condition::eq(path(), value.value)),
            (None, None, None) => match exists {
                Some(false) => Ok(Condition::attribute_not_exists(path())),
                Some(true) => Err(wrong("Value must be provided when Exists is true")),
                None => Err(wrong("Value must be provided when Exists is null")),
            },
        }
    }
}

/// Returns the values to compare with; `None` if neither parameter is present.
fn values(value: Option<Attribute>, list: Option<Vec<Attribute>>) -> Option<Vec<Value>> {
    let values = list.or_else(|| value.map(|value| vec![value]))?;
    Some(values.into_iter().map(|value| value.value).collect())
}
