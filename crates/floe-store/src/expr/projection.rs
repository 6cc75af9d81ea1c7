//! Projections: which parts of an item a response contains.

use super::path::{Path, Segment};
use crate::item::Item;
use crate::value::Value;

/// The paths that a response contains.
///
/// ```
/// use floe_store::{Item, expr::{Path, Paths}};
///
/// let paths = Paths(vec![Path::attribute("id")]);
/// let item = Item::new().with("id", "a").with("secret", "b");
/// assert_eq!(paths.project(&item), Item::new().with("id", "a"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Paths(
    /// The paths, in text order.
    pub Vec<Path>,
);

impl Paths {
    /// Returns the parts of an item at the paths, inside their surrounding maps and lists. Paths without a value are
    /// ignored. Lists keep only the selected elements, in order.
    ///
    /// ```
    /// use floe_store::{Item, Value, expr::{Path, Paths}};
    ///
    /// let sizes = || Path::attribute("sizes");
    /// let paths = Paths(vec![sizes().index(3), sizes().index(0), Path::attribute("none")]);
    /// let list: Vec<Value> = (10..15).map(Value::from).collect();
    /// assert_eq!(
    ///     paths.project(&Item::new().with("sizes", list)),
    ///     Item::new().with("sizes", vec![Value::from(10), Value::from(13)]),
    /// );
    /// ```
    pub fn project(&self, item: &Item) -> Item {
        project(self.0.iter(), item)
    }
}

/// Returns the parts of an item at the paths.
pub(super) fn project<'p>(paths: impl Iterator<Item = &'p Path>, item: &Item) -> Item {
    let mut sorted: Vec<&Path> = paths.collect();
    sorted.sort_unstable();
    let mut projected = Item::with_capacity(sorted.len());
    for group in sorted.chunk_by(|one, two| one.root() == two.root()) {
        let Some(name) = group.first().map(|path| path.root()) else {
            continue;
        };
        let tails: Vec<&[Segment]> = group.iter().map(|path| path.rest()).collect();
        if let Some(part) = item.get(name).and_then(|value| pick(value, &tails)) {
            projected.insert(name.clone(), part);
        }
    }
    projected
}

/// Returns the parts of a value at these sorted relative paths, or `None` if none of them has a value. Recurses at most
/// as deep as the value.
fn pick(value: &Value, tails: &[&[Segment]]) -> Option<Value> {
    if tails.iter().any(|tail| tail.is_empty()) {
        return Some(value.clone());
    }
    let mut map = Item::new();
    let mut list = Vec::new();
    for group in tails.chunk_by(|one, two| one.first() == two.first()) {
        let Some(step) = group.first().and_then(|tail| tail.first()) else {
            continue;
        };
        let rest: Vec<&[Segment]> = group
            .iter()
            .filter_map(|tail| tail.split_first().map(|(_, rest)| rest))
            .collect();
        let Some(part) = step.step(value).and_then(|inner| pick(inner, &rest)) else {
            continue;
        };
        match step {
            Segment::Name(name) => drop(map.insert(name.clone(), part)),
            Segment::Index(_) => list.push(part),
        }
    }
    if !map.is_empty() {
        return Some(Value::M(map));
    }
    (!list.is_empty()).then_some(Value::L(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Item {
        let line = |price: i32| Value::M(Item::new().with("price", price).with("name", "n"));
        Item::new()
            .with("id", "o-1")
            .with("lines", vec![line(1), line(2), line(3), Value::from("x")])
            .with(
                "a",
                Item::new().with("b", Item::new().with("c", 1).with("d", 2)),
            )
            .with("a.b", true)
    }

    #[track_caller]
    fn check(paths: &[Path], expected: &Item) {
        assert_eq!(Paths(paths.to_vec()).project(&document()), *expected);
        let reversed = paths.iter().rev().cloned().collect();
        assert_eq!(Paths(reversed).project(&document()), *expected);
    }

    fn lines() -> Path {
        Path::attribute("lines")
    }

    fn a() -> Path {
        Path::attribute("a")
    }

    #[test]
    fn missing_attributes_are_omitted() {
        check(&[], &Item::new());
        check(&["nope".into()], &Item::new());
        check(
            &["id".into(), "nope".into(), "a.b".into()],
            &Item::new().with("id", "o-1").with("a.b", true),
        );
    }

    #[test]
    fn nested_parts_keep_their_parents() {
        check(
            &[a().field("b").field("c")],
            &Item::new().with("a", Item::new().with("b", Item::new().with("c", 1))),
        );
        check(
            &[
                a().field("b").field("c"),
                a().field("b").field("d"),
                a().field("x"),
            ],
            &Item::new().with(
                "a",
                Item::new().with("b", Item::new().with("c", 1).with("d", 2)),
            ),
        );
        check(
            &[a().field("x"), a().index(0), a().field("b").index(1)],
            &Item::new(),
        );
    }

    #[test]
    fn selected_list_elements_close_up_in_order() {
        let priced = |price: i32| Value::M(Item::new().with("price", price));
        check(
            &[
                lines().index(2).field("price"),
                lines().index(0).field("price"),
            ],
            &Item::new().with("lines", vec![priced(1), priced(3)]),
        );
        check(
            &[
                lines().index(3),
                lines().index(1).field("price"),
                lines().index(9),
            ],
            &Item::new().with("lines", vec![priced(2), Value::from("x")]),
        );
        check(
            &[lines().index(3).field("x"), lines().field("price")],
            &Item::new(),
        );
    }

    #[test]
    fn shorter_path_wins_among_unchecked_paths() {
        let whole = document().get("a").cloned().unwrap();
        check(&[a(), a().field("b"), a()], &Item::new().with("a", whole));
    }
}
