//! Items: what a table holds, and what a map value is.
//!
//! An item is a vector sorted by attribute name. Items are small and read far more often than
//! changed, so a sorted vector beats a tree or a hash map on each point that matters here: one
//! allocation, cheap decoding in stored order, and one order for equality, hashing and bytes.
//!
//! An item that comes from an engine stays in its [packed](Item::from_packed) form until someone asks
//! for its attributes. Much of what is read is only passed on, counted, or asked for one attribute.

mod packed;
mod peek;
mod visit;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::text::Name;
use crate::value::Value;
use packed::Packed;
pub(crate) use packed::{Change, Measure};

pub use peek::{Attributes, Elements, Peek};
pub use visit::{Container, ItemVisitor, Scalar};

/// A set of named values: a row of a table, a key, or the inside of a map value.
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
    /// Sorted by name, each name once.
    Open(Vec<(Name, Value)>),
    /// As it was stored. Copies of the item share it.
    Packed(Arc<Packed>),
}

impl Item {
    /// An item without attributes.
    pub const fn new() -> Self {
        Self::of_sorted(Vec::new())
    }

    /// An item without attributes, with room for so many.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::of_sorted(Vec::with_capacity(capacity))
    }

    /// An item of these attributes, each name greater than the one before.
    const fn of_sorted(attributes: Vec<(Name, Value)>) -> Self {
        let form = Form::Open(attributes);
        Self { form }
    }
    /// The item of the bytes that [`pack_into`](Self::pack_into) has written; `None` for others.
    ///
    /// All of the bytes are checked, and copied. Values are made when they are first asked for.
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
        Packed::check(bytes).map(Self::of_packed)
    }

    fn of_packed(packed: Packed) -> Self {
        let form = Form::Packed(Arc::new(packed));
        Self { form }
    }

    /// What is packed, if it is.
    fn packed(&self) -> Option<&Packed> {
        match &self.form {
            Form::Open(_) => None,
            Form::Packed(packed) => Some(packed),
        }
    }

    /// Appends the item as an engine stores it: compact, the same bytes for equal items.
    pub fn pack_into(&self, out: &mut Vec<u8>) {
        match &self.form {
            Form::Open(attributes) => packed::pack(out, attributes),
            Form::Packed(packed) => out.extend_from_slice(packed.bytes()),
        }
    }

    /// The bytes that [`pack_into`](Self::pack_into) appends, if that is known without packing: for an item that was
    /// packed and not changed since.
    pub fn packed_bytes(&self) -> Option<usize> {
        self.packed().map(|packed| packed.bytes().len())
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
        let attributes = self.open();
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

    /// Removes an attribute and returns the value that it had.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let attributes = self.open();
        let at = position(attributes, name).ok()?;
        Some(attributes.remove(at).1)
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match &self.form {
            Form::Open(attributes) => find(attributes, name),
            Form::Packed(packed) => packed.get(name),
        }
    }

    /// The value of an attribute, to be changed in place.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let attributes = self.open();
        let at = position(attributes, name).ok()?;
        attributes.get_mut(at).map(|(_, value)| value)
    }

    /// Copies of these attributes, where they are there: a key, or a projection.
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
        let attribute = |name: &Name| Some((name.clone(), self.peek_at(name)?.to_value()));
        names.into_iter().filter_map(attribute).collect()
    }

    /// Whether the attribute is there.
    pub fn contains(&self, name: &str) -> bool {
        match &self.form {
            Form::Open(attributes) => find(attributes, name).is_some(),
            Form::Packed(packed) => packed.contains(name),
        }
    }

    /// What it weighs and how deep it is, if it is packed.
    pub(crate) fn measure(&self) -> Option<&Measure> {
        self.packed().map(Packed::measure)
    }

    /// The item with these attributes changed, each name greater than the one before, if it is packed: the others are
    /// copied as they are.
    pub(crate) fn changed(&self, changes: &[(&Name, Change<'_>)]) -> Option<Self> {
        let packed = self.packed()?;
        Some(Self::of_packed(packed.changed(changes)))
    }

    /// How many attributes there are.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Open(attributes) => attributes.len(),
            Form::Packed(packed) => packed.len(),
        }
    }

    /// Whether there is no attribute.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The attributes in the order of their names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Name, &Value)> + ExactSizeIterator {
        self.attributes().iter().map(|(name, value)| (name, value))
    }

    fn attributes(&self) -> &[(Name, Value)] {
        match &self.form {
            Form::Open(attributes) => attributes,
            Form::Packed(packed) => packed.attributes(),
        }
    }

    /// The attributes, to be changed.
    fn open(&mut self) -> &mut Vec<(Name, Value)> {
        if let Form::Packed(_) = self.form {
            *self = Self::of_sorted(std::mem::take(self).into_attributes());
        }
        match &mut self.form {
            Form::Open(attributes) => attributes,
            Form::Packed(_) => unreachable!("opened above"),
        }
    }

    fn into_attributes(self) -> Vec<(Name, Value)> {
        match self.form {
            Form::Open(attributes) => attributes,
            Form::Packed(packed) => match Arc::try_unwrap(packed) {
                Ok(packed) => packed.into_attributes(),
                Err(shared) => shared.attributes().to_vec(),
            },
        }
    }
}

/// The value of this name among sorted attributes.
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
    /// Of attributes in any order. Of several with the same name the last one counts.
    fn from(mut attributes: Vec<(Name, Value)>) -> Self {
        if !attributes.is_sorted_by(|(one, _), (next, _)| one < next) {
            // What comes last of a name stands first, where it is kept.
            attributes.reverse();
            attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
            attributes.dedup_by(|(later, _), (kept, _)| later == kept);
        }
        Self::of_sorted(attributes)
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
    fn of_attributes_in_any_order_the_last_of_a_name_counts() {
        let attributes = [("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5), ("b", 6)];
        let item = Item::from(Vec::from(
            attributes.map(|(name, n)| (Name::from(name), Value::from(n))),
        ));
        assert_eq!(item, Item::new().with("a", 5).with("b", 6).with("c", 4));
    }

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
