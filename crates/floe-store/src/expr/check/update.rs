//! Rules for updates.

use super::check_operators;
use super::paths::{check_disjoint, check_path};
use crate::error::ensure;
use crate::expr::fault::Fault;
use crate::expr::update::{SetOperand, SetValue, Update};
use crate::value::{Value, ValueType};

/// Checks a whole tree.
pub(super) fn check_tree(update: &Update) -> Result<(), Fault> {
    check_operators(count_operators(update))?;
    // Most values are a literal or an attribute, which need no further checks.
    update.computed().try_for_each(check_placement)?;
    let mut paths = update.paths().chain(update.read_paths());
    paths.try_for_each(check_path)?;
    check_disjoint(update.paths())?;
    for (action, clause) in [("ADD", &update.add), ("DELETE", &update.delete)] {
        let mut values = clause.iter().map(|(_, value)| value);
        values.try_for_each(|value| check_action(action, value))?;
    }
    update.computed().try_for_each(check_set_types)
}

/// Returns the literal values of a tree.
pub(super) fn literals(update: &Update) -> impl Iterator<Item = &Value> {
    let set = update.set_operands().filter_map(|operand| match operand {
        SetOperand::Value(value) => Some(value),
        _ => None,
    });
    let others = update.add.iter().chain(&update.delete);
    set.chain(others.map(|(_, value)| value))
}

/// Returns the function calls among the operands, including nested ones. Most operands have none.
fn functions(value: &SetValue) -> impl Iterator<Item = &SetOperand> {
    let is_function = |operand: &&SetOperand| operand.is_function();
    let outer = value.operands().filter(is_function);
    outer.flat_map(SetOperand::nested).filter(is_function)
}

/// Counts the operators and functions of a tree.
fn count_operators(update: &Update) -> usize {
    let operators = update.computed().map(|value| {
        let is_sum = !matches!(value, SetValue::Operand(_));
        functions(value).count() + usize::from(is_sum)
    });
    operators.sum()
}

/// Rejects a `list_append` inside another.
fn check_placement(value: &SetValue) -> Result<(), Fault> {
    let is_append = |operand: &SetOperand| matches!(operand, SetOperand::ListAppend(..));
    let misplaced = functions(value).any(|operand| match operand {
        SetOperand::ListAppend(first, second) => is_append(first) || is_append(second),
        _ => false,
    });
    ensure(!misplaced, || {
        Fault::MisplacedFunction("list_append".to_owned())
    })
}

/// Rejects operands of `ADD` or `DELETE` that have a wrong type.
pub(in crate::expr) fn check_action(action: &'static str, value: &Value) -> Result<(), Fault> {
    let operand = match value {
        Value::Ss(_) | Value::Ns(_) | Value::Bs(_) => return Ok(()),
        Value::N(_) if action == "ADD" => return Ok(()),
        Value::N(_) => "NUMBER",
        Value::S(_) => "STRING",
        Value::B(_) => "Binary",
        Value::Bool(_) => "BOOL",
        Value::Null => "NULL",
        Value::L(_) => "LIST",
        Value::M(_) => "MAP",
    };
    Err(Fault::ActionOperandType { action, operand })
}

/// Rejects operands of sums and of `list_append` whose static type is wrong.
pub(in crate::expr) fn check_set_types(value: &SetValue) -> Result<(), Fault> {
    for operand in functions(value) {
        if let SetOperand::ListAppend(first, second) = operand {
            check_type("list_append", first, ValueType::L)?;
            check_type("list_append", second, ValueType::L)?;
        }
    }
    let (operator, left, right) = match value {
        SetValue::Operand(_) => return Ok(()),
        SetValue::Sum(left, right) => ("+", left, right),
        SetValue::Difference(left, right) => ("-", left, right),
    };
    check_type(operator, left, ValueType::N)?;
    check_type(operator, right, ValueType::N)
}

fn check_type(
    operator: &'static str,
    operand: &SetOperand,
    wanted: ValueType,
) -> Result<(), Fault> {
    let known = match operand {
        SetOperand::Value(value) => value.value_type(),
        SetOperand::ListAppend(..) => ValueType::L,
        SetOperand::Path(_) | SetOperand::IfNotExists(..) => return Ok(()),
    };
    ensure(known == wanted, || Fault::operand_type(operator, known))
}
