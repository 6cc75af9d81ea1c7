//! The rules that trees keep, whether parsed or built by code.
//!
//! Each rule stands here once. The parser applies the rules one by one, between those that concern
//! text only, in the order in which DynamoDB finds faults; `check` applies them to a finished tree.
//! Nothing here recurses, so a tree of any depth is refused rather than overflowing the stack.

mod condition;
mod literals;
mod paths;
mod update;

#[cfg(test)]
mod tests;

pub(super) use condition::{check_bound_values, check_distinct, check_leaf};
pub(super) use literals::{NESTING, check_names, check_nesting, is_too_deep};
pub(super) use paths::{check_apart, check_path};
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
    /// With DynamoDB's message, when the tree is too large, an operand does not suit its operator, or a
    /// literal value is none that an item could hold.
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

    /// Checks the tree as an expression of this kind; a filter is
    /// [`ExpressionKind::Filter`].
    ///
    /// # Errors
    ///
    /// As [`check`](Condition::check).
    pub fn check_as(&self, kind: ExpressionKind) -> Result<()> {
        check_names(condition::literals(self))?;
        condition::check_tree(self).map_err(|fault| kind.refuse(&fault))?;
        check_nesting(condition::literals(self))
    }
}

impl Update {
    /// Checks the tree. An update without a clause passes: DynamoDB takes a request without an
    /// `UpdateExpression`.
    ///
    /// # Errors
    ///
    /// With DynamoDB's message, when two paths cannot be updated together, an operand does not suit
    /// its operator, the tree is too large, or a literal value is none that an item could hold.
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
        update::check_tree(self).map_err(|fault| ExpressionKind::Update.refuse(&fault))?;
        check_nesting(update::literals(self))
    }
}

impl Paths {
    /// Checks the paths.
    ///
    /// # Errors
    ///
    /// With DynamoDB's message, when there is none, one is too long, or two cannot be answered
    /// together.
    pub fn check(&self) -> Result<()> {
        paths::check_projection(self).map_err(|fault| ExpressionKind::Projection.refuse(&fault))
    }
}

/// Refuses more operators and functions than an expression may have. It is told as many as were found
/// until then: DynamoDB stops counting one past the most.
pub(super) fn check_operators(count: usize) -> Result<(), Fault> {
    let most = limits::EXPRESSION_OPERATORS_MAX;
    ensure(count <= most, || Fault::TooManyOperators(most + 1))
}
