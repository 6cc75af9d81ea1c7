//! Entities: typed ones, and the form that needs no type.

use floe_store::{Item, Name, Value};

use super::keys::{EntityKey, ToId, invalid};
use crate::error::Result;

/// A struct whose values are entities of one type. Derived, not written by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    label = "not an entity",
    note = "add `#[derive(floe::Entity)]`, or use `floe::graph::Node` for data without a type"
)]
pub trait Entity: Sized + Send + Sync + 'static {
    /// The name of the type.
    const TYPE: &'static str;

    /// The text of the id.
    fn id_text(&self) -> String;

    /// Everything but the id, as it is stored.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a field has no form in the store.
    fn to_attributes(&self) -> Result<Item>;

    /// The value of a stored entity.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is of another form.
    fn from_node(node: &Node) -> Result<Self>;
}

/// An entity without a Rust type: a key and attributes.
///
/// ```
/// use floe::graph::Node;
/// use floe_store::Value;
///
/// let node = Node::new("author", "ann").with("name", "Ann").with("born", 1970);
/// assert_eq!(node.get("name"), Some(&Value::from("Ann")));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// Its type and id.
    pub key: EntityKey,
    /// All that is known of it.
    pub attributes: Item,
    /// When it was created, once it is stored.
    pub created: Option<String>,
    /// When it was updated, once it is stored.
    pub updated: Option<String>,
}

impl Node {
    /// An entity without attributes.
    pub fn new(type_name: impl Into<String>, id: impl ToId) -> Self {
        Self::of(EntityKey::new(type_name, id), Item::new())
    }

    pub(crate) const fn of(key: EntityKey, attributes: Item) -> Self {
        Self {
            key,
            attributes,
            created: None,
            updated: None,
        }
    }

    /// The same with this attribute.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name, value);
        self
    }

    /// An attribute, if it is there.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name)
    }
}

/// Something that names an entity: a key, a pair of type and id, or the entity itself.
pub trait ToKey {
    /// The key.
    fn to_key(&self) -> EntityKey;
}

impl ToKey for EntityKey {
    fn to_key(&self) -> EntityKey {
        self.clone()
    }
}

impl ToKey for Node {
    fn to_key(&self) -> EntityKey {
        self.key.clone()
    }
}

impl<T: AsRef<str>, I: ToId> ToKey for (T, I) {
    fn to_key(&self) -> EntityKey {
        EntityKey::new(self.0.as_ref(), &self.1)
    }
}

impl<E: Entity> ToKey for E {
    fn to_key(&self) -> EntityKey {
        EntityKey::new(E::TYPE, self.id_text())
    }
}

/// Something that can be stored: an entity, typed or not.
pub trait ToNode: ToKey {
    /// The form that is stored.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a field has no form in the store.
    fn to_node(&self) -> Result<Node>;
}

impl ToNode for Node {
    fn to_node(&self) -> Result<Node> {
        Ok(self.clone())
    }
}

impl<E: Entity> ToNode for E {
    fn to_node(&self) -> Result<Node> {
        Ok(Node::of(self.to_key(), self.to_attributes()?))
    }
}

/// Something that can be loaded: an entity, typed or not.
pub trait FromNode: Sized {
    /// The value of a stored entity.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is of another form.
    fn from_node(node: Node) -> Result<Self>;
}

impl FromNode for Node {
    fn from_node(node: Node) -> Result<Self> {
        Ok(node)
    }
}

impl<E: Entity> FromNode for E {
    fn from_node(node: Node) -> Result<Self> {
        E::from_node(&node)
    }
}

/// Refuses names that are the graph's own, and empty ones.
pub(crate) fn check_names(attributes: &Item) -> Result<()> {
    for (name, _) in attributes.iter() {
        if name.is_empty() {
            return Err(invalid("attributes", "the name of an attribute is empty"));
        }
        if name.starts_with('_') {
            return Err(invalid(
                name,
                "names of attributes that begin with an underscore are the graph's own",
            ));
        }
    }
    Ok(())
}

/// Merges new attributes into old ones: maps are merged name by name, everything else is replaced.
pub(crate) fn merge(old: &mut Item, new: &Item) {
    for (name, value) in new.iter() {
        match (old.get_mut(name), value) {
            (Some(Value::M(old)), Value::M(new)) => merge(old, new),
            _ => {
                old.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_merged_and_everything_else_is_replaced() {
        let map = |pairs: &[(&str, i64)]| -> Value {
            Value::M(
                pairs
                    .iter()
                    .map(|(name, number)| (*name, *number))
                    .collect(),
            )
        };
        let mut old = Item::new()
            .with("a", map(&[("x", 1), ("y", 2)]))
            .with("b", 1)
            .with("c", map(&[("x", 1)]));
        let new = Item::new()
            .with("a", map(&[("y", 3), ("z", 4)]))
            .with("b", map(&[("x", 1)]))
            .with("c", 5)
            .with("d", 6);
        merge(&mut old, &new);
        let merged = Item::new()
            .with("a", map(&[("x", 1), ("y", 3), ("z", 4)]))
            .with("b", map(&[("x", 1)]))
            .with("c", 5)
            .with("d", 6);
        assert_eq!(old, merged);
    }

    #[test]
    fn names_of_the_graph_are_refused() {
        assert!(check_names(&Item::new().with("name", 1)).is_ok());
        assert!(check_names(&Item::new().with("_meta", 1)).is_err());
        assert!(check_names(&Item::new().with("", 1)).is_err());
    }
}
