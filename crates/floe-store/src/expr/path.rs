//! Paths to attributes and into documents: `a`, `a.b`, `a[3].c`.

use std::fmt;

use crate::item::Item;
use crate::text::Name;
use crate::value::Value;

/// One step of a [`Path`] after the attribute.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// Into a map, by name.
    Name(Name),
    /// Into a list, by index from 0.
    Index(usize),
}

impl Segment {
    /// Returns the value one step inside another, if there is one.
    pub fn step<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match (self, value) {
            (Self::Name(name), Value::M(map)) => map.get(name),
            (Self::Index(at), Value::L(list)) => list.get(*at),
            _ => None,
        }
    }

    /// Returns the value one step inside another, for changing it in place.
    pub(super) fn step_mut<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        match (self, value) {
            (Self::Name(name), Value::M(map)) => map.get_mut(name),
            (Self::Index(at), Value::L(list)) => list.get_mut(*at),
            _ => None,
        }
    }
}

/// The path to an attribute or to a value inside it. The first step is always a name.
///
/// ```
/// use floe_store::expr::Path;
///
/// let path = Path::attribute("lines").index(0).field("price");
/// assert_eq!(path.to_string(), "lines[0].price");
/// ```
///
/// Paths are ordered step by step, list indexes as numbers, so a path sorts right before its extensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path {
    root: Name,
    rest: Vec<Segment>,
}

impl Path {
    /// Creates the path to an attribute of the item.
    pub fn attribute(name: impl Into<Name>) -> Self {
        let (root, rest) = (name.into(), Vec::new());
        Self { root, rest }
    }

    /// Extends the path into a map.
    #[must_use]
    pub fn field(mut self, name: impl Into<Name>) -> Self {
        self.rest.push(Segment::Name(name.into()));
        self
    }

    /// Extends the path into a list.
    #[must_use]
    pub fn index(mut self, at: usize) -> Self {
        self.rest.push(Segment::Index(at));
        self
    }

    /// Returns the attribute that the path starts with.
    pub const fn root(&self) -> &Name {
        &self.root
    }

    /// Returns the steps after the first one.
    pub fn rest(&self) -> &[Segment] {
        &self.rest
    }

    /// Returns the number of steps, at least 1.
    pub const fn depth(&self) -> usize {
        1 + self.rest.len()
    }

    /// Returns the value of an item at this path, if there is one.
    ///
    /// ```
    /// use floe_store::{Item, Value, expr::Path};
    ///
    /// let item = Item::new().with("sizes", vec![Value::from(1), Value::from(2)]);
    /// assert_eq!(Path::attribute("sizes").index(1).resolve(&item), Some(&Value::from(2)));
    /// assert_eq!(Path::attribute("sizes").field("x").resolve(&item), None);
    /// ```
    pub fn resolve<'a>(&self, item: &'a Item) -> Option<&'a Value> {
        follow(item.get(&self.root)?, &self.rest)
    }

    /// Prints the path as in DynamoDB's messages: `[a, [0], b]`.
    pub(super) fn as_list(&self) -> String {
        let step = |segment: &Segment| match segment {
            Segment::Name(name) => format!(", {name}"),
            Segment::Index(at) => format!(", [{at}]"),
        };
        let rest: String = self.rest.iter().map(step).collect();
        format!("[{}{rest}]", self.root)
    }
}

/// Follows the steps from this value.
pub(super) fn follow<'a>(root: &'a Value, steps: &[Segment]) -> Option<&'a Value> {
    steps
        .iter()
        .try_fold(root, |value, segment| segment.step(value))
}

impl From<&str> for Path {
    /// The attribute with exactly this name; dots are part of the name.
    fn from(name: &str) -> Self {
        Self::attribute(name)
    }
}

impl From<Name> for Path {
    fn from(name: Name) -> Self {
        Self::attribute(name)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root)?;
        for segment in &self.rest {
            match segment {
                Segment::Name(name) => write!(f, ".{name}")?,
                Segment::Index(at) => write!(f, "[{at}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_resolves_through_maps_and_lists() {
        let inner = Item::new().with("price", 3).with("0", "zero");
        let item = Item::new()
            .with("lines", vec![Value::M(inner), Value::from("x")])
            .with("a.b", true);
        let lines = || Path::attribute("lines");
        for (path, expected) in [
            (lines().index(0).field("price"), Some(Value::from(3))),
            (lines().index(0).field("0"), Some(Value::from("zero"))),
            (Path::from("a.b"), Some(Value::from(true))),
            (lines().index(1), Some(Value::from("x"))),
            (lines().index(2), None),
            (lines().index(usize::MAX), None),
            (lines().field("price"), None),
            (lines().index(0).index(0), None),
            (lines().index(1).field("x"), None),
            (Path::from("lines[0]"), None),
            (Path::attribute("a").field("b"), None),
        ] {
            assert_eq!(path.resolve(&item), expected.as_ref(), "path={path}");
        }
    }

    #[test]
    fn path_prints_as_code_and_as_list() {
        let path = Path::attribute("a").field("b").index(3).index(0).field("c");
        assert_eq!(path.to_string(), "a.b[3][0].c");
        assert_eq!(path.as_list(), "[a, b, [3], [0], c]");
        assert_eq!(Path::from("a").as_list(), "[a]");
    }

    #[test]
    fn path_sorts_right_before_its_extensions() {
        let a = || Path::attribute("a");
        let ordered = [
            a(),
            a().field("b"),
            a().field("b").index(2),
            a().field("b").index(10),
            a().field("c"),
            a().index(0),
            Path::attribute("ab"),
        ];
        assert!(ordered.is_sorted_by(|one, two| one < two));
    }
}
