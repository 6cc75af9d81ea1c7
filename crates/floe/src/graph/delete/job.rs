//! The state of a deletion in steps, and the marks on what it deletes.
//!
//! A mark comes with the intent to delete, in one transaction, in which the entity's entries in the indexes go as well if
//! they fit. From then on it is gone for readers, and nothing can be linked to it.

use std::collections::BTreeSet;

use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{ConditionCheck, DeleteItem, TransactWrite};
use floe_store::{Item, Value};

use super::incoming::incoming_of;
use super::plan::follower;
use super::progress::{Deleted, Listener, Progress};
use crate::db::Db;
use crate::error::Result;
use crate::graph::keys::Place;
use crate::graph::reads::Reads;
use crate::graph::schema::GraphSchema;
use crate::graph::steps::send;
use crate::graph::stored::{
    self, Edge, HELD_BY, INDEX_ENTRIES, LEAVING, LEAVING_ID, SUBJECT_KEY, Stored, VERSION, meta,
};
use crate::graph::writes::{
    contended, entity_check, entity_update, intent_put, is_leaving, is_number, is_version, release,
};

/// How often an entity is marked anew because somebody else has changed it.
const MARKS_MAX: u32 = 50;

/// A deletion in steps.
pub(super) struct Job<'a> {
    pub(super) db: &'a Db,
    pub(super) scope: &'a str,
    listener: Listener<'a>,
    pub(super) queue: Vec<Place>,
    /// All that were ever in the queue.
    queued: BTreeSet<Place>,
    /// All that goes, if it had to be found out.
    goes: Option<BTreeSet<Place>>,
    pub(super) deleted: Deleted,
}

impl<'a> Job<'a> {
    pub(super) fn new(db: &'a Db, scope: &'a str, listener: Listener<'a>) -> Self {
        Self {
            db,
            scope,
            listener,
            queue: Vec::new(),
            queued: BTreeSet::new(),
            goes: None,
            deleted: Deleted::default(),
        }
    }

    pub(super) const fn reads(&self) -> Reads<'a> {
        Reads::of_graph(self.db, None)
    }

    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.db.graph_schema()
    }

    /// Takes note of an entity that is marked.
    pub(super) fn enqueue(&mut self, place: Place) {
        if self.queued.insert(place.clone()) {
            self.queue.push(place);
        }
    }

    /// Marks an entity and notes the intent to delete it. If it goes with another, that one must be marked, and the edge
    /// be there that joins them.
    pub(super) async fn mark(
        &mut self,
        place: &Place,
        with: Option<(&Place, &Edge)>,
    ) -> Result<Mark> {
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

    pub(super) async fn is_leaving(&self, place: &Place) -> Result<bool> {
        let stored = self.reads().entity(place).await?;
        Ok(stored.is_some_and(|stored| stored.is_leaving))
    }

    /// The check that an entity is marked.
    pub(super) fn marked(&self, place: &Place) -> TransactWrite {
        entity_check(self.schema(), place, is_leaving())
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
        let mut update = Update::new()
            .set(meta(&LEAVING), true)
            .set(meta(&VERSION), old.version + 1);
        let mut writes: Vec<TransactWrite> = Vec::new();
        for (index, key) in old.index_keys() {
            let entry = stored::entry_key(place, index, key);
            writes.push(DeleteItem::new(entries.as_str(), entry).into());
        }
        for (index, key) in old.claims() {
            writes.push(release(self.schema(), &place.scope, index, key).into());
        }
        if !old.is_behind && writes.len() + 4 <= self.items_max() {
            let nothing = Value::M(Item::new());
            update = update.set(Path::attribute(INDEX_ENTRIES), nothing);
        } else {
            writes.clear();
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
        self.reads().items_max()
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

/// What became of an entity that was to be marked.
pub(super) enum Mark {
    Done,
    Absent,
    /// Another refers to it, and refuses.
    Held(Box<Edge>),
}
