//! Conditions and filters: from postfix form to tree.

use super::grammar::{Node, read};
use super::placeholders::{Placeholders, check_words};
use crate::error::ensure;
use crate::expr::check::{check_distinct, check_leaf, check_operators};
use crate::expr::condition::{Condition, Operand};
use crate::expr::eval::size;
use crate::expr::fault::Fault;
use crate::expr::path::Path;
use crate::value::{Value, ValueType};

/// Parses a condition.
pub(super) fn parse(text: &str, placeholders: &mut Placeholders<'_>) -> Result<Condition, Fault> {
    build(&read(text)?, placeholders)
}

/// Builds the tree of a postfix form.
pub(super) fn build(
    nodes: &[Node<'_>],
    placeholders: &mut Placeholders<'_>,
) -> Result<Condition, Fault> {
    check_text(nodes)?;
    let mut builder = Builder {
        placeholders,
        operands: Vec::new(),
        conditions: Vec::new(),
    };
    nodes.iter().try_for_each(|node| builder.apply(node))?;
    builder.condition()
}

/// Reports faults that depend neither on placeholders nor on types: each kind in the whole expression before the next
/// kind.
fn check_text(nodes: &[Node<'_>]) -> Result<(), Fault> {
    nodes.iter().try_for_each(|node| match node {
        Node::Call { function, .. } => check_function(function),
        _ => Ok(()),
    })?;
    let is_operand = |node: &&Node<'_>| matches!(node, Node::Path(_) | Node::Value(_));
    let operands = nodes.iter().filter(is_operand).count();
    check_operators(nodes.len() - operands)?;
    check_placement(nodes)?;
    nodes.iter().try_for_each(|node| match node {
        Node::Path(path) => check_words(path),
        _ => Ok(()),
    })
}

fn check_function(function: &str) -> Result<(), Fault> {
    match function {
        "attribute_exists"
        | "attribute_not_exists"
        | "attribute_type"
        | "begins_with"
        | "contains"
        | "size" => Ok(()),
        "if_not_exists" | "list_append" => Err(Fault::FunctionOutsideUpdate(function.to_owned())),
        _ => Err(Fault::UnknownFunction(function.to_owned())),
    }
}

/// Rejects operand functions (`size`) in the place of a condition, and conditions in the place of an operand.
fn check_placement(nodes: &[Node<'_>]) -> Result<(), Fault> {
    // For each term on the stack: the function, if it is a call.
    let mut terms: Vec<Option<&str>> = Vec::new();
    for node in nodes {
        let (count, of_operands, term) = match *node {
            Node::Path(_) | Node::Value(_) => (0, true, None),
            Node::Call { function, count } => (count, true, Some(function)),
            Node::Compare(_) => (2, true, None),
            Node::Between => (3, true, None),
            Node::In { count } => (1 + count, true, None),
            Node::Not => (1, false, None),
            Node::And | Node::Or => (2, false, None),
        };
        let first = terms.len().saturating_sub(count);
        for function in terms.drain(first..).flatten() {
            check_place(function, of_operands)?;
        }
        terms.push(term);
    }
    let mut whole = terms.into_iter().flatten();
    whole.try_for_each(|function| check_place(function, false))
}

fn check_place(function: &str, is_operand: bool) -> Result<(), Fault> {
    let fits = (function == "size") == is_operand;
    ensure(fits, || Fault::MisplacedFunction(function.to_owned()))
}

/// Builds a tree from its postfix form.
struct Builder<'p, 'a> {
    placeholders: &'p mut Placeholders<'a>,
    operands: Vec<Operand>,
    conditions: Vec<Condition>,
}

impl Builder<'_, '_> {
    fn apply(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        match node {
            Node::Path(path) => self
                .operands
                .push(Operand::Path(self.placeholders.path(path)?)),
            Node::Value(value) => {
                let value = self.placeholders.value(value)?.clone();
                self.operands.push(Operand::Value(value));
            }
            Node::Call { function, count } => self.call(function, *count)?,
            Node::Compare(comparator) => {
                let (left, right) = self.two_operands()?;
                self.leaf(Condition::Compare(left, *comparator, right))?;
            }
            Node::Between => {
                let (low, high) = self.two_operands()?;
                let operand = self.operand()?;
                self.leaf(Condition::Between(operand, low, high))?;
            }
            Node::In { count } => {
                let first = self.operands.len().saturating_sub(*count);
                let choices = self.operands.split_off(first);
                let operand = self.operand()?;
                self.leaf(Condition::In(operand, choices))?;
            }
            Node::Not => {
                let inner = self.condition()?;
                self.conditions.push(inner.not());
            }
            Node::And | Node::Or => {
                let right = self.condition()?;
                let left = self.condition()?;
                self.conditions.push(match node {
                    Node::And => left.and(right),
                    _ => left.or(right),
                });
            }
        }
        Ok(())
    }

    fn call(&mut self, function: &str, count: usize) -> Result<(), Fault> {
        let arity = match function {
            "attribute_type" | "begins_with" | "contains" => 2,
            _ => 1,
        };
        if count != arity {
            let function = function.to_owned();
            return Err(Fault::OperandCount { function, count });
        }
        let last = self.operand()?;
        let condition = match function {
            "attribute_exists" => {
                Condition::AttributeExists(document_path("attribute_exists", last)?)
            }
            "attribute_not_exists" => {
                Condition::AttributeNotExists(document_path("attribute_not_exists", last)?)
            }
            "attribute_type" => {
                let operand = self.operand()?;
                check_distinct("attribute_type", &operand, [&last])?;
                Condition::AttributeType(operand, type_of_name(&last)?)
            }
            "begins_with" => Condition::BeginsWith(self.operand()?, last),
            "contains" => Condition::Contains(self.operand()?, last),
            _ => {
                self.operands.push(size_of(last)?);
                return Ok(());
            }
        };
        self.leaf(condition)
    }

    fn leaf(&mut self, condition: Condition) -> Result<(), Fault> {
        check_leaf(&condition)?;
        self.conditions.push(condition);
        Ok(())
    }

    fn operand(&mut self) -> Result<Operand, Fault> {
        self.operands.pop().ok_or(Fault::Unbalanced)
    }

    fn two_operands(&mut self) -> Result<(Operand, Operand), Fault> {
        let right = self.operand()?;
        Ok((self.operand()?, right))
    }

    fn condition(&mut self) -> Result<Condition, Fault> {
        self.conditions.pop().ok_or(Fault::Unbalanced)
    }
}

fn document_path(function: &'static str, operand: Operand) -> Result<Path, Fault> {
    match operand {
        Operand::Path(path) => Ok(path),
        Operand::Value(_) | Operand::Size(_) => Err(Fault::NeedsPath(function)),
    }
}

/// Returns the type named by the second operand of `attribute_type`.
fn type_of_name(operand: &Operand) -> Result<ValueType, Fault> {
    match operand {
        Operand::Value(Value::S(name)) => {
            ValueType::from_name(name).ok_or_else(|| Fault::UnknownTypeName(name.to_string()))
        }
        _ => Err(Fault::OperandType {
            operator: "attribute_type",
            // A path may have a value of any type.
            operand: operand
                .known_type()
                .map_or("{NS,SS,L,BS,N,M,B,BOOL,NULL,S}", ValueType::as_str),
        }),
    }
}

/// Returns the size of an operand. The size of a literal is a literal.
fn size_of(operand: Operand) -> Result<Operand, Fault> {
    match operand {
        Operand::Path(path) => Ok(Operand::Size(path)),
        Operand::Value(value) => match size(&value) {
            Some(size) => Ok(Operand::Value(Value::N(size))),
            None => Err(Fault::operand_type("size", value.value_type())),
        },
        Operand::Size(_) => Err(Fault::operand_type("size", ValueType::N)),
    }
}
