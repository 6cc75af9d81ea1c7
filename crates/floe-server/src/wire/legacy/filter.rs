//! `KeyConditions`, `QueryFilter` and `ScanFilter`: conditions on attributes by name, joined by AND or OR.

use floe_store::Name;
use floe_store::expr::{Condition, KeyCondition, KeyOp};
use floe_store::json::ValidationLayer;
use floe_store::op::Faults;

use super::comparison::{Comparison, Operator};
use super::{LogicalOperator, values};
use crate::wire::{Attribute, ErrorStyle, Map, RequestError, Result, Str, members};

members! {
    /// A condition on an attribute.
    Filter<'a> as "Condition" {
        "ComparisonOperator" => operator: Str<'a>,
        "AttributeValueList" => values: Vec<Attribute>,
    }
}

/// Conditions by attribute name.
pub(crate) type Filters<'a> = Map<'a, Filter<'a>>;

/// Returns the values of all conditions, including invalid ones.
pub(crate) fn filter_values<'r>(filters: &'r Filters<'_>) -> impl Iterator<Item = &'r Attribute> {
    let filters = filters.0.iter();
    filters.flat_map(|(_, filter)| filter.values.iter().flatten())
}

/// Whether a condition lacks an operator.
pub(crate) fn lacks_operator(filters: &Filters<'_>) -> bool {
    let mut filters = filters.0.iter();
    filters.any(|(_, filter)| filter.operator.is_none())
}

/// Records faults of missing or unknown operators in a member.
pub(crate) fn operator_faults(faults: &mut Faults, member: &str, filters: &Filters<'_>) {
    for (name, filter) in &filters.0 {
        let path = format_args!("{member}.{name}.member.comparisonOperator");
        match &filter.operator {
            None => faults.add_null(path),
            Some(operator) => faults.one_of(operator, path, &Operator::names()),
        }
    }
}

/// Converts conditions to a filter. Values are checked before operators.
pub(crate) fn filter(
    filters: Option<Filters<'_>>,
    conditional_operator: Option<&str>,
    layer: ValidationLayer,
) -> Result<Option<Condition>> {
    let count = filters.as_ref().map_or(0, |filters| filters.0.len());
    let join =
        LogicalOperator::of(conditional_operator, count).map_err(RequestError::validation)?;
    let Some(filters) = filters else {
        return Ok(None);
    };
    let conditions = comparisons(filters, layer)?
        .into_iter()
        .map(|(name, comparison)| comparison.on(&name));
    Ok(join.all(conditions))
}

/// Converts conditions to a key condition.
pub(crate) fn key_condition(filters: Filters<'_>, layer: ValidationLayer) -> Result<KeyCondition> {
    let terms = comparisons(filters, layer)?
        .into_iter()
        .map(|(name, comparison)| Ok((Name::from(&*name), key_op(comparison)?)));
    Ok(KeyCondition {
        terms: terms.collect::<Result<_>>()?,
    })
}

fn comparisons<'a>(
    filters: Filters<'a>,
    layer: ValidationLayer,
) -> Result<Vec<(Str<'a>, Comparison)>> {
    if let Some(fault) = filter_values(&filters).find_map(|value| value.fault.as_ref()) {
        return Err(ErrorStyle::from(layer).value_error(fault));
    }
    let comparison = |(name, filter): (Str<'a>, Filter<'a>)| {
        let values = values(None, filter.values).unwrap_or_default();
        let operator = filter.operator.unwrap_or_default();
        Ok((name, Comparison::new(&operator, values)?))
    };
    filters.0.into_iter().map(comparison).collect()
}

/// Converts a comparison to a condition on a key attribute.
fn key_op(comparison: Comparison) -> Result<KeyOp> {
    let mut values = comparison.values.into_iter();
    Ok(match (comparison.operator, values.next(), values.next()) {
        (Operator::Eq, Some(value), _) => KeyOp::Eq(value),
        (Operator::Lt, Some(value), _) => KeyOp::Lt(value),
        (Operator::Le, Some(value), _) => KeyOp::Le(value),
        (Operator::Gt, Some(value), _) => KeyOp::Gt(value),
        (Operator::Ge, Some(value), _) => KeyOp::Ge(value),
        (Operator::BeginsWith, Some(value), _) => KeyOp::BeginsWith(value),
        (Operator::Between, Some(low), Some(high)) => KeyOp::Between(low, high),
        _ => {
            return Err(RequestError::validation(
                "Attempted conditional constraint is not an indexable operation",
            ));
        }
    })
}
