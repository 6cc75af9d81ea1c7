//! Rules for literal values, which are the same in all kinds of expressions.

use crate::error::{Error, Result, ensure};
use crate::limits::LITERAL_LEVELS_MAX;
use crate::value::Value;

/// DynamoDB's message for values that are nested too deep.
pub(in crate::expr) const NESTING: &str = "Nesting Levels have exceeded supported limits: \
     Attributes in the item have nested levels beyond supported limit";

/// Rejects literal values with an empty name in a map. DynamoDB checks this before it parses the expression.
pub(in crate::expr) fn check_names<'a>(
    mut literals: impl Iterator<Item = &'a Value>,
) -> Result<()> {
    let has_empty = literals.any(|value| has_empty_name(value, LITERAL_LEVELS_MAX));
    ensure(!has_empty, || Error::validation("Empty attribute name"))
}

/// Rejects literal values that are nested too deep.
pub(in crate::expr) fn check_nesting<'a>(
    mut literals: impl Iterator<Item = &'a Value>,
) -> Result<()> {
    ensure(!literals.any(is_too_deep), || Error::validation(NESTING))
}

/// Whether a value exceeds the nesting allowed in expressions.
pub(in crate::expr) fn is_too_deep(value: &Value) -> bool {
    value.depth() > LITERAL_LEVELS_MAX
}

/// Whether a map in the value has an empty name, checking only this many levels.
fn has_empty_name(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::M(map), Some(levels)) => map
            .iter()
            .any(|(name, value)| name.is_empty() || has_empty_name(value, levels)),
        (Value::L(list), Some(levels)) => list.iter().any(|value| has_empty_name(value, levels)),
        _ => false,
    }
}
