//! Entities: typed ones, and the untyped `Node`.

use std::fmt;
use std::marker::PhantomData;

use floe_store::{Item, Name, Value};

use super::keys::{EntityKey, ToId, invalid};
use crate::error::{Error, ErrorKind, Result};

/// A struct whose values are entities of one type. Implemented by `#[derive(floe::Entity)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an entity",
    label = "not an entity",
    note = "add `#[derive(floe::Entity)]`, or use `floe::graph::Node` for data without a type"
)]
pub trait Entity: Sized + Send + Sync + 'static {
    /// The type name.
    const TYPE: &'static str;

    /// Returns the id as text.
    fn id_text(&self) -> String;

    /// Returns all attributes except the id, as stored.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a field cannot be stored.
    fn to_attributes(&self) -> Result<Item>;

    /// Converts a stored entity.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it does not match the type.
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
    /// Its attributes.
    pub attributes: Item,
    /// When it was created. `None` until it is stored.
    pub created: Option<String>,
    /// When it was last updated. `None` until it is stored.
    pub updated: Option<String>,
}

impl Node {
    /// Creates an entity without attributes.
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

    /// Sets an attribute.
    #[must_use]
    pub fn with(mut self, name: impl Into<Name>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name, value);
        self
    }

    /// Returns an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.get(name)
    }
}

/// Identifies an entity: a key, a pair of type and id, or the entity itself.
pub trait ToKey {
    /// Returns the key.
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

/// The key of an entity whose type is known: identifies it where a typed entity is expected, without its value.
///
/// ```
/// use floe::Entity;
/// use floe::graph::{EntityKey, KeyOf, ToKey};
///
/// #[derive(Entity)]
/// struct Author { id: String, name: String }
///
/// let ann = KeyOf::<Author>::new("ann");
/// assert_eq!(ann.to_key(), EntityKey::new("author", "ann"));
/// assert!(KeyOf::<Author>::try_from(EntityKey::new("article", "a-1")).is_err());
/// # Ok::<(), floe::Error>(())
/// ```
pub struct KeyOf<E> {
    key: EntityKey,
    entity: PhantomData<fn() -> E>,
}

impl<E: Entity> KeyOf<E> {
    /// Returns the key with this id.
    pub fn new(id: impl ToId) -> Self {
        Self {
            key: EntityKey::new(E::TYPE, id),
            entity: PhantomData,
        }
    }
}

impl<E> Clone for KeyOf<E> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            entity: PhantomData,
        }
    }
}

impl<E> PartialEq for KeyOf<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for KeyOf<E> {}

impl<E> fmt::Debug for KeyOf<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeyOf").field(&self.key).finish()
    }
}

impl<E> ToKey for KeyOf<E> {
    fn to_key(&self) -> EntityKey {
        self.key.clone()
    }
}

/// Fails with [`InvalidUse`](ErrorKind::InvalidUse) if the key has another type.
impl<E: Entity> TryFrom<EntityKey> for KeyOf<E> {
    type Error = Error;

    fn try_from(key: EntityKey) -> Result<Self> {
        if key.type_name() == E::TYPE {
            let entity = PhantomData;
            return Ok(Self { key, entity });
        }
        let expected = E::TYPE;
        let message = format!("the key has another type: expected={expected} actual={key}");
        Err(Error::new(ErrorKind::InvalidUse, message))
    }
}

/// Identifies an entity of type `E`: the entity itself, or its [`KeyOf`]. Where untyped entities ([`Node`]) are
/// expected, every [`ToKey`] does.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not identify an entity of type `{E}`",
    label = "expected `{E}` or `KeyOf<{E}>`",
    note = "the relation declares the types of its subjects and objects; an id alone is `KeyOf::<{E}>::new(id)`"
)]
pub trait ToKeyOf<E>: ToKey {}

impl<E: Entity> ToKeyOf<E> for E {}

impl<E: Entity> ToKeyOf<E> for KeyOf<E> {}

impl<K: ToKey> ToKeyOf<Node> for K {}

/// An entity that can be stored, typed or untyped.
pub trait ToNode: ToKey {
    /// Converts the entity to its stored form.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a field cannot be stored.
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

/// An entity that can be loaded, typed or untyped.
pub trait FromNode: Sized {
    /// Converts a stored entity.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it does not match the type.
    fn from_node(node: Node) -> Result<Self>;
}

impl FromNode for Node {
    fn from_node(node: Node) -> Result<Self> {
        Ok(node)
    }
}

impl<E: Entity> FromNode for E {
    fn from_node(node: Node) -> Result<Self> {
        if node.key.type_name() != E::TYPE {
            let (expected, actual) = (E::TYPE, &node.key);
            let reason =
                format!("the entity has another type: expected={expected} actual={actual}");
            return Err(invalid("type", &reason));
        }
        E::from_node(&node)
    }
}

/// Rejects empty attribute names and names that are reserved for the graph.
pub(crate) fn check_names(attributes: &Item) -> Result<()> {
    for (name, _) in attributes.iter() {
        if name.is_empty() {
            return Err(invalid("attributes", "an attribute name is empty"));
        }
        if name.starts_with('_') {
            return Err(invalid(
                name,
                "attribute names that begin with an underscore are reserved",
            ));
        }
    }
    Ok(())
}

/// Merges new attributes into old ones: maps are merged recursively, other values are replaced.
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
    fn reserved_attribute_names_are_rejected() {
        assert!(check_names(&Item::new().with("name", 1)).is_ok());
        assert!(check_names(&Item::new().with("_meta", 1)).is_err());
        assert!(check_names(&Item::new().with("", 1)).is_err());
    }
}
