//! Projections: which parts of an item an answer holds.

use super::path::Path;
use crate::item::Item;

/// The paths that an answer holds.
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
    /// The paths, in the order in which they were written.
    pub Vec<Path>,
);

impl Paths {
    /// The parts of an item at the paths.
    pub fn project(&self, item: &Item) -> Item {
        item.clone()
    }
}
