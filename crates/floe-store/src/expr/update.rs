//! Updates: expression trees that change an item.

use super::path::Path;
use super::pending::Pending;
use crate::value::Value;

/// The `SET`, `REMOVE`, `ADD` and `DELETE` clauses of an update. All values are computed from the item before the
/// update; then the clauses are applied together.
///
/// ```
/// use floe_store::{Item, expr::{Path, SetOperand, Update}};
///
/// let update = Update::new()
///     .set("name", "Ada")
///     .set_sum("visits", SetOperand::if_not_exists("visits", 0), 1)
///     .remove("draft");
/// let item = update.apply(&Item::new().with("draft", true))?;
/// assert_eq!(item, Item::new().with("name", "Ada").with("visits", 1));
/// # Ok::<(), floe_store::Error>(())
/// ```
///
/// As with [`Condition`](super::Condition), [`check`](Update::check) limits the nesting of operands, and recursive
/// functions require an update that has passed it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Update {
    /// `SET path = value`
    pub set: Vec<(Path, SetValue)>,
    /// `REMOVE path`
    pub remove: Vec<Path>,
    /// `ADD path number-or-set`
    pub add: Vec<(Path, Value)>,
    /// `DELETE path set`
    pub delete: Vec<(Path, Value)>,
}

/// The right-hand side of a `SET`.
#[derive(Clone, Debug, PartialEq)]
pub enum SetValue {
    /// The operand itself.
    Operand(SetOperand),
    /// The sum of two numbers.
    Sum(SetOperand, SetOperand),
    /// The difference of two numbers.
    Difference(SetOperand, SetOperand),
}

/// An operand on the right-hand side of a `SET`.
#[derive(Clone, Debug, PartialEq)]
pub enum SetOperand {
    /// The value at a path, which must exist.
    Path(Path),
    /// A literal value.
    Value(Value),
    /// The value at a path, or the operand if there is none.
    IfNotExists(Path, Box<SetOperand>),
    /// The concatenation of two lists.
    ListAppend(Box<SetOperand>, Box<SetOperand>),
}

impl SetValue {
    /// Whether the value is a literal or a path, without an operator or a function.
    const fn is_plain(&self) -> bool {
        matches!(
            self,
            Self::Operand(SetOperand::Value(_) | SetOperand::Path(_))
        )
    }

    /// Iterates over the operands, one or two.
    pub(crate) fn operands(&self) -> impl Iterator<Item = &SetOperand> {
        let (first, second) = match self {
            Self::Operand(operand) => (operand, None),
            Self::Sum(left, right) | Self::Difference(left, right) => (left, Some(right)),
        };
        std::iter::once(first).chain(second)
    }
}

impl SetOperand {
    /// The value at a path, or the operand if there is none.
    pub fn if_not_exists(path: impl Into<Path>, otherwise: impl Into<SetOperand>) -> Self {
        Self::IfNotExists(path.into(), Box::new(otherwise.into()))
    }

    /// The concatenation of two lists.
    pub fn list_append(first: impl Into<SetOperand>, second: impl Into<SetOperand>) -> Self {
        Self::ListAppend(Box::new(first.into()), Box::new(second.into()))
    }
    /// Iterates over the operand and all nested operands, parents first.
    pub(crate) fn nested(&self) -> impl Iterator<Item = &Self> {
        let mut pending = Pending::of(self);
        std::iter::from_fn(move || {
            let operand = pending.pop()?;
            match operand {
                Self::IfNotExists(_, otherwise) => pending.push(otherwise),
                Self::ListAppend(first, second) => {
                    pending.push(second);
                    pending.push(first);
                }
                Self::Path(_) | Self::Value(_) => {}
            }
            Some(operand)
        })
    }

    pub(super) const fn is_function(&self) -> bool {
        matches!(self, Self::IfNotExists(..) | Self::ListAppend(..))
    }

    /// Returns the path that the operand itself reads.
    pub(super) const fn path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) | Self::IfNotExists(path, _) => Some(path),
            Self::Value(_) | Self::ListAppend(..) => None,
        }
    }

    /// Moves operands that have operands of their own out of this one.
    fn take_branches(&mut self, into: &mut Vec<Self>) {
        let mut take = |child: &mut Box<Self>| {
            if child.is_function() {
                into.push(std::mem::replace(&mut **child, Self::Value(Value::Null)));
            }
        };
        match self {
            Self::IfNotExists(_, otherwise) => take(otherwise),
            Self::ListAppend(first, second) => {
                take(first);
                take(second);
            }
            Self::Path(_) | Self::Value(_) => {}
        }
    }
}

impl Drop for SetOperand {
    /// Drops the operand level by level: one built in code may be too deep for recursion.
    fn drop(&mut self) {
        let mut pending = Vec::new();
        self.take_branches(&mut pending);
        while let Some(mut branch) = pending.pop() {
            branch.take_branches(&mut pending);
        }
    }
}

literal_operands!(SetOperand);

impl Update {
    /// Creates an update without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// `SET path = operand`
    #[must_use]
    pub fn set(self, path: impl Into<Path>, operand: impl Into<SetOperand>) -> Self {
        self.set_value(path, SetValue::Operand(operand.into()))
    }

    /// `SET path = left + right`
    #[must_use]
    pub fn set_sum(
        self,
        path: impl Into<Path>,
        left: impl Into<SetOperand>,
        right: impl Into<SetOperand>,
    ) -> Self {
        self.set_value(path, SetValue::Sum(left.into(), right.into()))
    }

    /// `SET path = left - right`
    #[must_use]
    pub fn set_difference(
        self,
        path: impl Into<Path>,
        left: impl Into<SetOperand>,
        right: impl Into<SetOperand>,
    ) -> Self {
        self.set_value(path, SetValue::Difference(left.into(), right.into()))
    }

    fn set_value(mut self, path: impl Into<Path>, value: SetValue) -> Self {
        self.set.push((path.into(), value));
        self
    }

    /// `REMOVE path`
    #[must_use]
    pub fn remove(mut self, path: impl Into<Path>) -> Self {
        self.remove.push(path.into());
        self
    }

    /// `ADD path number-or-set`
    #[must_use]
    pub fn add(mut self, path: impl Into<Path>, value: impl Into<Value>) -> Self {
        self.add.push((path.into(), value.into()));
        self
    }

    /// `DELETE path set`
    #[must_use]
    pub fn delete(mut self, path: impl Into<Path>, set: impl Into<Value>) -> Self {
        self.delete.push((path.into(), set.into()));
        self
    }

    /// Whether the update has no clauses.
    pub fn is_empty(&self) -> bool {
        self.paths().next().is_none()
    }

    /// Iterates over all paths that the update changes, clause by clause.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let set = self.set.iter().map(|(path, _)| path);
        let others = self.add.iter().chain(&self.delete);
        set.chain(&self.remove).chain(others.map(|(path, _)| path))
    }

    /// Iterates over all paths that the right-hand sides read, in text order.
    pub fn read_paths(&self) -> impl Iterator<Item = &Path> {
        self.set_operands().filter_map(SetOperand::path)
    }

    /// Iterates over the operands of `SET`, including nested ones.
    pub(super) fn set_operands(&self) -> impl Iterator<Item = &SetOperand> {
        let operands = self.set.iter().flat_map(|(_, value)| value.operands());
        operands.flat_map(SetOperand::nested)
    }

    /// Iterates over the values of `SET` that are more than a literal or a path.
    pub(super) fn computed(&self) -> impl Iterator<Item = &SetValue> {
        let values = self.set.iter().map(|(_, value)| value);
        values.filter(|value| !value.is_plain())
    }

    /// Whether the update creates a missing item. DynamoDB does not create an item only to remove something from it; an
    /// empty update creates an item with only its key.
    ///
    /// ```
    /// use floe_store::expr::Update;
    ///
    /// assert!(Update::new().creates_item());
    /// assert!(Update::new().add("count", 1).remove("draft").creates_item());
    /// assert!(!Update::new().remove("draft").creates_item());
    /// ```
    pub fn creates_item(&self) -> bool {
        !self.set.is_empty() || !self.add.is_empty() || self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_paths_lists_paths_of_right_hand_sides() {
        let update = Update::new()
            .set(
                "x",
                SetOperand::list_append(
                    SetOperand::if_not_exists("a", Path::from("b")),
                    Path::from("c"),
                ),
            )
            .set_sum("y", Path::from("d"), SetOperand::if_not_exists("e", 1))
            .remove("z");
        let paths: Vec<_> = update.read_paths().map(Path::to_string).collect();
        assert_eq!(paths.concat(), "abcde");
    }

    #[test]
    fn very_deep_operand_is_walked_and_dropped_without_recursion() {
        let mut operand = SetOperand::from(1);
        for n in 0..200_000 {
            operand = match n % 3 {
                0 => SetOperand::if_not_exists("a", operand),
                1 => SetOperand::list_append(operand, Path::from("b")),
                _ => SetOperand::list_append(Path::from("b"), operand),
            };
        }
        assert_eq!(
            Update::new().set("x", operand).read_paths().count(),
            200_000
        );
    }
}
