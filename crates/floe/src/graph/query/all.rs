//! All entities of a type, ordered by update time, page by page.

use std::marker::PhantomData;

use floe_store::Item;
use floe_store::expr::KeyCondition;
use floe_store::op::Query;

use crate::cursor::Page;
use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::{check_part, check_scope, type_key};
use crate::graph::node::{Entity, FromNode, Node};
use crate::graph::stored::{ID, SCOPE_TYPE_KEY, StoredEntity, UPDATED};

/// A query of all entities of a type; see [`Graph::all`].
#[derive(Clone, Debug)]
pub struct All<'g, 'tx, E> {
    graph: &'g Graph<'tx>,
    type_name: String,
    is_newest_first: bool,
    limit: Option<usize>,
    after: Option<String>,
    entity: PhantomData<fn() -> E>,
}

impl<'tx> Graph<'tx> {
    /// Queries all entities of a type, ordered by update time.
    pub fn all<E: Entity>(&self) -> All<'_, 'tx, E> {
        All::new(self, E::TYPE)
    }

    /// Queries all entities of a type, untyped.
    pub fn all_of(&self, type_name: &str) -> All<'_, 'tx, Node> {
        All::new(self, type_name)
    }
}

impl<'g, 'tx, E: FromNode> All<'g, 'tx, E> {
    fn new(graph: &'g Graph<'tx>, type_name: &str) -> Self {
        Self {
            graph,
            type_name: type_name.to_owned(),
            is_newest_first: false,
            limit: None,
            after: None,
            entity: PhantomData,
        }
    }

    /// Returns the most recently updated entities first.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.is_newest_first = true;
        self
    }

    /// Maximum number of entities on a page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Continues after a cursor.
    #[must_use]
    pub fn after(mut self, cursor: impl Into<String>) -> Self {
        self.after = Some(cursor.into());
        self
    }

    /// Returns one page, which is one query.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable,
    /// [`InvalidCursor`](crate::ErrorKind::InvalidCursor), [`InvalidField`](crate::ErrorKind::InvalidField) if an
    /// entity does not match its type.
    pub async fn page(&self) -> Result<Page<E>> {
        check_scope(&self.graph.scope)?;
        check_part("type", &self.type_name)?;
        let schema = self.graph.db.graph_schema();
        let name = type_key(&self.graph.scope, &self.type_name);
        let parameters = Item::new()
            .with("type", name.as_str())
            .with("backward", self.is_newest_first);
        let key = KeyCondition::partition(SCOPE_TYPE_KEY, name);
        let mut query = Query::new(schema.entities(), key).index(schema.by_type());
        query.forward = !self.is_newest_first;
        query.limit = self.limit.map(|limit| limit.max(1));
        let (reads, after) = (self.graph.reads(), self.after.as_deref());
        let names = [ID, SCOPE_TYPE_KEY, UPDATED];
        let (items, next) = reads.page_after(query, &parameters, after, &names).await?;
        let mut rows = Vec::with_capacity(items.len());
        for item in &items {
            let stored = StoredEntity::of_item(item)?;
            if !stored.is_deleting {
                rows.push(E::from_node(stored.node)?);
            }
        }
        Ok(Page { rows, next })
    }

    /// Returns all entities.
    ///
    /// # Errors
    ///
    /// As for [`page`](Self::page).
    pub async fn collect(mut self) -> Result<Vec<E>> {
        let mut all = Vec::new();
        loop {
            let page = self.page().await?;
            all.extend(page.rows);
            match page.next {
                Some(next) => self.after = Some(next.into()),
                None => return Ok(all),
            }
        }
    }
}
