//! Reads, creates and changes entities.

mod write;

use super::handle::Graph;
use super::keys::{EntityKey, ToId};
use super::node::{Entity, Node, ToKey, ToNode};
use crate::error::Result;
use write::Change;
pub(super) use write::Change as EntityChange;

impl Graph<'_> {
    /// Returns an entity, or `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the id cannot be part of a key or the stored item does not
    /// match the type, [`Store`](crate::ErrorKind::Store) if the store is unavailable.
    pub async fn get<E: Entity>(&self, id: impl ToId) -> Result<Option<E>> {
        let node = self.get_node(&EntityKey::new(E::TYPE, id)).await?;
        node.map(|node| E::from_node(&node)).transpose()
    }

    /// Returns entities in batches of requests: one result for each id, in the same order.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub async fn get_many<E: Entity, I: ToId>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Vec<Option<E>>> {
        let keys = ids.into_iter().map(|id| EntityKey::new(E::TYPE, id));
        let nodes = self.get_nodes(keys).await?.into_iter();
        nodes
            .map(|node| node.map(|node| E::from_node(&node)).transpose())
            .collect()
    }

    /// Returns an entity of any type.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub async fn get_node(&self, key: &impl ToKey) -> Result<Option<Node>> {
        let scoped_key = self.scoped_key(&key.to_key())?;
        Ok(self
            .load_entity(&scoped_key)
            .await?
            .map(|stored| stored.node))
    }

    /// Returns entities of any types, in batches of requests.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub async fn get_nodes<K: ToKey>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Node>>> {
        let keys: Vec<EntityKey> = keys.into_iter().map(|key| key.to_key()).collect();
        let scoped_keys = self.scoped_keys(&keys)?;
        let found = self.load_entities(&scoped_keys).await?;
        let nodes = scoped_keys.iter().map(|scoped_key| {
            let stored = found.get(scoped_key).filter(|stored| !stored.is_deleting);
            stored.map(|stored| stored.node.clone())
        });
        Ok(nodes.collect())
    }

    /// Creates an entity. If its [index entries](crate::graph::MapIndex) do not fit into one transaction, the entity is
    /// visible at once, and found by all its keys when the call returns.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) if it exists, [`Conflict`](crate::ErrorKind::Conflict) if
    /// another entity has the same key in a unique index, [`InvalidField`](crate::ErrorKind::InvalidField) if it cannot
    /// be stored, [`TooLarge`](crate::ErrorKind::TooLarge) if it exceeds the limits of an item.
    pub async fn create(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Create(entity.to_node()?)).await
    }

    /// Replaces the stored entity, which must exist: attributes that `entity` does not have, like a field that is
    /// `None`, are removed. Its edges stay. To keep attributes, call [`modify`](Self::modify) or
    /// [`merge`](Self::merge).
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if it does not exist, and as for [`create`](Self::create).
    pub async fn update(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Update(entity.to_node()?)).await
    }

    /// Merges attributes into the stored entity, which must exist: maps are merged, other attributes are replaced, and
    /// attributes that `entity` does not have stay.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if it does not exist, and as for [`create`](Self::create).
    pub async fn merge(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Merge(entity.to_node()?)).await
    }

    /// Merges an entity into the stored one like [`merge`](Self::merge), or creates it.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub async fn upsert(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Upsert(entity.to_node()?)).await
    }

    /// Replaces the stored entity, or creates it. Its edges stay.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub async fn set(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Set(entity.to_node()?)).await
    }

    async fn put(&self, change: &Change<'_>) -> Result<()> {
        self.write(change).await.map(drop)
    }

    /// Changes an existing entity. The function runs again after a conflict. Attributes that the type does not have
    /// stay unchanged.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if it does not exist, and as for [`create`](Self::create).
    pub async fn modify<E: Entity>(
        &self,
        id: impl ToId,
        change: impl Fn(&mut E) + Send + Sync,
    ) -> Result<E> {
        let modify = |node: Node| {
            let mut entity = E::from_node(&node)?;
            let before = entity.to_attributes()?;
            change(&mut entity);
            let after = entity.to_node()?;
            // Attributes that the type does not have stay.
            let mut attributes = node.attributes;
            for (name, _) in before.iter() {
                attributes.remove(name);
            }
            attributes.extend(after.attributes);
            Ok(Node::of(after.key, attributes))
        };
        let change = Change::Modify(EntityKey::new(E::TYPE, id), &modify);
        E::from_node(&self.write(&change).await?)
    }

    /// Changes an existing entity of any type. The function runs again after a conflict.
    ///
    /// # Errors
    ///
    /// As for [`modify`](Self::modify), and [`InvalidUse`](crate::ErrorKind::InvalidUse) if the function changes the
    /// key.
    pub async fn modify_node(
        &self,
        key: &impl ToKey,
        change: impl Fn(Node) -> Node + Send + Sync,
    ) -> Result<Node> {
        let modify = |node: Node| Ok(change(node));
        self.write(&Change::Modify(key.to_key(), &modify)).await
    }
}
