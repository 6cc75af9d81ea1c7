//! Updates: from parsed text to tree.

use super::value::{Node, UnresolvedValue};
use super::{Action, UnresolvedUpdate};
use crate::expr::check::{check_action, check_disjoint, check_set_types};
use crate::expr::fault::Fault;
use crate::expr::parse::placeholders::Placeholders;
use crate::expr::path::Path;
use crate::expr::update::{SetOperand, SetValue, Update};

impl UnresolvedUpdate<'_> {
    /// Builds the tree. Faults are reported in DynamoDB's order: undefined names, undefined values, clashing paths,
    /// operands of `ADD` and `DELETE`, then functions.
    pub(super) fn build(&self, placeholders: &mut Placeholders<'_>) -> Result<Update, Fault> {
        let targets = self.define(placeholders)?;
        check_disjoint(targets.iter())?;

        let mut update = Update::new();
        for ((_, action), target) in self.actions.iter().zip(&targets) {
            let (name, clause, value) = match action {
                Action::Add(value) => ("ADD", &mut update.add, value),
                Action::Delete(value) => ("DELETE", &mut update.delete, value),
                Action::Set(_) | Action::Remove => continue,
            };
            let value = placeholders.value(value)?;
            check_action(name, value)?;
            clause.push((target.clone(), value.clone()));
        }
        for ((_, action), target) in self.actions.iter().zip(targets) {
            match action {
                Action::Set(written) => {
                    let value = build_value(written, placeholders)?;
                    check_set_types(&value)?;
                    update.set.push((target, value));
                }
                Action::Remove => update.remove.push(target),
                Action::Add(_) | Action::Delete(_) => {}
            }
        }
        Ok(update)
    }

    /// Resolves the targets, after checking that all placeholders are defined: names before values.
    fn define(&self, placeholders: &mut Placeholders<'_>) -> Result<Vec<Path>, Fault> {
        let mut targets = Vec::with_capacity(self.actions.len());
        for (target, action) in &self.actions {
            targets.push(placeholders.path(target)?);
            for node in action.nodes() {
                if let Node::Path(path) = node {
                    placeholders.path(path)?;
                }
            }
        }
        for (_, action) in &self.actions {
            if let Action::Add(value) | Action::Delete(value) = action {
                placeholders.value(value)?;
            }
            for node in action.nodes() {
                if let Node::Value(value) = node {
                    placeholders.value(value)?;
                }
            }
        }
        Ok(targets)
    }
}

fn build_value(
    written: &UnresolvedValue<'_>,
    placeholders: &mut Placeholders<'_>,
) -> Result<SetValue, Fault> {
    let left = build_operand(&written.left, placeholders)?;
    Ok(match &written.operation {
        None => SetValue::Operand(left),
        Some((operator, right)) => operator(left, build_operand(right, placeholders)?),
    })
}

/// Builds the operand of a postfix form.
fn build_operand(
    nodes: &[Node<'_>],
    placeholders: &mut Placeholders<'_>,
) -> Result<SetOperand, Fault> {
    let mut operands: Vec<SetOperand> = Vec::new();
    for node in nodes {
        let operand = match node {
            Node::Path(path) => SetOperand::Path(placeholders.path(path)?),
            Node::Value(value) => SetOperand::Value(placeholders.value(value)?.clone()),
            Node::Call { function, count } => {
                if *count != 2 {
                    let (function, count) = ((*function).to_owned(), *count);
                    return Err(Fault::OperandCount { function, count });
                }
                let second = operands.pop().ok_or(Fault::Unbalanced)?;
                let first = operands.pop().ok_or(Fault::Unbalanced)?;
                match (*function, &first) {
                    ("list_append", _) => SetOperand::list_append(first, second),
                    (_, SetOperand::Path(path)) => SetOperand::if_not_exists(path.clone(), second),
                    _ => return Err(Fault::NeedsPath("if_not_exists")),
                }
            }
        };
        operands.push(operand);
    }
    operands.pop().ok_or(Fault::Unbalanced)
}
