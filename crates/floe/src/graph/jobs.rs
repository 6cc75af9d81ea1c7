//! Deletions that do not fit into one transaction: done in steps, each of which can be the last before a crash.
//!
//! First the entity is marked and an intent is noted, in one transaction. From then on it is gone for readers, and
//! nothing can be linked to it. Then its edges go, some at a time, and the number of edges that lead to it with them;
//! then its entries; at last, when that number is 0, the entity and the intent. Doing a step again does no harm, so
//! whoever finds an intent can go on, also several at once.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::Number;
use floe_store::Value;
use floe_store::expr::{Condition, KeyCondition, KeyOp, Path, Update};
use floe_store::op::{DeleteItem, PutItem, Query, TransactWrite, UpdateItem};

use super::compile::{count, is_holder, is_number, is_version};
use super::delete::{LAG_TRIES, incoming_of, lagging, restricted};
use super::key::{EntityKey, Place};
use super::read::Reads;
use super::relation::OnDelete;
use super::schema::GraphSchema;
use super::steps::{Step, send};
use super::stored::{
    self, Edge, HELD_BY, ID, INCOMING, LEAVING, LEAVING_ID, SCOPE_TYPE_KEY, SUBJECT_KEY, Stored,
    VERSION, meta,
};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::tx::backoff::Backoff;

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
    db: &'a Db,
    scope: &'a str,
    listener: Listener<'a>,
    queue: Vec<Place>,
    /// All that goes, if it had to be found out.
    goes: Option<BTreeSet<Place>>,
    deleted: Deleted,
}

impl<'a> Job<'a> {
    pub(super) const fn new(db: &'a Db, scope: &'a str, listener: Listener<'a>) -> Self {
        Self {
            db,
            scope,
            listener,
            queue: Vec::new(),
            goes: None,
            deleted: Deleted {
                entities: 0,
                edges: 0,
                kept: Vec::new(),
            },
        }
    }

    const fn reads(&self) -> Reads<'a> {
        Reads {
            db: self.db,
            tx: None,
        }
    }

    fn schema(&self) -> &'a GraphSchema {
        self.db.graph_schema()
    }

    /// Deletes an entity and all that goes with it.
    ///
    /// # Errors
    ///
    /// [`Restricted`](crate::ErrorKind::Restricted) when others refer to it; then nothing was done.
    pub(super) async fn delete(mut self, root: &Place) -> Result<Deleted> {
        match self.mark(root, root).await? {
            Mark::Done => self.queue.push(root.clone()),
            Mark::Absent => {}
            Mark::Held(edge) => return Err(restricted(root, Some(&edge))),
        }
        self.run().await
    }

    /// Ends all deletions of the scope that were begun.
    pub(super) async fn resume(mut self) -> Result<Deleted> {
        let prefix = Value::from(stored::own_prefix(self.scope));
        let key =
            KeyCondition::partition(ID, LEAVING_ID).and(SCOPE_TYPE_KEY, KeyOp::BeginsWith(prefix));
        let query = Query::new(self.schema().entities(), key).consistent();
        for item in self.reads().query(query, None).await? {
            let owner = stored::intent_owner(&item)?;
            self.queue.push(Place::new(self.scope, owner)?);
        }
        self.run().await
    }

    async fn run(mut self) -> Result<Deleted> {
        while let Some(place) = self.queue.pop() {
            self.finish(&place).await?;
        }
        Ok(self.deleted)
    }

    /// Marks an entity that goes with another, and notes the intent to delete it.
    async fn mark(&mut self, place: &Place, root: &Place) -> Result<Mark> {
        for _ in 0..MARKS_MAX {
            let Some(old) = self.reads().entity(place).await? else {
                return Ok(Mark::Absent);
            };
            if old.is_leaving {
                return Ok(Mark::Done);
            }
            if let Some(edge) = self.holding(place, &old, root).await? {
                return Ok(Mark::Held(Box::new(edge)));
            }
            let number = |number: u64| Value::N(Number::from(number));
            let update = Update::new()
                .set(meta(&LEAVING), true)
                .set(meta(&VERSION), number(old.version + 1));
            let as_seen = is_number(&HELD_BY, old.held);
            let key = stored::entity_key(place);
            let mark = UpdateItem::new(self.schema().entities(), key, update)
                .condition(is_version(old.version).and(as_seen));
            let intent = PutItem::new(self.schema().entities(), stored::intent(place));
            let writes = vec![mark.into(), intent.into()];
            if send(self.db, writes).await?.is_applied() {
                return Ok(Mark::Done);
            }
        }
        Err(Error::new(
            crate::ErrorKind::TransactionFailed,
            format!("others were always faster: entity={place} attempts={MARKS_MAX}"),
        ))
    }

    /// An edge that refuses the deletion of an entity: one whose subject does not go as well.
    async fn holding(
        &mut self,
        place: &Place,
        stored: &Stored,
        root: &Place,
    ) -> Result<Option<Edge>> {
        if stored.held == 0 {
            return Ok(None);
        }
        let goes = match self.goes.take() {
            Some(goes) => goes,
            None => self.closure(root).await?,
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

    /// An entity and all that goes with it.
    async fn closure(&self, root: &Place) -> Result<BTreeSet<Place>> {
        let (mut goes, mut queue) = (BTreeSet::new(), vec![root.clone()]);
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
    fn is_owned(&self, edge: &Edge) -> bool {
        let (from, to) = (edge.subject.type_name(), edge.object.type_name());
        self.schema().owns(from, &edge.predicate, to)
    }

    /// Whether the subject of an edge goes with its object.
    fn is_cascading(&self, edge: &Edge) -> bool {
        let (from, to) = (edge.subject.type_name(), edge.object.type_name());
        self.schema().on_delete(from, &edge.predicate, to) == OnDelete::Cascade
    }

    /// Removes all that belongs to a marked entity, and the entity.
    async fn finish(&mut self, place: &Place) -> Result<()> {
        loop {
            self.remove_outgoing(place).await?;
            let Some(stored) = self.remove_incoming(place).await? else {
                // Somebody else was faster; the intent went with the entity.
                return Ok(());
            };
            self.remove_entries(place, &stored).await?;
            let is_empty = Condition::attribute_exists(meta(&LEAVING)).and(is_number(&INCOMING, 0));
            let entities = self.schema().entities();
            let entity =
                DeleteItem::new(entities.as_str(), stored::entity_key(place)).condition(is_empty);
            let intent = DeleteItem::new(entities, stored::intent_key(place));
            if send(self.db, vec![entity.into(), intent.into()])
                .await?
                .is_applied()
            {
                self.deleted.entities += 1;
                self.tell(place, 0);
                return Ok(());
            }
        }
    }

    fn tell(&self, place: &Place, incoming_left: u64) {
        (self.listener)(&Progress {
            entity: place.key.clone(),
            entities: self.deleted.entities,
            edges: self.deleted.edges,
            incoming_left,
            entities_left: self.queue.len() as u64,
        });
    }

    /// How many items one step may have.
    fn items_max(&self) -> usize {
        self.db.engine().capabilities().transact_items_max
    }

    async fn remove_outgoing(&mut self, place: &Place) -> Result<()> {
        // Each edge may need its object's item as well.
        let some = (self.items_max() / 2).max(1);
        loop {
            let edges = self.reads().outgoing(place, None, Some(some)).await?;
            if edges.is_empty() {
                return Ok(());
            }
            for edge in &edges {
                if self.is_owned(edge) {
                    self.follow(&edge.object, place).await?;
                }
            }
            self.remove_edges(edges).await?;
            self.tell(place, 0);
        }
    }

    /// Removes the edges that lead to an entity, until it says that there are none. `None` if it is gone.
    async fn remove_incoming(&mut self, place: &Place) -> Result<Option<Stored>> {
        let some = self.items_max().saturating_sub(1).max(1);
        let mut tries = 0;
        loop {
            let Some(stored) = self.reads().entity(place).await? else {
                return Ok(None);
            };
            if stored.incoming == 0 {
                return Ok(Some(stored));
            }
            let edges = self.reads().incoming(place, Some(some)).await?;
            for edge in &edges {
                if self.is_cascading(edge) {
                    self.follow(&edge.subject, place).await?;
                }
            }
            let removed = self.remove_edges(edges).await?;
            self.tell(place, stored.incoming.saturating_sub(removed));
            if removed > 0 {
                tries = 0;
                continue;
            }
            tries += 1;
            if tries > LAG_TRIES {
                return Err(lagging(place, stored.incoming, 0));
            }
            let pause = Backoff::resync().pause(tries, self.db.env().next_u64());
            self.db.timer().sleep(pause).await;
        }
    }

    /// Lets an entity go with another, unless others refer to it.
    async fn follow(&mut self, key: &EntityKey, root: &Place) -> Result<()> {
        let place = Place::new(self.scope, key.clone())?;
        match self.mark(&place, root).await? {
            Mark::Done if !self.queue.contains(&place) => self.queue.push(place),
            Mark::Held(_) => self.deleted.kept.push(key.clone()),
            Mark::Done | Mark::Absent => {}
        }
        Ok(())
    }

    /// Removes edges and counts them where they led to. Tells how many there were.
    async fn remove_edges(&mut self, edges: Vec<Edge>) -> Result<u64> {
        if edges.is_empty() {
            return Ok(0);
        }
        let writes = self.removal(&edges)?;
        let removed = match send(self.db, writes).await? {
            Step::Applied => edges.len() as u64,
            // Some are gone, or lead to nothing: one after the other then.
            Step::Refused(_) => {
                let mut removed = 0;
                for edge in edges {
                    removed += u64::from(self.remove_edge(edge).await?);
                }
                removed
            }
        };
        self.deleted.edges += removed;
        Ok(removed)
    }

    async fn remove_edge(&self, edge: Edge) -> Result<bool> {
        let table = self.schema().relationships();
        let object = Place::new(self.scope, edge.object.clone())?;
        let edges = [edge];
        loop {
            let [edge] = &edges;
            let key = edge.key_item(self.scope)?;
            if self.reads().item(&table, &key).await?.is_none() {
                return Ok(false);
            }
            let writes = match self.reads().entity(&object).await? {
                Some(_) => self.removal(&edges)?,
                None => vec![DeleteItem::new(table.as_str(), key).into()],
            };
            if send(self.db, writes).await?.is_applied() {
                return Ok(true);
            }
        }
    }

    /// The writes that remove edges, which are there and lead to something.
    fn removal(&self, edges: &[Edge]) -> Result<Vec<TransactWrite>> {
        let table = self.schema().relationships();
        let mut writes: Vec<TransactWrite> = Vec::new();
        let mut objects: BTreeMap<Place, (i64, i64)> = BTreeMap::new();
        for edge in edges {
            let object = Place::new(self.scope, edge.object.clone())?;
            let counted = objects.entry(object).or_default();
            counted.0 -= 1;
            counted.1 -= i64::from(edge.is_holding);
            let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
            let delete = DeleteItem::new(table.as_str(), edge.key_item(self.scope)?);
            writes.push(delete.condition(is_there).into());
        }
        for (object, by) in objects {
            let key = stored::entity_key(&object);
            let update = count(Update::new(), by);
            let is_there = Condition::attribute_exists(Path::attribute(ID));
            let update = UpdateItem::new(self.schema().entities(), key, update);
            writes.push(update.condition(is_there).into());
        }
        Ok(writes)
    }

    async fn remove_entries(&self, place: &Place, stored: &Stored) -> Result<()> {
        let table = self.schema().entries();
        let of_entity = stored.entries.iter();
        let keys: Vec<(&String, &String)> = of_entity
            .flat_map(|(index, indexed)| indexed.keys.iter().map(move |key| (index, key)))
            .collect();
        for some in keys.chunks(self.items_max()) {
            let entries = some.iter().map(|(index, key)| {
                let entry = stored::entry_key(place, index, key);
                DeleteItem::new(table.as_str(), entry).into()
            });
            send(self.db, entries.collect()).await?;
        }
        for (index, key) in keys {
            let is_unique = self.schema().index_named(index);
            if is_unique.is_ok_and(|index| index.is_unique) {
                let claim = stored::claim_key(&place.scope, index, key);
                let claim = DeleteItem::new(table.as_str(), claim).condition(is_holder(&place.key));
                // Refused, it is gone already.
                send(self.db, vec![claim.into()]).await?;
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
