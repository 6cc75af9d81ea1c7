//! Entities: getting, creating and changing them.

mod write;

use super::handle::Graph;
use super::keys::{EntityKey, ToId};
use super::node::{Entity, Node, ToKey, ToNode};
use crate::error::Result;
use write::Change;

impl Graph<'_> {
    /// Gets an entity, if it is there.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the id is no part of a key, or what is stored is of another form,
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer.
    pub async fn get<E: Entity>(&self, id: impl ToId) -> Result<Option<E>> {
        let node = self.get_node(&EntityKey::new(E::TYPE, id)).await?;
        node.map(|node| E::from_node(&node)).transpose()
    }

    /// Gets any number of entities, in batches; as many answers as ids, in their order.
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

    /// Gets an entity of any type.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub async fn get_node(&self, key: &impl ToKey) -> Result<Option<Node>> {
        let place = self.place(&key.to_key())?;
        Ok(self.load_place(&place).await?.map(|stored| stored.node))
    }

    /// Gets any number of entities of any types, in batches.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub async fn get_nodes<K: ToKey>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Node>>> {
        let keys: Vec<EntityKey> = keys.into_iter().map(|key| key.to_key()).collect();
        let places = self.places(&keys)?;
        let found = self.load_places(&places).await?;
        let nodes = places.iter().map(|place| {
            let stored = found.get(place).filter(|stored| !stored.is_leaving);
            stored.map(|stored| stored.node.clone())
        });
        Ok(nodes.collect())
    }

    /// Creates an entity. One with more [entries](crate::graph::MapIndex) than fit into a transaction is there at once, and found
    /// by all its keys when the call has ended.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) when it is there, [`Conflict`](crate::ErrorKind::Conflict) when another has
    /// a key of a unique index, [`InvalidField`](crate::ErrorKind::InvalidField) when it cannot be stored,
    /// [`TooLarge`](crate::ErrorKind::TooLarge).
    pub async fn create(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Create(entity.to_node()?)).await
    }

    /// Merges an entity into the one that is there: maps are merged, everything else is replaced, and what is not named
    /// stays.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when it is not there, and as for [`create`](Self::create).
    pub async fn update(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Update(entity.to_node()?)).await
    }

    /// Merges an entity into the one that is there, or creates it.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub async fn upsert(&self, entity: &impl ToNode) -> Result<()> {
        self.put(&Change::Upsert(entity.to_node()?)).await
    }

    /// Puts an entity in place of the one that is there, or creates it. Its edges stay.
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

    /// Changes an entity that is there. The function runs again if somebody else was faster. Attributes that the type does
    /// not have stay as they are.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) when it is not there, and as for [`create`](Self::create).
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
            // What the type does not know stays.
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

    /// Changes an entity of any type that is there. The function runs again if somebody else was faster.
    ///
    /// # Errors
    ///
    /// As for [`modify`](Self::modify), and [`InvalidUse`](crate::ErrorKind::InvalidUse) when the function changes the key.
    pub async fn modify_node(
        &self,
        key: &impl ToKey,
        change: impl Fn(Node) -> Node + Send + Sync,
    ) -> Result<Node> {
        let modify = |node: Node| Ok(change(node));
        self.write(&Change::Modify(key.to_key(), &modify)).await
    }
}
