//! Items: what a table holds, and what a map value is.
//!
//! An item is a vector sorted by attribute name. Items are small and read far more often than
//! changed, so a sorted vector beats a tree or a hash map on each point that matters here: one
//! allocation, cheap decoding in stored order, and one order for equality, hashing and bytes.

use std::fmt;

use crate::text::Name;
use crate::value::Value;

/// A set of named values: a row of a table, a key, or the inside of a map value.
///
/// ```
/// use floe_store::{Item, Value};
///
/// let item = Item::new().with("id", "o-1").with("quantity", 3);
/// assert_eq!(item.get("quantity"), Some(&Value::from(3)));
/// assert_eq!(format!("{item:?}"), r#"{"id": "o-1", "quantity": 3}"#);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Item {
    /// Sorted by name, each name once.
    attributes: Vec<(Name, Value)>,
}

impl Item {
    /// An item without attributes.
    pub const fn new() -> Self {
        Self {
            attributes: Vec::new(),
        }
    }

    /// An item without attributes, with room for so many.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            attributes: Vec::with_capacity(capacity),
        }
    }

    /// An item of these attributes, if each name is greater than the one before: what a decoder has at
    /// hand, without another look for the place of each.
    ///
    /// ```
    /// use floe_store::{Item, Name, Value};
    ///
    /// let attribute = |name: &str| (Name::from(name), Value::from(1));
    /// let item = Item::from_sorted(vec![attribute("a"), attribute("b")]).unwrap();
    /// assert_eq!(item, Item::new().with("a", 1).with("b", 1));
    /// assert_eq!(Item::from_sorted(vec![attribute("b"), attribute("a")]), None);
    /// assert_eq!(Item::from_sorted(vec![attribute("a"), attribute("a")]), None);
    /// ```
    pub fn from_sorted(attributes: Vec<(Name, Value)>) -> Option<Self> {
        let sorted =
            attributes.is_sorted_by(|(before, _), (name, _)| before.as_str() < name.as_str());
        sorted.then_some(Self { attributes })
    }

    /// The item with this attribute set.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// Sets an attribute and returns the value that it had.
    pub fn insert(&mut self, name: impl Into<Name>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        // Decoding and building in order append at the end.
        if self.attributes.last().is_none_or(|(last, _)| *last < name) {
            self.attributes.push((name, value));
            return None;
        }
        match self.position(&name) {
            Ok(at) => self
                .attributes
                .get_mut(at)
                .map(|(_, old)| std::mem::replace(old, value)),
            Err(at) => {
                self.attributes.insert(at, (name, value));
                None
            }
        }
    }

    /// Removes an attribute and returns the value that it had.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.position(name).ok()?;
        Some(self.attributes.remove(at).1)
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.position(name).ok()?;
        self.attributes.get(at).map(|(_, value)| value)
    }

    /// The value of an attribute, to be changed in place.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let at = self.position(name).ok()?;
        self.attributes.get_mut(at).map(|(_, value)| value)
    }

    /// Whether the attribute is there.
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_ok()
    }

    /// How many attributes there are.
    pub const fn len(&self) -> usize {
        self.attributes.len()
    }

    /// Whether there is no attribute.
    pub const fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }

    /// The attributes in the order of their names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Name, &Value)> + ExactSizeIterator {
        self.attributes.iter().map(|(name, value)| (name, value))
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.attributes
            .binary_search_by(|(probe, _)| probe.as_str().cmp(name))
    }
}

impl<N: Into<Name>, V: Into<Value>> FromIterator<(N, V)> for Item {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(attributes: I) -> Self {
        let mut item = Self::new();
        item.extend(attributes);
        item
    }
}

impl<N: Into<Name>, V: Into<Value>> Extend<(N, V)> for Item {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, attributes: I) {
        for (name, value) in attributes {
            self.insert(name, value);
        }
    }
}

impl<N: Into<Name>, V: Into<Value>, const LEN: usize> From<[(N, V); LEN]> for Item {
    fn from(attributes: [(N, V); LEN]) -> Self {
        attributes.into_iter().collect()
    }
}

impl IntoIterator for Item {
    type Item = (Name, Value);
    type IntoIter = std::vec::IntoIter<(Name, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.attributes.into_iter()
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.attributes.iter().map(|(n, v)| (n, v)))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_keep_the_order_of_names_whatever_the_order_of_insertion() {
        let mut item = Item::new().with("b", 1).with("a", 2).with("c", 3);
        assert_eq!(item.insert("b", 4), Some(Value::from(1)));
        assert_eq!(item.remove("a"), Some(Value::from(2)));
        assert_eq!(item.remove("a"), None);
        let names: Vec<_> = item.iter().map(|(n, _)| n.to_string()).collect();
        assert_eq!(names, ["b", "c"]);
        assert_eq!(item.get("b"), Some(&Value::from(4)));
    }
}
