//! Predicates on the fields of a model, and their conversion to conditions of a request.

use std::fmt;
use std::marker::PhantomData;

use floe_store::expr::{Condition, KeyOp, Path};
use floe_store::{Name, Value};

use crate::error::{Error, Result};

/// A condition on an item, built from the [columns](super::Column) of its model.
#[must_use]
pub struct Predicate<M> {
    pub(super) node: Node,
    model: PhantomData<fn() -> M>,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Term(Box<Term>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    /// A value that cannot be stored. The error is returned when the predicate is used.
    Invalid(Error),
}

/// A comparison of one field.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) model: &'static str,
    pub(super) field: &'static str,
    pub(super) attribute: &'static str,
    pub(super) comparison: Comparison,
    /// Whether the constraints of the field allow the value. Checked for keys only.
    pub(super) allowed: Result<()>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Comparison {
    /// Equal; absent where `None`.
    Eq(Option<Value>),
    Ne(Option<Value>),
    OneOf(Vec<Value>),
    Contains(Value),
    /// By order or prefix, which keys support too.
    Range(KeyOp),
}

impl<M> fmt::Debug for Predicate<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl<M> Clone for Predicate<M> {
    fn clone(&self) -> Self {
        Self::of(self.node.clone())
    }
}

impl<M> Predicate<M> {
    const fn of(node: Node) -> Self {
        let model = PhantomData;
        Self { node, model }
    }

    pub(super) fn term(term: Result<Term>) -> Self {
        Self::of(match term {
            Ok(term) => Node::Term(Box::new(term)),
            Err(error) => Node::Invalid(error),
        })
    }

    /// Both conditions hold.
    pub fn and(self, other: Self) -> Self {
        Self::of(Node::And(Box::new(self.node), Box::new(other.node)))
    }

    /// At least one of the conditions holds.
    pub fn or(self, other: Self) -> Self {
        Self::of(Node::Or(Box::new(self.node), Box::new(other.node)))
    }
}

impl<M> std::ops::Not for Predicate<M> {
    type Output = Self;

    /// The condition does not hold.
    fn not(self) -> Self {
        Self::of(Node::Not(Box::new(self.node)))
    }
}

impl Node {
    /// Converts it to a condition, after checking each term.
    pub(super) fn condition(self, check: &impl Fn(&Term) -> Result<()>) -> Result<Condition> {
        Ok(match self {
            Self::Invalid(error) => return Err(error),
            Self::Term(term) => {
                check(&term)?;
                term.condition()
            }
            Self::And(one, other) => one.condition(check)?.and(other.condition(check)?),
            Self::Or(one, other) => one.condition(check)?.or(other.condition(check)?),
            Self::Not(node) => node.condition(check)?.not(),
        })
    }
}

impl Term {
    fn condition(self) -> Condition {
        let path = Path::attribute(Name::from(self.attribute));
        match self.comparison {
            Comparison::Eq(Some(value)) => Condition::eq(path, value),
            Comparison::Eq(None) => Condition::attribute_not_exists(path),
            Comparison::Ne(Some(value)) => Condition::ne(path, value),
            Comparison::Ne(None) => Condition::attribute_exists(path),
            Comparison::OneOf(values) => Condition::is_in(path, values),
            Comparison::Contains(value) => Condition::contains(path, value),
            Comparison::Range(KeyOp::Eq(value)) => Condition::eq(path, value),
            Comparison::Range(KeyOp::Lt(value)) => Condition::lt(path, value),
            Comparison::Range(KeyOp::Le(value)) => Condition::le(path, value),
            Comparison::Range(KeyOp::Gt(value)) => Condition::gt(path, value),
            Comparison::Range(KeyOp::Ge(value)) => Condition::ge(path, value),
            Comparison::Range(KeyOp::Between(low, high)) => Condition::between(path, low, high),
            Comparison::Range(KeyOp::BeginsWith(value)) => Condition::begins_with(path, value),
        }
    }
}
