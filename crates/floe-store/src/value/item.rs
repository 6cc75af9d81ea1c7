//! Items: rows of tables, and map values.
//!
//! An item is a vector of attributes sorted by name. Items are small and read far more often than changed, so a sorted
//! vector beats a tree or a hash map: one allocation, cheap decoding in stored order, and one order for equality,
//! hashing and encoding.
//!
//! An item from an engine stays in its [packed](Item::from_packed) form until its attributes are accessed. Many items
//! are only passed on or counted, or only one attribute is read.

mod packed;
mod value_ref;
mod visit;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::text::Name;
use crate::value::Value;
use packed::Packed;
pub(crate) use packed::{AttributeChange, ItemStats};

pub use value_ref::{Attributes, Elements, ValueRef};
pub use visit::{Container, ItemVisitor, Scalar};

/// A map from names to values: a row of a table, a key, or the content of a map value.
///
/// ```
/// use floe_store::{Item, Value};
///
/// let item = Item::new().with("id", "o-1").with("quantity", 3);
/// assert_eq!(item.get("quantity"), Some(&Value::from(3)));
/// assert_eq!(format!("{item:?}"), r#"{"id": "o-1", "quantity": 3}"#);
/// ```
#[derive(Clone)]
pub struct Item {
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// Sorted by name, without duplicates.
    Unpacked(Vec<(Name, Value)>),
    /// As stored. Clones of the item share it.
    Packed(Arc<Packed>),
}

impl Item {
    /// Creates an item without attributes.
    pub const fn new() -> Self {
        Self::from_sorted(Vec::new())
    }

    /// Creates an item without attributes, with room for this many.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::from_sorted(Vec::with_capacity(capacity))
    }

    /// Creates an item of attributes with strictly ascending names.
    const fn from_sorted(attributes: Vec<(Name, Value)>) -> Self {
        let form = Form::Unpacked(attributes);
        Self { form }
    }
    /// Creates an item from the bytes written by [`pack_into`](Self::pack_into). Returns `None` for any other bytes.
    ///
    /// Validates and copies all bytes. Values are decoded on first access.
    ///
    /// ```
    /// use floe_store::Item;
    ///
    /// let item = Item::new().with("id", "o-1").with("quantity", 3);
    /// let mut bytes = Vec::new();
    /// item.pack_into(&mut bytes);
    /// assert_eq!(Item::from_packed(&bytes), Some(item));
    /// assert_eq!(Item::from_packed(&bytes[1..]), None);
    /// ```
    pub fn from_packed(bytes: &[u8]) -> Option<Self> {
        Packed::check(bytes).map(Self::from_packed_form)
    }

    fn from_packed_form(packed: Packed) -> Self {
        let form = Form::Packed(Arc::new(packed));
        Self { form }
    }

    /// Returns the packed form, if the item has it.
    fn packed(&self) -> Option<&Packed> {
        match &self.form {
            Form::Unpacked(_) => None,
            Form::Packed(packed) => Some(packed),
        }
    }

    /// Appends the item in the compact form in which engines store it. Equal items have equal bytes.
    pub fn pack_into(&self, out: &mut Vec<u8>) {
        match &self.form {
            Form::Unpacked(attributes) => packed::pack(out, attributes),
            Form::Packed(packed) => out.extend_from_slice(packed.bytes()),
        }
    }

    /// Returns the number of bytes that [`pack_into`](Self::pack_into) appends if it is known without packing: if the
    /// item was packed and not changed since.
    pub fn packed_bytes(&self) -> Option<usize> {
        self.packed().map(|packed| packed.bytes().len())
    }

    /// Returns the item with this attribute set.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// Sets an attribute and returns its previous value.
    pub fn insert(&mut self, name: impl Into<Name>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        // Decoding and building in order always append.
        let attributes = self.unpacked_mut();
        if attributes.last().is_none_or(|(last, _)| *last < name) {
            attributes.push((name, value));
            return None;
        }
        match position(attributes, &name) {
            Ok(at) => {
                let (_, old) = attributes.get_mut(at)?;
                Some(std::mem::replace(old, value))
            }
            Err(at) => {
                attributes.insert(at, (name, value));
                None
            }
        }
    }

    /// Removes an attribute and returns its previous value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let attributes = self.unpacked_mut();
        let at = position(attributes, name).ok()?;
        Some(attributes.remove(at).1)
    }

    /// Returns the value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match &self.form {
            Form::Unpacked(attributes) => find(attributes, name),
            Form::Packed(packed) => packed.get(name),
        }
    }

    /// Returns the value of an attribute for changing it in place.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let attributes = self.unpacked_mut();
        let at = position(attributes, name).ok()?;
        attributes.get_mut(at).map(|(_, value)| value)
    }

    /// Returns an item with copies of those of these attributes that exist: a key or a projection.
    ///
    /// ```
    /// use floe_store::{Item, Name};
    ///
    /// let item = Item::new().with("id", "o-1").with("quantity", 3).with("state", "open");
    /// let names = ["state", "id", "colour"].map(Name::from);
    /// assert_eq!(item.pick(&names), Item::new().with("id", "o-1").with("state", "open"));
    /// ```
    #[must_use]
    pub fn pick<'n>(&self, names: impl IntoIterator<Item = &'n Name>) -> Self {
        let attribute = |name: &Name| Some((name.clone(), self.value_ref(name)?.to_value()));
        names.into_iter().filter_map(attribute).collect()
    }

    /// Whether the attribute exists.
    pub fn contains(&self, name: &str) -> bool {
        match &self.form {
            Form::Unpacked(attributes) => find(attributes, name).is_some(),
            Form::Packed(packed) => packed.contains(name),
        }
    }

    /// Returns statistics of the item, if it is packed.
    pub(crate) fn stats(&self) -> Option<&ItemStats> {
        self.packed().map(Packed::stats)
    }

    /// Returns the item after these changes, in strictly ascending order of names, if it is packed. Unchanged
    /// attributes are copied as bytes.
    pub(crate) fn changed(&self, changes: &[(&Name, AttributeChange<'_>)]) -> Option<Self> {
        let packed = self.packed()?;
        Some(Self::from_packed_form(packed.changed(changes)))
    }

    /// Returns the number of attributes.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Unpacked(attributes) => attributes.len(),
            Form::Packed(packed) => packed.len(),
        }
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the attributes in the order of their names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Name, &Value)> + ExactSizeIterator {
        self.attributes().iter().map(|(name, value)| (name, value))
    }

    fn attributes(&self) -> &[(Name, Value)] {
        match &self.form {
            Form::Unpacked(attributes) => attributes,
            Form::Packed(packed) => packed.attributes(),
        }
    }

    /// Returns the attributes for changing them.
    fn unpacked_mut(&mut self) -> &mut Vec<(Name, Value)> {
        if let Form::Packed(_) = self.form {
            *self = Self::from_sorted(std::mem::take(self).into_attributes());
        }
        match &mut self.form {
            Form::Unpacked(attributes) => attributes,
            Form::Packed(_) => unreachable!("unpacked above"),
        }
    }

    fn into_attributes(self) -> Vec<(Name, Value)> {
        match self.form {
            Form::Unpacked(attributes) => attributes,
            Form::Packed(packed) => match Arc::try_unwrap(packed) {
                Ok(packed) => packed.into_attributes(),
                Err(shared) => shared.attributes().to_vec(),
            },
        }
    }
}

/// Finds a value by name among sorted attributes.
fn find<'a>(attributes: &'a [(Name, Value)], name: &str) -> Option<&'a Value> {
    let (_, value) = attributes.get(position(attributes, name).ok()?)?;
    Some(value)
}

fn position(attributes: &[(Name, Value)], name: &str) -> Result<usize, usize> {
    attributes.binary_search_by(|(probe, _)| probe.as_str().cmp(name))
}

impl Default for Item {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        match (&self.form, &other.form) {
            // Equal items have equal bytes.
            (Form::Packed(a), Form::Packed(b)) => a.bytes() == b.bytes(),
            _ => self.attributes() == other.attributes(),
        }
    }
}

impl Eq for Item {}

impl Hash for Item {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.attributes().hash(state);
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

impl From<Vec<(Name, Value)>> for Item {
    /// Accepts attributes in any order. Of several with the same name, the last one wins.
    fn from(mut attributes: Vec<(Name, Value)>) -> Self {
        if !attributes.is_sorted_by(|(one, _), (next, _)| one < next) {
            // After reversing, the stable sort puts the last attribute of each name first, where it is kept.
            attributes.reverse();
            attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
            attributes.dedup_by(|(later, _), (kept, _)| later == kept);
        }
        Self::from_sorted(attributes)
    }
}

impl IntoIterator for Item {
    type Item = (Name, Value);
    type IntoIter = std::vec::IntoIter<(Name, Value)>;
    fn into_iter(self) -> Self::IntoIter {
        self.into_attributes().into_iter()
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_attribute_of_a_name_wins_in_unordered_input() {
        let attributes = [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5), ("b", 6)];
        let item = Item::from(Vec::from(
            attributes.map(|(name, n)| (Name::from(name), Value::from(n))),
        ));
        assert_eq!(item, Item::new().with("a", 5).with("b", 6).with("c", 4));
    }

    #[test]
    fn attributes_stay_sorted_regardless_of_insertion_order() {
        let mut item = Item::new().with("b", 1).with("a", 2).with("c", 3);
        assert_eq!(item.insert("b", 4), Some(Value::from(1)));
        assert_eq!(item.remove("a"), Some(Value::from(2)));
        assert_eq!(item.remove("a"), None);
        let names: Vec<_> = item.iter().map(|(n, _)| n.to_string()).collect();
        assert_eq!(names, ["b", "c"]);
        assert_eq!(item.get("b"), Some(&Value::from(4)));
    }
}
