//! Hides entities under deletion from readers. Their edges exist until they are removed.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, ScopedKey};
use crate::graph::node::Node;
use crate::graph::reads::intents_query;
use crate::graph::stored::{self, DELETIONS_ID, Edge, StoredEntity};

impl Graph<'_> {
    /// Leaves out edges from and to entities under deletion, with one more query if stored are edges. The query is sent
    /// last, so that it covers all deletions that may have started before the edges were read.
    pub(in crate::graph) async fn hide_deleting(&self, mut edges: Vec<Edge>) -> Result<Vec<Edge>> {
        if edges.is_empty() {
            return Ok(edges);
        }
        let deleting = self.deleting(&edges).await?;
        edges.retain(|edge| !deleting.contains(&edge.subject) && !deleting.contains(&edge.object));
        Ok(edges)
    }

    /// The ends of these edges that are under deletion.
    async fn deleting(&self, edges: &[Edge]) -> Result<BTreeSet<EntityKey>> {
        let reads = self.reads();
        let query = intents_query(self.db.graph_schema(), DELETIONS_ID, &self.scope);
        let page = reads.page(&query).await?;
        if page.last_key.is_none() {
            return page.items.iter().map(stored::intent_owner).collect();
        }
        // With this many deletions, it is cheaper to read the ends of the edges.
        let ends = edges.iter().flat_map(|edge| [&edge.subject, &edge.object]);
        let scoped_keys = self.scoped_keys(ends)?;
        let found = reads.entities(&scoped_keys).await?.into_iter();
        let deleting = found.filter(|(_, stored)| stored.is_deleting);
        Ok(deleting.map(|(scoped_key, _)| scoped_key.key).collect())
    }

    /// Joins edges that share one end with the entities at the other end, or `None` if that does not exist. Leaves out
    /// edges of entities under deletion. Also returns whether the shared end exists.
    pub(in crate::graph) async fn join_ends(
        &self,
        edges: Vec<Edge>,
        shared: &ScopedKey,
        end: impl Fn(&Edge) -> &EntityKey,
    ) -> Result<(bool, Vec<(Edge, Option<Node>)>)> {
        if edges.is_empty() {
            return Ok((false, Vec::new()));
        }
        let mut scoped_keys = self.scoped_keys(edges.iter().map(&end))?;
        scoped_keys.push(shared.clone());
        let found = self.load_entities(&scoped_keys).await?;
        let is_there = match found.get(shared) {
            Some(shared) if shared.is_deleting => return Ok((false, Vec::new())),
            shared => shared.is_some(),
        };
        let mut joined = Vec::with_capacity(edges.len());
        for edge in self.confirmed(edges, &found, &end).await? {
            match found.get(&self.scoped_key(end(&edge))?) {
                Some(stored) if stored.is_deleting => {}
                stored => joined.push((edge, stored.map(|stored| stored.node.clone()))),
            }
        }
        Ok((is_there, joined))
    }

    /// Leaves out edges whose end was not found and that have been removed since: both may disappear between two
    /// requests. The remaining ones have a missing end.
    pub(in crate::graph) async fn confirmed(
        &self,
        mut edges: Vec<Edge>,
        found: &BTreeMap<ScopedKey, StoredEntity>,
        end: impl Fn(&Edge) -> &EntityKey,
    ) -> Result<Vec<Edge>> {
        // A transaction sees edges that are not stored yet.
        if self.tx.is_some() {
            return Ok(edges);
        }
        let is_found = |edge: &Edge| {
            let scoped_key = ScopedKey {
                scope: self.scope.clone(),
                key: end(edge).clone(),
            };
            found.contains_key(&scoped_key)
        };
        let unconfirmed: Vec<Edge> = edges.iter().filter(|e| !is_found(e)).cloned().collect();
        if unconfirmed.is_empty() {
            return Ok(edges);
        }
        let stored = self.reads().still_stored(&self.scope, unconfirmed).await?;
        edges.retain(|edge| is_found(edge) || stored.contains(edge));
        Ok(edges)
    }
}
