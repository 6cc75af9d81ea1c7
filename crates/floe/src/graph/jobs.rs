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
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::{Item, Number, Value};
use tracing::Instrument;

use super::compile::{is_number, is_version};
use super::delete::{incoming_of, restricted};
use super::key::{EntityKey, Place};
use super::read::Reads;
use super::relation::OnDelete;
use super::schema::GraphSchema;
use super::steps::send;
use super::stored::{
    self, BEHIND_ID, Edge, HELD_BY, INCOMING, INDEX_ENTRIES, LEAVING, LEAVING_ID, SUBJECT_KEY,
    Stored, VERSION, meta,
};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::graph::telemetry;

/// How often an entity is marked anew because somebody else has changed it.
const MARKS_MAX: u32 = 50;

/// What a deletion has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The entities that are gone: with those that went with others.
    pub entities: u64,
    /// The edges that are gone.
    pub edges: u64,
    /// What should have gone with others, but others refer to it. Only where the deletion took more than one
    /// transaction; one that fits into one is refused instead.
    pub kept: Vec<EntityKey>,
}

/// How far a deletion is that takes more than one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The entity whose edges are being removed.
    pub entity: EntityKey,
    /// The entities that are gone.
    pub entities: u64,
    /// The edges that are gone.
    pub edges: u64,
    /// How many edges still lead to the entity.
    pub incoming_left: u64,
    /// How many more entities are known to follow.
    pub entities_left: u64,
}

/// Told how far a job is.
pub(super) type Listener<'a> = &'a (dyn Fn(&Progress) + Send + Sync);

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
            Mark::Held(edge) => return Err(restricted(root, Some(&edge))),
        }
        self.run().await
    }

    /// Ends all deletions of the scope that were begun.
    pub(super) async fn resume(mut self) -> Result<Deleted> {
        let query = stored::intents_query(self.schema(), LEAVING_ID, self.scope);
        for item in self.reads().query(query, None).await? {
            let owner = stored::intent_owner(&item)?;
            self.enqueue(Place::new(self.scope, owner)?);
        }
        self.run().await
    }

    fn enqueue(&mut self, place: Place) {
        if self.queued.insert(place.clone()) {
            self.queue.push(place);
        }
    }

    async fn run(mut self) -> Result<Deleted> {
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
        Err(Error::new(
            crate::ErrorKind::TransactionFailed,
            format!("others were always faster: entity={place} attempts={MARKS_MAX}"),
        ))
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
        let (entities, entries) = (self.schema().entities(), self.schema().entries());
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
            let claim = stored::claim_key(&place.scope, index, key);
            writes.push(DeleteItem::new(entries.as_str(), claim).into());
        }
        match !old.is_behind && writes.len() + 4 <= self.items_max() {
            true => {
                let nothing = Value::M(Item::new());
                update = update.set(Path::attribute(INDEX_ENTRIES), nothing);
            }
            false => writes.clear(),
        }
        let as_seen = is_version(old.version).and(is_number(&HELD_BY, old.held));
        let mark = UpdateItem::new(entities.as_str(), stored::entity_key(place), update);
        writes.push(mark.condition(as_seen).into());
        writes.push(PutItem::new(entities, stored::intent(LEAVING_ID, place)).into());
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
        let mut queue: Vec<Place> = self.queued.iter().cloned().collect();
        queue.push(root.clone());
        let mut goes = BTreeSet::new();
        while let Some(place) = queue.pop() {
            let stored = self.reads().entity(&place).await?;
            let (Some(stored), true) = (stored, goes.insert(place.clone())) else {
                continue;
            };
            for edge in self.reads().outgoing(&place, None, None).await? {
                if self.is_owned(&edge) {
                    queue.push(Place::new(self.scope, edge.object)?);
                }
            }
            for edge in incoming_of(&self.reads(), &place, stored.incoming).await? {
                if self.is_cascading(&edge) {
                    queue.push(Place::new(self.scope, edge.subject)?);
                }
            }
        }
        Ok(goes)
    }

    /// Whether the object of an edge goes with its subject.
    pub(super) fn is_owned(&self, edge: &Edge) -> bool {
        let (from, to) = (edge.subject.type_name(), edge.object.type_name());
        self.schema().owns(from, &edge.predicate, to)
    }

    /// Whether the subject of an edge goes with its object.
    pub(super) fn is_cascading(&self, edge: &Edge) -> bool {
        let (from, to) = (edge.subject.type_name(), edge.object.type_name());
        self.schema().on_delete(from, &edge.predicate, to) == OnDelete::Cascade
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
            let is_empty = Condition::attribute_exists(meta(&LEAVING)).and(is_number(&INCOMING, 0));
            let entities = self.schema().entities();
            let entity =
                DeleteItem::new(entities.as_str(), stored::entity_key(place)).condition(is_empty);
            let mut writes = vec![entity.into(), self.without_intent(LEAVING_ID, place)];
            if stored.is_behind {
                writes.push(self.without_intent(BEHIND_ID, place));
            }
            if send(self.db, writes).await?.is_applied() {
                self.deleted.entities += 1;
                self.tell(place, 0);
                return Ok(());
            }
        }
    }

    fn without_intent(&self, of: &'static str, place: &Place) -> TransactWrite {
        let key = stored::intent_key(of, place);
        DeleteItem::new(self.schema().entities(), key).into()
    }

    /// Removes an intent of which nothing is left, on the condition that it is so.
    async fn forget(&self, place: &Place) -> Result<()> {
        let key = stored::entity_key(place);
        let is_unmarked = Condition::attribute_not_exists(meta(&LEAVING));
        let check = ConditionCheck::new(self.schema().entities(), key, is_unmarked);
        let writes = vec![check.into(), self.without_intent(LEAVING_ID, place)];
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

    /// Lets an entity go with another, unless others refer to it.
    pub(super) async fn follow(
        &mut self,
        key: &EntityKey,
        other: &Place,
        edge: &Edge,
    ) -> Result<()> {
        let place = Place::new(self.scope, key.clone())?;
        match self.mark(&place, Some((other, edge))).await? {
            Mark::Done => self.enqueue(place),
            Mark::Held(_) => self.deleted.kept.push(key.clone()),
            Mark::Absent => {}
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
