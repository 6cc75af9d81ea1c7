//! Conditions and filters: expression trees that are true or false for an item.

use super::path::Path;
use super::pending::Pending;
use crate::declare::named;
use crate::value::{Value, ValueType};

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The value at a path.
    Path(Path),
    /// A literal value.
    Value(Value),
    /// The size of the value at a path.
    Size(Path),
}

literal_operands!(Operand);

impl Operand {
    /// Returns the path that the operand reads, if any.
    pub const fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) | Self::Size(path) => Some(path),
            Self::Value(_) => None,
        }
    }

    /// Returns the type of the operand's value if it does not depend on the item.
    pub(super) const fn known_type(&self) -> Option<ValueType> {
        match self {
            Self::Path(_) => None,
            Self::Value(value) => Some(value.value_type()),
            Self::Size(_) => Some(ValueType::N),
        }
    }
}

named! {
    /// A comparison operator.
    pub enum Comparator {
        /// `=`
        Eq = "=",
        /// `<>`
        Ne = "<>",
        /// `<`
        Lt = "<",
        /// `<=`
        Le = "<=",
        /// `>`
        Gt = ">",
        /// `>=`
        Ge = ">=",
    }
}

/// An expression tree that is true or false for an item.
///
/// ```
/// use floe_store::{Item, expr::{Condition, Path}};
///
/// let free = Condition::attribute_not_exists(Path::attribute("holder"))
///     .or(Condition::lt(Path::attribute("until"), 1000));
/// assert!(free.evaluate(&Item::new()));
/// assert!(free.evaluate(&Item::new().with("holder", "a").with("until", 999)));
/// assert!(!free.evaluate(&Item::new().with("holder", "a").with("until", 1000)));
/// ```
///
/// Trees of any depth can be built, [checked](Condition::check), rendered and dropped.
/// [`evaluate`](Condition::evaluate) and the derived traits recurse and require a tree that has passed the check, which
/// limits its depth.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A comparison of two operands.
    Compare(Operand, Comparator, Operand),
    /// `a BETWEEN b AND c`, both ends included.
    Between(Operand, Operand, Operand),
    /// `a IN (b, c, …)`
    In(Operand, Vec<Operand>),
    /// Both conditions hold.
    And(Box<Condition>, Box<Condition>),
    /// At least one condition holds.
    Or(Box<Condition>, Box<Condition>),
    /// The condition does not hold.
    Not(Box<Condition>),
    /// The path has a value.
    AttributeExists(Path),
    /// The path has no value.
    AttributeNotExists(Path),
    /// The operand has this type.
    AttributeType(Operand, ValueType),
    /// The string or bytes start with this prefix.
    BeginsWith(Operand, Operand),
    /// The string contains this text, or the set or list contains this element.
    Contains(Operand, Operand),
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident => $comparator:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(left: impl Into<Operand>, right: impl Into<Operand>) -> Self {
            Self::Compare(left.into(), Comparator::$comparator, right.into())
        }
    )*};
}

impl Condition {
    comparisons! {
        /// `left = right`
        eq => Eq;
        /// `left <> right`
        ne => Ne;
        /// `left < right`
        lt => Lt;
        /// `left <= right`
        le => Le;
        /// `left > right`
        gt => Gt;
        /// `left >= right`
        ge => Ge;
    }

    /// `operand BETWEEN low AND high`, both ends included.
    pub fn between(
        operand: impl Into<Operand>,
        low: impl Into<Operand>,
        high: impl Into<Operand>,
    ) -> Self {
        Self::Between(operand.into(), low.into(), high.into())
    }

    /// `operand IN (choices)`
    pub fn is_in<O: Into<Operand>>(
        operand: impl Into<Operand>,
        choices: impl IntoIterator<Item = O>,
    ) -> Self {
        let choices = choices.into_iter().map(Into::into).collect();
        Self::In(operand.into(), choices)
    }

    /// The path has a value.
    pub fn attribute_exists(path: impl Into<Path>) -> Self {
        Self::AttributeExists(path.into())
    }

    /// The path has no value.
    pub fn attribute_not_exists(path: impl Into<Path>) -> Self {
        Self::AttributeNotExists(path.into())
    }

    /// The value at the path has this type.
    pub fn attribute_type(path: impl Into<Path>, value_type: ValueType) -> Self {
        Self::AttributeType(Operand::Path(path.into()), value_type)
    }

    /// The string or bytes start with this prefix.
    pub fn begins_with(operand: impl Into<Operand>, prefix: impl Into<Operand>) -> Self {
        Self::BeginsWith(operand.into(), prefix.into())
    }

    /// The string contains this text, or the set or list contains this element.
    pub fn contains(operand: impl Into<Operand>, element: impl Into<Operand>) -> Self {
        Self::Contains(operand.into(), element.into())
    }

    /// Both conditions hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::And(Box::new(self), Box::new(other))
    }

    /// At least one condition holds.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::Or(Box::new(self), Box::new(other))
    }

    /// The condition does not hold.
    #[must_use]
    #[expect(
        clippy::should_implement_trait,
        reason = "reads as the operator it builds"
    )]
    pub fn not(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Iterates over the comparisons and functions of the tree, without logical operators, in text order.
    pub(super) fn leaves(&self) -> impl Iterator<Item = &Self> {
        self.nodes().filter(|node| !node.is_branch())
    }

    /// Iterates over all conditions of the tree, in text order.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Self> {
        let mut pending = Pending::of(self);
        std::iter::from_fn(move || {
            let node = pending.pop()?;
            match node {
                Self::And(left, right) | Self::Or(left, right) => {
                    pending.push(right);
                    pending.push(left);
                }
                Self::Not(inner) => pending.push(inner),
                _ => {}
            }
            Some(node)
        })
    }

    pub(super) const fn is_branch(&self) -> bool {
        matches!(self, Self::And(..) | Self::Or(..) | Self::Not(_))
    }

    /// Iterates over all paths that the condition reads, in text order.
    ///
    /// ```
    /// use floe_store::expr::{Condition, Path};
    ///
    /// let condition = Condition::eq(Path::attribute("a"), 1).and(Condition::attribute_exists("b"));
    /// let paths: Vec<_> = condition.paths().map(Path::to_string).collect();
    /// assert_eq!(paths, ["a", "b"]);
    /// ```
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.leaves().flat_map(|leaf| {
            let tested = match leaf {
                Self::AttributeExists(path) | Self::AttributeNotExists(path) => Some(path),
                _ => None,
            };
            let operands = leaf.operands().filter_map(Operand::path);
            tested.into_iter().chain(operands)
        })
    }

    /// Iterates over the operands of a comparison or function, in text order.
    pub(super) fn operands(&self) -> impl Iterator<Item = &Operand> {
        let (first, rest): ([Option<&Operand>; 3], &[Operand]) = match self {
            Self::Compare(a, _, b) | Self::BeginsWith(a, b) | Self::Contains(a, b) => {
                ([Some(a), Some(b), None], &[])
            }
            Self::Between(a, low, high) => ([Some(a), Some(low), Some(high)], &[]),
            Self::In(a, choices) => ([Some(a), None, None], choices),
            Self::AttributeType(a, _) => ([Some(a), None, None], &[]),
            Self::AttributeExists(_)
            | Self::AttributeNotExists(_)
            | Self::And(..)
            | Self::Or(..)
            | Self::Not(_) => ([None; 3], &[]),
        };
        first.into_iter().flatten().chain(rest)
    }

    /// Moves children that have children of their own out of the node.
    fn take_branches(&mut self, into: &mut Vec<Self>) {
        const LEAF: Condition = Condition::In(Operand::Value(Value::Null), Vec::new());
        let mut take = |child: &mut Box<Self>| {
            if child.is_branch() {
                into.push(std::mem::replace(&mut **child, LEAF));
            }
        };
        match self {
            Self::And(left, right) | Self::Or(left, right) => {
                take(left);
                take(right);
            }
            Self::Not(inner) => take(inner),
            _ => {}
        }
    }
}

impl Drop for Condition {
    /// Drops the tree level by level: a tree built in code may be too deep for recursion.
    fn drop(&mut self) {
        let mut pending = Vec::new();
        self.take_branches(&mut pending);
        while let Some(mut branch) = pending.pop() {
            branch.take_branches(&mut pending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_listed_in_text_order() {
        let path = |name: &str| Path::attribute(name);
        let condition = Condition::eq(path("a"), path("b"))
            .and(Condition::between(path("c"), path("d"), 1).or(Condition::attribute_exists("e")))
            .and(Condition::is_in(Operand::Size(path("f")), [path("g"), path("h")]).not())
            .and(Condition::attribute_type("i", ValueType::S))
            .and(Condition::begins_with(path("j"), path("k")))
            .and(Condition::contains("text", path("l")));
        let paths: Vec<_> = condition.paths().map(Path::to_string).collect();
        assert_eq!(paths.concat(), "abcdefghijkl");
    }

    #[test]
    fn very_deep_tree_is_walked_and_dropped_without_recursion() {
        let leaf = || Condition::attribute_exists("a");
        let mut condition = leaf();
        for n in 0..200_000 {
            condition = match n % 4 {
                0 => condition.and(leaf()),
                1 => leaf().or(condition),
                2 => condition.not(),
                _ => leaf().and(condition).or(leaf().not()),
            };
        }
        assert_eq!(condition.paths().count(), 200_001);
    }
}
