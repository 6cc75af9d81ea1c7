//! Key conditions: conditions with many restrictions.

use super::grammar::{Node, read};
use super::placeholders::Placeholders;
use crate::error::ensure;
use crate::expr::condition::{Comparator, Condition, Operand};
use crate::expr::fault::Fault;
use crate::expr::key::{KeyCondition, KeyOp};
use crate::expr::path::Path;
use crate::text::Name;
use crate::value::Value;

/// Parses a key condition.
pub(super) fn parse(
    text: &str,
    placeholders: &mut Placeholders<'_>,
) -> Result<KeyCondition, Fault> {
    let nodes = read(text)?;
    let condition = super::condition::build(&nodes, placeholders)?;
    let key_condition = from_condition(&condition)?;
    // In the tree the size of a literal is a literal, but in the text it was an operation.
    let is_size =
        |node: &Node<'_>| matches!(node, Node::Call { function, .. } if *function == "size");
    ensure(!nodes.iter().any(is_size), || Fault::KeyNesting)?;
    Ok(key_condition)
}

/// Returns the terms of a conjunction of conditions on key attributes.
fn from_condition(condition: &Condition) -> Result<KeyCondition, Fault> {
    let mut terms: Vec<(Name, KeyOp)> = Vec::new();
    let mut pending = vec![condition];
    while let Some(node) = pending.pop() {
        if let Condition::And(left, right) = node {
            pending.push(right);
            pending.push(left);
            continue;
        }
        let (name, op) = term(node)?;
        let distinct = terms.iter().all(|(other, _)| *other != name);
        ensure(distinct, || Fault::KeyConditionTwice)?;
        terms.push((name, op));
    }
    Ok(KeyCondition { terms })
}

/// Converts one condition on a key attribute.
fn term(condition: &Condition) -> Result<(Name, KeyOp), Fault> {
    let operator = match condition {
        Condition::Or(..) => "OR",
        Condition::Not(_) => "NOT",
        Condition::In(..) => "IN",
        Condition::Compare(_, Comparator::Ne, _) => "<>",
        Condition::AttributeExists(_) => "attribute_exists",
        Condition::AttributeNotExists(_) => "attribute_not_exists",
        Condition::AttributeType(..) => "attribute_type",
        Condition::Contains(..) => "contains",
        Condition::Compare(left, comparator, right) => return comparison(left, *comparator, right),
        Condition::Between(operand, low, high) => {
            let name = first_name("BETWEEN", operand)?;
            let bounds = KeyOp::Between(literal(low)?, literal(high)?);
            return Ok((name, bounds));
        }
        Condition::BeginsWith(operand, prefix) => {
            let name = first_name("begins_with", operand)?;
            return Ok((name, KeyOp::BeginsWith(literal(prefix)?)));
        }
        // Unreachable: conjunctions were split before.
        Condition::And(..) => "AND",
    };
    Err(Fault::KeyOperator(operator))
}

/// Converts a comparison, mirroring it if the attribute is on the right.
fn comparison(
    left: &Operand,
    comparator: Comparator,
    right: &Operand,
) -> Result<(Name, KeyOp), Fault> {
    let (path, comparator, operand) = match (left, right) {
        (Operand::Size(_), _) | (_, Operand::Size(_)) => return Err(Fault::KeyNesting),
        (Operand::Value(_), Operand::Value(_)) => return Err(Fault::KeyMissing),
        (Operand::Path(path), operand) => (path, comparator, operand),
        (operand, Operand::Path(path)) => (path, mirrored(comparator), operand),
    };
    let name = key_name(path)?;
    let value = literal(operand)?;
    let op = match comparator {
        Comparator::Eq => KeyOp::Eq(value),
        Comparator::Lt => KeyOp::Lt(value),
        Comparator::Le => KeyOp::Le(value),
        Comparator::Gt => KeyOp::Gt(value),
        Comparator::Ge => KeyOp::Ge(value),
        Comparator::Ne => return Err(Fault::KeyOperator("<>")),
    };
    Ok((name, op))
}

const fn mirrored(comparator: Comparator) -> Comparator {
    match comparator {
        Comparator::Lt => Comparator::Gt,
        Comparator::Le => Comparator::Ge,
        Comparator::Gt => Comparator::Lt,
        Comparator::Ge => Comparator::Le,
        Comparator::Eq | Comparator::Ne => comparator,
    }
}

/// Returns the attribute, which must be the first operand of the operator.
fn first_name(operator: &'static str, operand: &Operand) -> Result<Name, Fault> {
    match operand {
        Operand::Path(path) => key_name(path),
        Operand::Size(_) => Err(Fault::KeyNesting),
        Operand::Value(_) => Err(Fault::KeyNotFirst(operator)),
    }
}

fn key_name(path: &Path) -> Result<Name, Fault> {
    ensure(path.rest().is_empty(), || Fault::KeyPath)?;
    Ok(path.root().clone())
}

/// Returns the value of the other operand.
fn literal(operand: &Operand) -> Result<Value, Fault> {
    match operand {
        Operand::Value(value) => Ok(value.clone()),
        Operand::Path(_) => Err(Fault::KeyNameTwice),
        Operand::Size(_) => Err(Fault::KeyNesting),
    }
}
