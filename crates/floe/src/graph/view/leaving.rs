//! Keeping from readers what is being deleted in steps: its edges are there until they are removed.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, Place};
use crate::graph::node::Node;
use crate::graph::reads::intents_query;
use crate::graph::stored::{self, Edge, LEAVING_ID, Stored};

impl Graph<'_> {
    /// Leaves out the edges of what is being deleted, from or to it: one more query, where there are edges at all. It comes
    /// last, so it tells of all deletions that the edges may have been read in the middle of.
    pub(in crate::graph) async fn without_leaving(
        &self,
        mut edges: Vec<Edge>,
    ) -> Result<Vec<Edge>> {
        if edges.is_empty() {
            return Ok(edges);
        }
        let leaving = self.leaving(&edges).await?;
        edges.retain(|edge| !leaving.contains(&edge.subject) && !leaving.contains(&edge.object));
        Ok(edges)
    }

    /// What is being deleted, of all that these edges join.
    async fn leaving(&self, edges: &[Edge]) -> Result<BTreeSet<EntityKey>> {
        let reads = self.reads();
        let query = intents_query(self.db.graph_schema(), LEAVING_ID, &self.scope);
        let page = reads.page(&query).await?;
        if page.last_key.is_none() {
            return page.items.iter().map(stored::intent_owner).collect();
        }
        // So much is being deleted that it takes less to look at what the edges join.
        let ends = edges.iter().flat_map(|edge| [&edge.subject, &edge.object]);
        let places = self.places(ends)?;
        let found = reads.entities(&places).await?.into_iter();
        let leaving = found.filter(|(_, stored)| stored.is_leaving);
        Ok(leaving.map(|(place, _)| place.key).collect())
    }

    /// Joins edges that share one end with what is at the other, `None` where that leads to nothing. Edges of what is being
    /// deleted are left out. Also returns whether the shared end is there.
    pub(in crate::graph) async fn joined(
        &self,
        edges: Vec<Edge>,
        shared: &Place,
        end: impl Fn(&Edge) -> &EntityKey,
    ) -> Result<(bool, Vec<(Edge, Option<Node>)>)> {
        if edges.is_empty() {
            return Ok((false, Vec::new()));
        }
        let mut places = self.places(edges.iter().map(&end))?;
        places.push(shared.clone());
        let found = self.load_places(&places).await?;
        let is_there = match found.get(shared) {
            Some(shared) if shared.is_leaving => return Ok((false, Vec::new())),
            shared => shared.is_some(),
        };
        let mut joined = Vec::with_capacity(edges.len());
        for edge in self.confirmed(edges, &found, &end).await? {
            match found.get(&self.place(end(&edge))?) {
                Some(stored) if stored.is_leaving => {}
                stored => joined.push((edge, stored.map(|stored| stored.node.clone()))),
            }
        }
        Ok((is_there, joined))
    }

    /// Leaves out edges to what was not found, if they are gone by now: both went between two requests. What is left leads
    /// to nothing.
    pub(in crate::graph) async fn confirmed(
        &self,
        mut edges: Vec<Edge>,
        found: &BTreeMap<Place, Stored>,
        end: impl Fn(&Edge) -> &EntityKey,
    ) -> Result<Vec<Edge>> {
        // A transaction sees edges that are not stored yet.
        if self.tx.is_some() {
            return Ok(edges);
        }
        let is_found = |edge: &Edge| {
            let place = Place {
                scope: self.scope.clone(),
                key: end(edge).clone(),
            };
            found.contains_key(&place)
        };
        let doubtful: Vec<Edge> = edges.iter().filter(|e| !is_found(e)).cloned().collect();
        if doubtful.is_empty() {
            return Ok(edges);
        }
        let there = self.reads().still_there(&self.scope, doubtful).await?;
        edges.retain(|edge| is_found(edge) || there.contains(edge));
        Ok(edges)
    }
}
