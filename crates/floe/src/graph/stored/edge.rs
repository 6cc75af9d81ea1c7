//! Edges.

use floe_store::{Item, Value};

use super::names::*;
use crate::error::Result;
use crate::graph::keys::{EntityKey, Place, predicate_key};

/// An edge: a subject, a predicate, an object, and what is told of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Edge {
    /// What it leads from.
    pub subject: EntityKey,
    /// What it says.
    pub predicate: String,
    /// What it leads to.
    pub object: EntityKey,
    /// What is told of it.
    pub attributes: Item,
    /// Its number, by which the edges of a predicate are ordered.
    pub index: u64,
    /// Whether it refuses the deletion of its object.
    pub(crate) is_holding: bool,
}

impl Edge {
    /// The edge of an item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is none.
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

    /// `predicate:index:type:id`.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is too long for a key.
    pub(crate) fn predicate_key(&self) -> Result<String> {
        predicate_key(&self.predicate, self.index, &self.object)
    }

    /// The key of its item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is too long for a key.
    pub(crate) fn key_item(&self, scope: &str) -> Result<Item> {
        let subject = Place::new(scope, self.subject.clone())?;
        Ok(Item::with_capacity(2)
            .with(SUBJECT_KEY, subject.text())
            .with(PREDICATE_KEY, self.predicate_key()?))
    }

    /// Its item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a key is too long.
    pub(crate) fn to_item(&self, scope: &str) -> Result<Item> {
        let object = Place::new(scope, self.object.clone())?;
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
