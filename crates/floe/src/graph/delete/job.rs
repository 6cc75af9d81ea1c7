//! Deletions that do not fit into one transaction: done in steps, each of which can be the last before a crash.
//!
//! First the entity is marked and an intent is noted, in one transaction, in which its entries in the indexes go as well if
//! they fit. From then on it is gone for readers, and nothing can be linked to it. Then its edges go, some at a time, and
//! the number of edges that lead to it with them (`removal.rs`); at last, when that number is 0, the entity and the intent.
//!
//! Every step depends on the mark. So doing one again does no harm, whoever finds an intent can go on, also several at
//! once, and who comes too late does nothing to an entity that was created anew under the same key.

use std::collections::BTreeSet;

use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{ConditionCheck, DeleteItem, TransactWrite};
use floe_store::{Item, Number, Value};
use tracing::Instrument;

use super::incoming::incoming_of;
use super::plan::{follower, restricted};
use super::progress::{Deleted, Listener, Progress};
use crate::db::Db;
use crate::error::Result;
use crate::graph::keys::Place;
use crate::graph::reads::Reads;
use crate::graph::schema::GraphSchema;
use crate::graph::steps::send;
use crate::graph::stored::{
    self, BEHIND_ID, Edge, HELD_BY, INCOMING, INDEX_ENTRIES, LEAVING, LEAVING_ID, SUBJECT_KEY,
    Stored, VERSION, meta,
};
use crate::graph::telemetry;
use crate::graph::writes::{
    contended, entity_check, entity_update, intent_delete, intent_put, is_leaving, is_number,
    is_version, release,
};

/// How often an entity is marked anew because somebody else has changed it.
const MARKS_MAX: u32 = 50;

pub(super) struct Job<'a> {
    pub(super) db: &'a Db,
    pub(super) scope: &'a str,
    listener: Listener<'a>,
    queue: Vec<Place>,
    /// All that were ever in the queue.
    queued: BTreeSet<Place>,
    /// All that goes, if it had to be found out.
    goes: Option<BTreeSet<Place>>,
    pub(super) deleted: Deleted,
}

impl<'a> Job<'a> {
    pub(super) const fn new(db: &'a Db, scope: &'a str, listener: Listener<'a>) -> Self {
        Self {
            db,
            scope,
            listener,
            queue: Vec::new(),
            queued: BTreeSet::new(),
            goes: None,
            deleted: Deleted {
                entities: 0,
                edges: 0,
                kept: Vec::new(),
            },
        }
    }

    pub(super) const fn reads(&self) -> Reads<'a> {
        Reads {
            db: self.db,
            tx: None,
        }
    }

    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.db.graph_schema()
    }

    /// Deletes an entity and all that goes with it.
    ///
    /// # Errors
    ///
    /// [`Restricted`](crate::ErrorKind::Restricted) when others refer to it; then nothing was done.
    pub(super) async fn delete(mut self, root: &Place) -> Result<Deleted> {
        match self.mark(root, None).await? {
            Mark::Done => self.enqueue(root.clone()),
            Mark::Absent => {}
            Mark::Held(edge) => return Err(restricted(root, &edge)),
        }
        self.run().await
    }

    /// Takes note of an entity that is marked.
    pub(super) fn enqueue(&mut self, place: Place) {
        if self.queued.insert(place.clone()) {
            self.queue.push(place);
        }
    }

    /// Removes all that is marked.
    pub(super) async fn run(mut self) -> Result<Deleted> {
        let span = telemetry::delete();
        while let Some(place) = self.queue.pop() {
            self.finish(&place).instrument(span.clone()).await?;
        }
        span.record("floe.graph.entities", self.deleted.entities);
        Ok(self.deleted)
    }

    /// Marks an entity and notes the intent to delete it. If it goes with another, that one must be marked, and the edge
    /// be there that joins them.
    async fn mark(&mut self, place: &Place, with: Option<(&Place, &Edge)>) -> Result<Mark> {
        for _ in 0..MARKS_MAX {
            let Some(old) = self.reads().entity(place).await? else {
                return Ok(Mark::Absent);
            };
            if old.is_leaving {
                return Ok(Mark::Done);
            }
            if let Some(edge) = self.holding(place, &old).await? {
                return Ok(Mark::Held(Box::new(edge)));
            }
            let mut writes = self.marking(place, &old);
            if let Some((other, edge)) = with {
                writes.push(self.marked(other));
                writes.push(self.joined(edge)?);
            }
            if send(self.db, writes).await?.is_applied() {
                return Ok(Mark::Done);
            }
            if let Some((other, edge)) = with
                && !(self.is_leaving(other).await? && self.is_there(edge).await?)
            {
                return Ok(Mark::Absent);
            }
        }
        Err(contended(place, MARKS_MAX))
    }

    /// The check that an edge is there.
    fn joined(&self, edge: &Edge) -> Result<TransactWrite> {
        let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
        let (table, key) = (self.schema().relationships(), edge.key_item(self.scope)?);
        Ok(ConditionCheck::new(table, key, is_there).into())
    }

    async fn is_there(&self, edge: &Edge) -> Result<bool> {
        let (table, key) = (self.schema().relationships(), edge.key_item(self.scope)?);
        Ok(self.reads().item(&table, &key).await?.is_some())
    }

    /// The writes that mark an entity: with them go its entries and claims, if they fit and are known.
    fn marking(&self, place: &Place, old: &Stored) -> Vec<TransactWrite> {
        let entries = self.schema().entries();
        let version = Value::N(Number::from(old.version + 1));
        let mut update = Update::new()
            .set(meta(&LEAVING), true)
            .set(meta(&VERSION), version);
        let mut writes: Vec<TransactWrite> = Vec::new();
        for (index, key) in old.index_keys() {
            let entry = stored::entry_key(place, index, key);
            writes.push(DeleteItem::new(entries.as_str(), entry).into());
        }
        for (index, key) in old.claims() {
            writes.push(release(self.schema(), &place.scope, index, key).into());
        }
        match !old.is_behind && writes.len() + 4 <= self.items_max() {
            true => {
                let nothing = Value::M(Item::new());
                update = update.set(Path::attribute(INDEX_ENTRIES), nothing);
            }
            false => writes.clear(),
        }
        let as_seen = is_version(old.version).and(is_number(&HELD_BY, old.held));
        writes.push(entity_update(self.schema(), place, update, as_seen));
        writes.push(intent_put(self.schema(), LEAVING_ID, place));
        writes
    }

    /// An edge that refuses the deletion of an entity: one whose subject does not go as well.
    async fn holding(&mut self, place: &Place, stored: &Stored) -> Result<Option<Edge>> {
        if stored.held == 0 {
            return Ok(None);
        }
        let goes = match self.goes.take() {
            Some(goes) => goes,
            None => self.closure(place).await?,
        };
        let incoming = incoming_of(&self.reads(), place, stored.incoming).await?;
        let mut holding = incoming.into_iter().filter(|edge| edge.is_holding);
        let stays = |edge: &Edge| {
            let subject = Place {
                scope: place.scope.clone(),
                key: edge.subject.clone(),
            };
            !goes.contains(&subject)
        };
        let edge = holding.find(stays);
        self.goes = Some(goes);
        Ok(edge)
    }

    /// An entity, those that are marked, and all that goes with them.
    async fn closure(&self, root: &Place) -> Result<BTreeSet<Place>> {
        let mut queue: Vec<Place> = self.queued.iter().chain([root]).cloned().collect();
        let mut goes = BTreeSet::new();
        while let Some(place) = queue.pop() {
            let stored = self.reads().entity(&place).await?;
            let (Some(stored), true) = (stored, goes.insert(place.clone())) else {
                continue;
            };
            let mut edges = self.reads().outgoing(&place, None, None).await?;
            edges.extend(incoming_of(&self.reads(), &place, stored.incoming).await?);
            for edge in &edges {
                if let Some(key) = follower(self.schema(), edge, &place.key) {
                    queue.push(Place::new(self.scope, key.clone())?);
                }
            }
        }
        Ok(goes)
    }

    /// Removes all that belongs to a marked entity, and the entity.
    async fn finish(&mut self, place: &Place) -> Result<()> {
        loop {
            // Where there is nothing marked, somebody else was faster; the intent went with the entity.
            let Some(()) = self.remove_outgoing(place).await? else {
                return self.forget(place).await;
            };
            let Some(stored) = self.remove_incoming(place).await? else {
                return self.forget(place).await;
            };
            let Some(()) = self.remove_entries(place, &stored).await? else {
                return self.forget(place).await;
            };
            let is_empty = is_leaving().and(is_number(&INCOMING, 0));
            let entities = self.schema().entities();
            let entity =
                DeleteItem::new(entities.as_str(), stored::entity_key(place)).condition(is_empty);
            let intent = |of| intent_delete(self.schema(), of, place);
            let mut writes = vec![entity.into(), intent(LEAVING_ID)];
            if stored.is_behind {
                writes.push(intent(BEHIND_ID));
            }
            if send(self.db, writes).await?.is_applied() {
                self.deleted.entities += 1;
                self.tell(place, 0);
                return Ok(());
            }
        }
    }

    /// Removes an intent of which nothing is left, on the condition that it is so.
    async fn forget(&self, place: &Place) -> Result<()> {
        let is_unmarked = Condition::attribute_not_exists(meta(&LEAVING));
        let check = entity_check(self.schema(), place, is_unmarked);
        let writes = vec![check, intent_delete(self.schema(), LEAVING_ID, place)];
        // Refused, it is to be deleted again, by somebody else.
        send(self.db, writes).await.map(drop)
    }

    pub(super) fn tell(&self, place: &Place, incoming_left: u64) {
        (self.listener)(&Progress {
            entity: place.key.clone(),
            entities: self.deleted.entities,
            edges: self.deleted.edges,
            incoming_left,
            entities_left: self.queue.len() as u64,
        });
    }

    /// How many items one step may have.
    pub(super) fn items_max(&self) -> usize {
        self.db.engine().capabilities().transact_items_max
    }

    /// Marks what goes with an entity by one of these edges, unless an edge from elsewhere refuses.
    pub(super) async fn follow_all(&mut self, other: &Place, edges: &[Edge]) -> Result<()> {
        for edge in edges {
            let Some(key) = follower(self.schema(), edge, &other.key) else {
                continue;
            };
            let place = Place::new(self.scope, key.clone())?;
            match self.mark(&place, Some((other, edge))).await? {
                Mark::Done => self.enqueue(place),
                Mark::Held(_) => self.deleted.kept.push(key.clone()),
                Mark::Absent => {}
            }
        }
        Ok(())
    }
}

enum Mark {
    Done,
    Absent,
    /// Another refers to it, and refuses.
    Held(Box<Edge>),
}
