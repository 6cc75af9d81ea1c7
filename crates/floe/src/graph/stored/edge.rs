//! Edges.

use floe_store::{Item, Value};
use serde::de::DeserializeOwned;

use super::names::*;
use crate::attribute::document;
use crate::error::{Error, Result};
use crate::graph::keys::{EntityKey, ScopedKey, predicate_key};

/// An edge: a subject, a predicate, an object, and attributes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Edge {
    /// The subject.
    pub subject: EntityKey,
    /// The predicate.
    pub predicate: String,
    /// The object.
    pub object: EntityKey,
    /// Its attributes.
    pub attributes: Item,
    /// Its sort number. The edges of a predicate are ordered by it.
    pub index: u64,
    /// Whether it holds its object, that is, prevents the deletion of its object.
    pub(crate) is_holding: bool,
}

/// The subject of an edge and the edge's key.
pub(crate) type EdgeName = (EntityKey, String);

impl Edge {
    /// Decodes the edge of an item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the item is not an edge.
    pub(crate) fn of_item(item: &Item) -> Result<Self> {
        let index = item.get(&INDEX).and_then(Value::as_n);
        Ok(Self {
            subject: EntityKey::new(text(item, &SUBJECT_TYPE)?, text(item, &SUBJECT_ID)?),
            predicate: text(item, &PREDICATE)?.to_owned(),
            object: EntityKey::new(text(item, &OBJECT_TYPE)?, text(item, &OBJECT_ID)?),
            attributes: attributes(item),
            index: index
                .and_then(|index| index.to_u64())
                .ok_or_else(|| damaged(item, &INDEX))?,
            is_holding: item.get(&HELD) == Some(&Value::Bool(true)),
        })
    }

    /// Reads its attributes as a type.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if they do not match the type.
    pub(crate) fn read_attributes<A: DeserializeOwned>(&self) -> Result<A> {
        let map = Value::M(self.attributes.clone());
        let mut read = document::from_value(Some(&map));
        if self.attributes.is_empty() {
            let none = Value::Null;
            read = read.or_else(|error| document::from_value(Some(&none)).map_err(|_| error));
        }
        read.map_err(|invalid| Error::invalid("edge", &self.predicate, &invalid))
    }

    /// `predicate:index:type:id`.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it is too long for a key.
    pub(crate) fn predicate_key(&self) -> Result<String> {
        predicate_key(&self.predicate, self.index, &self.object)
    }

    /// Its subject and its key, which identify it in its scope.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it is too long for a key.
    pub(crate) fn name(&self) -> Result<EdgeName> {
        Ok((self.subject.clone(), self.predicate_key()?))
    }

    /// The key of its item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it is too long for a key.
    pub(crate) fn key_item(&self, scope: &str) -> Result<Item> {
        let subject = ScopedKey::new(scope, self.subject.clone())?;
        Ok(Item::with_capacity(2)
            .with(SUBJECT_KEY, subject.text())
            .with(PREDICATE_KEY, self.predicate_key()?))
    }

    /// Its item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a key is too long.
    pub(crate) fn to_item(&self, scope: &str) -> Result<Item> {
        let object = ScopedKey::new(scope, self.object.clone())?;
        let mut item = self
            .key_item(scope)?
            .with(OBJECT_KEY, object.text())
            .with(INDEX, self.index)
            .with(SUBJECT_SCOPE, scope)
            .with(SUBJECT_TYPE, self.subject.type_name())
            .with(SUBJECT_ID, self.subject.id())
            .with(PREDICATE, self.predicate.as_str())
            .with(OBJECT_SCOPE, scope)
            .with(OBJECT_TYPE, self.object.type_name())
            .with(OBJECT_ID, self.object.id());
        if self.is_holding {
            item.insert(HELD, true);
        }
        extend(&mut item, &self.attributes);
        Ok(item)
    }
}
