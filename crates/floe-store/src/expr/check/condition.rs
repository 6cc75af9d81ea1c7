//! Rules for conditions and filters.

use super::check_operators;
use super::paths::check_path;
use crate::error::{ensure, ensure_none};
use crate::expr::condition::{Comparator, Condition, Operand};
use crate::expr::fault::Fault;
use crate::limits;
use crate::value::{Value, ValueType};

/// Checks a whole tree, in the order of its text.
pub(super) fn check_tree(condition: &Condition) -> Result<(), Fault> {
    check_operators(count_operators(condition))?;
    condition.leaves().try_for_each(check_leaf)
}

/// Returns the literal values of a tree.
pub(super) fn literals(condition: &Condition) -> impl Iterator<Item = &Value> {
    condition
        .leaves()
        .flat_map(Condition::operands)
        .filter_map(|operand| match operand {
            Operand::Value(value) => Some(value),
            Operand::Path(_) | Operand::Size(_) => None,
        })
}

/// Counts operators and functions, stopping when there are too many.
fn count_operators(condition: &Condition) -> usize {
    let is_size = |operand: &&Operand| matches!(operand, Operand::Size(_));
    let operators = |node: &Condition| 1 + node.operands().filter(is_size).count();
    let nodes = condition.nodes().take(limits::EXPRESSION_OPERATORS_MAX + 1);
    nodes.map(operators).sum()
}

/// Checks one comparison or function. The logical operators have no rules.
pub(in crate::expr) fn check_leaf(leaf: &Condition) -> Result<(), Fault> {
    let mut paths = leaf.operands().filter_map(Operand::path);
    paths.try_for_each(check_path)?;
    match leaf {
        Condition::AttributeExists(path) | Condition::AttributeNotExists(path) => check_path(path),
        Condition::Compare(left, comparator, right) => {
            check_distinct(comparator.as_str(), left, std::slice::from_ref(right))?;
            match comparator {
                Comparator::Eq | Comparator::Ne => Ok(()),
                _ => check_types(leaf, comparator.as_str(), is_ordered),
            }
        }
        Condition::Between(operand, low, high) => {
            check_distinct("BETWEEN", operand, [low, high])?;
            check_types(leaf, "BETWEEN", is_ordered)?;
            check_bounds(low, high)
        }
        Condition::In(operand, choices) => check_choices(operand, choices),
        Condition::BeginsWith(operand, prefix) => {
            check_distinct("begins_with", operand, [prefix])?;
            check_types(leaf, "begins_with", |known| {
                matches!(known, ValueType::S | ValueType::B)
            })
        }
        Condition::Contains(operand, element) => check_distinct("contains", operand, [element]),
        Condition::AttributeType(..)
        | Condition::And(..)
        | Condition::Or(..)
        | Condition::Not(_) => Ok(()),
    }
}

/// Rejects a path that is compared with itself.
pub(in crate::expr) fn check_distinct<'a>(
    operator: &'static str,
    first: &Operand,
    rest: impl IntoIterator<Item = &'a Operand>,
) -> Result<(), Fault> {
    if let Operand::Path(path) = first
        && rest.into_iter().any(|other| other == first)
    {
        let path = path.clone();
        return Err(Fault::NotDistinct { operator, path });
    }
    Ok(())
}

/// Rejects operands whose static type does not match the operator.
fn check_types(
    leaf: &Condition,
    operator: &'static str,
    suits: impl Fn(ValueType) -> bool,
) -> Result<(), Fault> {
    let mut known = leaf.operands().filter_map(Operand::known_type);
    let unfit = known.find(|&known| !suits(known));
    ensure_none(unfit, |unfit| Fault::operand_type(operator, unfit))
}

const fn is_ordered(value_type: ValueType) -> bool {
    matches!(value_type, ValueType::S | ValueType::N | ValueType::B)
}

/// Rejects literal bounds of an empty range.
fn check_bounds(low: &Operand, high: &Operand) -> Result<(), Fault> {
    match (low, high) {
        (Operand::Value(low), Operand::Value(high)) => check_bound_values(low, high),
        _ => Ok(()),
    }
}

/// Rejects bounds of different types or in the wrong order.
pub(in crate::expr) fn check_bound_values(low: &Value, high: &Value) -> Result<(), Fault> {
    let fault = if low.value_type() != high.value_type() {
        Fault::BoundTypes
    } else if low.compare(high).is_some_and(std::cmp::Ordering::is_gt) {
        Fault::BoundOrder
    } else {
        return Ok(());
    };
    Err(fault(Box::new(low.clone()), Box::new(high.clone())))
}

fn check_choices(operand: &Operand, choices: &[Operand]) -> Result<(), Fault> {
    // The fault that parsing such an expression would report.
    ensure(!choices.is_empty(), || Fault::Syntax {
        token: ")".to_owned(),
        near: "()".to_owned(),
    })?;
    let count = choices.len();
    ensure(count <= limits::IN_OPERANDS_MAX, || {
        Fault::TooManyChoices(count)
    })?;
    check_distinct("IN", operand, choices)
}
