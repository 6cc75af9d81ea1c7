//! Hides entities under deletion from readers. Their edges exist until they are removed.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, ScopedKey};
use crate::graph::node::Node;
use crate::graph::reads::intents_query;
use crate::graph::stored::{self, DELETIONS_ID, Edge, EdgeName, StoredEntity};

/// The ends of edges whose deletion in steps matters to a reader of the edges.
#[derive(Default)]
struct Deletions {
    /// Entities under deletion.
    active: BTreeSet<EntityKey>,
    /// Entities whose deletion may have ended since the edges were read.
    ended: BTreeSet<EntityKey>,
}

impl Graph<'_> {
    /// Leaves out edges from and to entities under deletion, with one more query if there are edges. The query is sent
    /// last, so that it covers all deletions that may have started before the edges were read. It also finds those that
    /// have ended since: edges of such entities are read again, since the deletion has removed them, but an entity with
    /// the same key may have been created and linked.
    pub(in crate::graph) async fn hide_deleting(&self, mut edges: Vec<Edge>) -> Result<Vec<Edge>> {
        if edges.is_empty() {
            return Ok(edges);
        }
        let Deletions { active, ended } = self.deletions(&edges).await?;
        let is_of = |entities: &BTreeSet<EntityKey>, edge: &Edge| {
            entities.contains(&edge.subject) || entities.contains(&edge.object)
        };
        edges.retain(|edge| !is_of(&active, edge));
        self.still_there(edges, |edge| is_of(&ended, edge)).await
    }

    /// The deletions of the ends of these edges.
    async fn deletions(&self, edges: &[Edge]) -> Result<Deletions> {
        let reads = self.reads();
        let query = intents_query(self.db.graph_schema(), DELETIONS_ID, &self.scope);
        let page = reads.page(&query).await?;
        let mut deletions = Deletions::default();
        if page.last_key.is_none() {
            for intent in &page.items {
                let entity = stored::intent_owner(intent)?;
                match stored::completed_at(intent) {
                    None => deletions.active.insert(entity),
                    Some(_) => deletions.ended.insert(entity),
                };
            }
            return Ok(deletions);
        }
        // With this many deletions, it is cheaper to read the ends of the edges.
        let ends = edges.iter().flat_map(|edge| [&edge.subject, &edge.object]);
        let scoped_keys = self.scoped_keys(ends)?;
        let found = reads.entities(&scoped_keys).await?;
        for scoped_key in scoped_keys {
            match found.get(&scoped_key) {
                None => deletions.ended.insert(scoped_key.key),
                Some(stored) if stored.is_deleting => deletions.active.insert(scoped_key.key),
                Some(_) => false,
            };
        }
        Ok(deletions)
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
        let edges = if is_there {
            self.confirmed(edges, &found, &end).await?
        } else {
            // If the shared end was deleted since the edges were read, so were they.
            self.still_there(edges, |_| true).await?
        };
        for edge in edges {
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
        edges: Vec<Edge>,
        found: &BTreeMap<ScopedKey, StoredEntity>,
        end: impl Fn(&Edge) -> &EntityKey,
    ) -> Result<Vec<Edge>> {
        let is_missing = |edge: &Edge| {
            let scoped_key = ScopedKey {
                scope: self.scope.clone(),
                key: end(edge).clone(),
            };
            !found.contains_key(&scoped_key)
        };
        self.still_there(edges, is_missing).await
    }

    /// Reads doubtful edges again, and leaves out those that were removed since they were read.
    async fn still_there(
        &self,
        mut edges: Vec<Edge>,
        is_doubtful: impl Fn(&Edge) -> bool,
    ) -> Result<Vec<Edge>> {
        let doubtful = edges.iter().filter(|edge| is_doubtful(edge)).cloned();
        let removed = self.removed_edges(doubtful.collect()).await?;
        if !removed.is_empty() {
            edges.retain(|edge| edge.name().is_ok_and(|name| !removed.contains(&name)));
        }
        Ok(edges)
    }

    /// Reads edges again. Returns those that were removed since they were read.
    pub(in crate::graph) async fn removed_edges(
        &self,
        mut edges: Vec<Edge>,
    ) -> Result<BTreeSet<EdgeName>> {
        if let Some(tx) = self.tx {
            // A transaction sees edges that are not stored yet.
            let own = self.context(tx);
            own.changes(|changes| edges.retain(|edge| !changes.has_edge(own.scope, edge)))?;
        }
        let mut removed: BTreeSet<EdgeName> =
            edges.iter().map(Edge::name).collect::<Result<_>>()?;
        for edge in self.reads().still_stored(&self.scope, edges).await? {
            removed.remove(&edge.name()?);
        }
        Ok(removed)
    }
}
