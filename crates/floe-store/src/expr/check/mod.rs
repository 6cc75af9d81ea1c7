//! Rules for expression trees, whether parsed or built in code.
//!
//! Each rule is implemented once. The parser applies the rules one by one, interleaved with rules about the text, in
//! the order in which DynamoDB reports faults; `check` applies them to a complete tree. Nothing here recurses, so a
//! tree of any depth is rejected instead of overflowing the stack.

mod condition;
mod literals;
mod paths;
mod update;

#[cfg(test)]
mod tests;

pub(super) use condition::{check_bound_values, check_distinct, check_leaf};
pub(super) use literals::{NESTING, check_names, check_nesting, is_too_deep};
pub(super) use paths::{check_disjoint, check_path};
pub(super) use update::{check_action, check_set_types};

use super::condition::Condition;
pub use super::fault::ExpressionKind;
use super::fault::Fault;
use super::projection::Paths;
use super::update::Update;
use crate::error::{Result, ensure};
use crate::limits;

impl Condition {
    /// Checks the tree as a `ConditionExpression`.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if the tree is too large, an operand does not match its operator, or a literal value is
    /// invalid.
    ///
    /// ```
    /// use floe_store::expr::{Condition, Path};
    ///
    /// let error = Condition::begins_with(Path::attribute("a"), 1).check().unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "Invalid ConditionExpression: Incorrect operand type for operator or function; \
    ///      operator or function: begins_with, operand type: N",
    /// );
    /// ```
    pub fn check(&self) -> Result<()> {
        self.check_as(ExpressionKind::Condition)
    }

    /// Checks the tree as an expression of this kind; filters are [`ExpressionKind::Filter`].
    ///
    /// # Errors
    ///
    /// The errors of [`check`](Condition::check).
    pub fn check_as(&self, kind: ExpressionKind) -> Result<()> {
        check_names(condition::literals(self))?;
        condition::check_tree(self).map_err(|fault| kind.error(&fault))?;
        check_nesting(condition::literals(self))
    }
}

impl Update {
    /// Checks the tree. An empty update passes, because DynamoDB accepts a request without an `UpdateExpression`.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if two paths overlap or conflict, an operand does not match its operator, the tree is too
    /// large, or a literal value is invalid.
    ///
    /// ```
    /// use floe_store::expr::{Path, Update};
    ///
    /// let update = Update::new().set("a", 1).remove(Path::attribute("a").field("b"));
    /// assert_eq!(
    ///     update.check().unwrap_err().to_string(),
    ///     "Invalid UpdateExpression: Two document paths overlap with each other; must remove or \
    ///      rewrite one of these paths; path one: [a], path two: [a, b]",
    /// );
    /// ```
    pub fn check(&self) -> Result<()> {
        check_names(update::literals(self))?;
        update::check_tree(self).map_err(|fault| ExpressionKind::Update.error(&fault))?;
        check_nesting(update::literals(self))
    }
}

impl Paths {
    /// Checks the paths.
    ///
    /// # Errors
    ///
    /// Returns DynamoDB's error if there are no paths, one is too long, or two overlap or conflict.
    pub fn check(&self) -> Result<()> {
        paths::check_projection(self).map_err(|fault| ExpressionKind::Projection.error(&fault))
    }
}

/// Rejects too many operators and functions. The message says one more than the maximum, because DynamoDB stops
/// counting there.
pub(super) fn check_operators(count: usize) -> Result<(), Fault> {
    let most = limits::EXPRESSION_OPERATORS_MAX;
    ensure(count <= most, || Fault::TooManyOperators(most + 1))
}
