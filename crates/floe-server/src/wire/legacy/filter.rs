//! `KeyConditions`, `QueryFilter` and `ScanFilter`: conditions on attributes by name, which all hold or of which
//! one holds.

use floe_store::Name;
use floe_store::expr::{Condition, KeyCondition, KeyOp};
use floe_store::json::Layer;
use floe_store::op::Faults;

use super::comparison::{Comparison, Operator};
use super::{Join, values};
use crate::wire::{Attribute, Map, Refusal, Result, Str, Voice, members};

members! {
    /// What must hold of an attribute.
    Filter<'a> as "Condition" {
        "ComparisonOperator" => operator: Str<'a>,
        "AttributeValueList" => values: Vec<Attribute>,
    }
}

/// What must hold of attributes.
pub(crate) type Filters<'a> = Map<'a, Filter<'a>>;

/// The values of conditions, sound or not.
pub(crate) fn filter_values<'r>(filters: &'r Filters<'_>) -> impl Iterator<Item = &'r Attribute> {
    let filters = filters.0.iter();
    filters.flat_map(|(_, filter)| filter.values.iter().flatten())
}

/// Whether a condition has no operator.
pub(crate) fn lacks_operator(filters: &Filters<'_>) -> bool {
    let mut filters = filters.0.iter();
    filters.any(|(_, filter)| filter.operator.is_none())
}

/// The faults of operators that are missing or of which there is none, of the member of this name.
pub(crate) fn operator_faults(faults: &mut Faults, member: &str, filters: &Filters<'_>) {
    for (name, filter) in &filters.0 {
        let path = format_args!("{member}.{name}.member.comparisonOperator");
        match &filter.operator {
            None => faults.add_null(path),
            Some(operator) => faults.one_of(operator, path, &Operator::names()),
        }
    }
}

/// The filter that conditions make: first their values are checked, then what these are compared by.
pub(crate) fn filter(
    filters: Option<Filters<'_>>,
    conditional_operator: Option<&str>,
    layer: Layer,
) -> Result<Option<Condition>> {
    let count = filters.as_ref().map_or(0, |filters| filters.0.len());
    let join = Join::of(conditional_operator, count).map_err(Refusal::validation)?;
    let Some(filters) = filters else {
        return Ok(None);
    };
    let conditions = comparisons(filters, layer)?
        .into_iter()
        .map(|(name, comparison)| comparison.on(&name));
    Ok(join.all(conditions))
}

/// The key condition that conditions make.
pub(crate) fn key_condition(filters: Filters<'_>, layer: Layer) -> Result<KeyCondition> {
    let terms = comparisons(filters, layer)?
        .into_iter()
        .map(|(name, comparison)| Ok((Name::from(&*name), key_op(comparison)?)));
    Ok(KeyCondition {
        terms: terms.collect::<Result<_>>()?,
    })
}

fn comparisons<'a>(filters: Filters<'a>, layer: Layer) -> Result<Vec<(Str<'a>, Comparison)>> {
    if let Some(fault) = filter_values(&filters).find_map(|value| value.fault.as_ref()) {
        return Err(Voice::from(layer).refuse_value(fault));
    }
    let comparison = |(name, filter): (Str<'a>, Filter<'a>)| {
        let values = values(None, filter.values).unwrap_or_default();
        let operator = filter.operator.unwrap_or_default();
        Ok((name, Comparison::new(&operator, values)?))
    };
    filters.0.into_iter().map(comparison).collect()
}

/// What is asked of a key attribute.
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
            return Err(Refusal::validation(
                "Attempted conditional constraint is not an indexable operation",
            ));
        }
    })
}
