//! The rules of literal values, which are the same in every kind of expression.

use crate::error::{Error, Result, ensure};
use crate::limits::LITERAL_LEVELS_MAX;
use crate::value::Value;

/// What DynamoDB says of a value that is nested too deep.
pub(in crate::expr) const NESTING: &str = "Nesting Levels have exceeded supported limits: \
     Attributes in the item have nested levels beyond supported limit";

/// Refuses literal values with a map inside that has an empty name. DynamoDB looks for them before it
/// reads the expression itself.
pub(in crate::expr) fn check_names<'a>(
    mut literals: impl Iterator<Item = &'a Value>,
) -> Result<()> {
    let has_empty = literals.any(|value| has_empty_name(value, LITERAL_LEVELS_MAX));
    ensure(!has_empty, || Error::validation("Empty attribute name"))
}

/// Refuses literal values that are nested too deep.
pub(in crate::expr) fn check_nesting<'a>(
    mut literals: impl Iterator<Item = &'a Value>,
) -> Result<()> {
    ensure(!literals.any(is_too_deep), || Error::validation(NESTING))
}

/// Whether a value is nested deeper than values of expressions may be.
pub(in crate::expr) fn is_too_deep(value: &Value) -> bool {
    value.depth() > LITERAL_LEVELS_MAX
}

/// Whether a map in the value has an empty name. It looks no deeper than so many levels.
fn has_empty_name(value: &Value, levels: usize) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::M(map), Some(levels)) => map
            .iter()
            .any(|(name, value)| name.is_empty() || has_empty_name(value, levels)),
        (Value::L(list), Some(levels)) => list.iter().any(|value| has_empty_name(value, levels)),
        _ => false,
    }
}
