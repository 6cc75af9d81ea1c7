//! What a deletion in steps removes of a marked entity: edges, some at a time, with the numbers that count them where they
//! lead to, and entries.
//!
//! Each step depends on the mark, and answers `None` where there is none any more.

use std::collections::BTreeSet;

use floe_store::expr::Update;
use floe_store::op::{DeleteItem, TransactWrite};

use super::incoming::{LAG_TRIES, lagging};
use super::job::Job;
use crate::error::Result;
use crate::graph::changes::EdgeChangeKind;
use crate::graph::keys::{Place, places};
use crate::graph::reads;
use crate::graph::steps::send;
use crate::graph::stored::{Edge, SUBJECT_KEY, Stored, UNIQUE_KEY};
use crate::graph::writes::{
    contended, count, counts, edge_writes, entity_update, exists, is_holder, is_leaving, release,
};

/// How often the same edges are removed anew because somebody else has removed some of them.
const REMOVALS_MAX: u32 = 50;

impl Job<'_> {
    pub(super) async fn remove_outgoing(&mut self, place: &Place) -> Result<Option<()>> {
        // Each edge may need its object's item as well, and all of them the entity's.
        let some = (self.items_max().saturating_sub(1) / 2).max(1);
        loop {
            let edges = self.reads().outgoing(place, None, Some(some)).await?;
            if edges.is_empty() {
                return Ok(Some(()));
            }
            self.follow_all(place, &edges).await?;
            if self.remove_edges(place, edges).await?.is_none() {
                return Ok(None);
            }
            self.tell(place, 0);
        }
    }

    /// Removes the edges that lead to an entity, until it says that there are none. Tells the entity as it is then.
    pub(super) async fn remove_incoming(&mut self, place: &Place) -> Result<Option<Stored>> {
        let some = self.items_max().saturating_sub(1).max(1);
        let mut tries = 0;
        loop {
            let stored = self.reads().entity(place).await?;
            let Some(stored) = stored.filter(|stored| stored.is_leaving) else {
                return Ok(None);
            };
            if stored.incoming == 0 {
                return Ok(Some(stored));
            }
            let edges = self.reads().incoming(place, Some(some)).await?;
            self.follow_all(place, &edges).await?;
            let Some(removed) = self.remove_edges(place, edges).await? else {
                return Ok(None);
            };
            self.tell(place, stored.incoming.saturating_sub(removed));
            if removed > 0 {
                tries = 0;
                continue;
            }
            tries += 1;
            if tries > LAG_TRIES {
                return Err(lagging(place, stored.incoming, 0));
            }
            self.reads().pause(tries).await;
        }
    }

    /// Removes edges of a marked entity and counts them where they led to. Tells how many there were.
    async fn remove_edges(&mut self, place: &Place, mut edges: Vec<Edge>) -> Result<Option<u64>> {
        let mut gone = BTreeSet::new();
        for _ in 0..REMOVALS_MAX {
            if edges.is_empty() {
                return Ok(Some(0));
            }
            let writes = self.removal(place, &edges, &gone)?;
            if send(self.db, writes).await?.is_applied() {
                let removed = edges.len() as u64;
                self.deleted.edges += removed;
                return Ok(Some(removed));
            }
            if !self.is_leaving(place).await? {
                return Ok(None);
            }
            // Some are gone, or lead to nothing.
            edges = self.reads().still_there(self.scope, edges).await?;
            gone = self.missing_objects(&edges).await?;
        }
        Err(contended(place, REMOVALS_MAX))
    }

    /// What edges lead to that is not there.
    async fn missing_objects(&self, edges: &[Edge]) -> Result<BTreeSet<Place>> {
        let places = places(self.scope, edges.iter().map(|edge| &edge.object))?;
        let found = self.reads().entities(&places).await?;
        let mut missing = BTreeSet::from_iter(places);
        missing.retain(|place| !found.contains_key(place));
        Ok(missing)
    }

    /// The writes that remove edges of a marked entity, which are there and lead to something, except to what is gone.
    fn removal(
        &self,
        place: &Place,
        edges: &[Edge],
        gone: &BTreeSet<Place>,
    ) -> Result<Vec<TransactWrite>> {
        let edges = edges.iter().map(|edge| (edge, EdgeChangeKind::Remove));
        let objects = counts(edges.clone());
        let mut writes = edge_writes(self.schema(), self.scope, edges)?;
        if !objects.contains_key(&place.key) {
            writes.push(self.marked(place));
        }
        for (object, by) in objects {
            let object = Place::new(self.scope, object.clone())?;
            if gone.contains(&object) {
                continue;
            }
            let is_own = object == *place;
            let is_there = if is_own { is_leaving() } else { exists() };
            let update = count(Update::new(), by);
            writes.push(entity_update(self.schema(), &object, update, is_there));
        }
        Ok(writes)
    }

    /// Removes what is left of the entries and claims of a marked entity.
    pub(super) async fn remove_entries(
        &self,
        place: &Place,
        stored: &Stored,
    ) -> Result<Option<()>> {
        let table = self.schema().entries();
        for (index, key) in stored.claims() {
            let claim = release(self.schema(), &place.scope, index, key);
            let claim = claim.condition(is_holder(&place.key));
            // Refused, it is gone already, or somebody else's.
            send(self.db, vec![claim.into(), self.marked(place)]).await?;
        }
        let entries = reads::entries_query(self.schema(), place);
        let entries = self.reads().query(entries, None).await?;
        for some in entries.chunks(self.items_max().saturating_sub(1).max(1)) {
            let deletes = some.iter().map(|entry| {
                let key = entry.pick(&[SUBJECT_KEY, UNIQUE_KEY]);
                DeleteItem::new(table.as_str(), key).into()
            });
            let writes = std::iter::once(self.marked(place)).chain(deletes);
            if !send(self.db, writes.collect()).await?.is_applied() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }
}
