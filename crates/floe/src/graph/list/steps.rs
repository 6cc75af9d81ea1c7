//! Changes of lists that do not fit into one transaction: done in steps, each of which can be the last before a crash.
//!
//! First the list as it is to be is noted, and its subject marked as busy by this note, in one transaction: from then on
//! nobody else changes edges of the subject. Then what differs is changed, some edges at a time, until nothing does; at
//! last the note and the mark go. What to do follows from the note and from what is stored, and every step depends on the
//! mark: so whoever finds a note can go on, also several at once, and who comes too late changes nothing.
//!
//! Readers see the list on its way: what is new comes and what is gone goes, some at a time. What stays is always there,
//! since an edge that moves is removed and put in the same step.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::Value;
use floe_store::expr::{Condition, Path, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{DeleteItem, PutItem, TransactWrite};
use floe_store::size::item_size;

use super::commit::{Change, busy};
use super::difference::Difference;
use super::plan::plan;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::changes::EdgeChangeKind;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, Place};
use crate::graph::schema::GraphSchema;
use crate::graph::steps::send;
use crate::graph::stored::{self, BUSY, EDGES, Edge, INTENT, LISTS_ID, WantedList, meta};
use crate::graph::writes::{
    add, contended, count, counts, edge_writes, entity_update, exists, is_alive, is_list_version,
    missing,
};

/// How often a change is begun anew because somebody else was faster.
const BEGINS_MAX: u32 = 50;

/// An edge, and what becomes of it.
type EdgeStep = (Edge, EdgeChangeKind);

impl Graph<'_> {
    /// Changes a list in steps. Returns how many edges are removed.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when the list cannot be noted in one item.
    pub(super) async fn change_in_steps(&self, change: &Change) -> Result<u64> {
        let (list, removed) = self.begin_list(change).await?;
        self.end_list(list).await?;
        Ok(removed)
    }

    /// Ends the changes of lists that were begun and not ended.
    pub(in crate::graph) async fn resume_lists(&self) -> Result<()> {
        for intent in self.reads().intents(LISTS_ID, &self.scope).await? {
            let list = stored::wanted_list(&self.scope, &intent)?;
            self.end_list(list).await?;
        }
        Ok(())
    }

    /// Notes what a list is to be. Returns how many of its edges go.
    async fn begin_list(&self, change: &Change) -> Result<(WantedList, u64)> {
        let reads = self.reads();
        let subject = self.place(&change.subject)?;
        let mut list = WantedList {
            subject: subject.clone(),
            predicate: change.predicate.clone(),
            intent: self.db.env().ordered_uuid().to_string(),
            edges: Vec::new(),
        };
        let mut failure = None;
        for tried in 0..BEGINS_MAX {
            let old = reads.entity(&subject).await?;
            let old = old.filter(|old| !old.is_leaving);
            let old = old.ok_or_else(|| missing(&subject))?;
            if old.busy.is_some() {
                failure = Some(busy(&subject));
                reads.pause(tried + 1).await;
                continue;
            }
            let predicate = &change.predicate;
            let edges = reads.outgoing(&subject, Some(predicate), None).await?;
            let plan = plan(reads.schema(), &subject, predicate, &edges, &change.change)?;
            self.check_objects(&edges, &plan.wanted).await?;
            list.edges = plan.wanted;
            let writes = list.beginning(reads.schema(), old.edges)?;
            if send(&self.db, writes).await?.is_applied() {
                return Ok((list, plan.difference.removed()));
            }
            failure = None;
        }
        Err(failure.unwrap_or_else(|| contended(&subject, BEGINS_MAX)))
    }

    /// Refuses objects that are not there, before anything is done.
    async fn check_objects(&self, old: &[Edge], wanted: &[Edge]) -> Result<()> {
        let known: BTreeSet<&EntityKey> = old.iter().map(|edge| &edge.object).collect();
        let new = wanted.iter().map(|edge| &edge.object);
        let new = new.filter(|object| !known.contains(object));
        let places = self.places(new)?;
        let found = self.reads().entities(&places).await?;
        let is_gone = |place: &&Place| found.get(place).is_none_or(|object| object.is_leaving);
        match places.iter().find(is_gone) {
            Some(place) => Err(missing(place)),
            None => Ok(()),
        }
    }

    /// Changes what differs, until nothing does.
    async fn end_list(&self, mut list: WantedList) -> Result<()> {
        loop {
            let subject = self.reads().entity(&list.subject).await?;
            let subject = subject.filter(|subject| !subject.is_leaving);
            if subject.and_then(|subject| subject.busy).as_ref() != Some(&list.intent) {
                // Somebody else has ended it, or the edges go with the subject.
                return self.forget_list(&list).await;
            }
            let (reads, predicate) = (self.reads(), Some(&*list.predicate));
            let edges = reads.outgoing(&list.subject, predicate, None).await?;
            let changes = self.next_changes(&edges, &list.edges)?;
            if changes.is_empty() {
                if self.free_list(&list).await? {
                    return Ok(());
                }
                continue;
            }
            let writes = self.list_writes(&list, &changes)?;
            if !send(&self.db, writes).await?.is_applied() {
                self.drop_missing(&mut list, &changes).await?;
            }
        }
    }

    /// What is changed next: as much as fits into a step. What concerns one object stays together if it fits.
    fn next_changes(&self, edges: &[Edge], wanted: &[Edge]) -> Result<Vec<EdgeStep>> {
        // Each edge may need its object's item as well, and all of them the subject's.
        let some = (self.items_max().saturating_sub(1) / 2).max(1);
        let mut by_object: BTreeMap<EntityKey, Vec<EdgeStep>> = BTreeMap::new();
        for (edge, kind) in Difference::between(edges, wanted)?.0 {
            let of_object = by_object.entry(edge.object.clone()).or_default();
            of_object.push((edge, kind));
        }
        // A list that grows does so from its front.
        let mut groups: Vec<_> = by_object.into_values().collect();
        groups.sort_by_key(|group| group.iter().map(|(edge, _)| edge.index).min());
        let mut next = Vec::new();
        for of_object in groups {
            if !next.is_empty() && next.len() + of_object.len() > some {
                break;
            }
            next.extend(of_object);
        }
        next.truncate(some);
        Ok(next)
    }

    /// Leaves out what is to be linked and is gone meanwhile, and removes edges that lead to nothing, where there is
    /// nothing to count.
    async fn drop_missing(&self, list: &mut WantedList, changes: &[EdgeStep]) -> Result<()> {
        let places = self.places(changes.iter().map(|(edge, _)| &edge.object))?;
        let found = self.reads().entities(&places).await?;
        for ((edge, change), place) in changes.iter().zip(&places) {
            let object = found.get(place);
            match change {
                EdgeChangeKind::Add if object.is_none_or(|object| object.is_leaving) => {
                    list.edges.retain(|wanted| wanted.object != edge.object);
                }
                EdgeChangeKind::Remove if object.is_none() => {
                    let table = self.db.graph_schema().relationships();
                    let delete = DeleteItem::new(table, edge.key_item(&self.scope)?);
                    send(&self.db, vec![delete.into()]).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn list_writes(&self, list: &WantedList, changes: &[EdgeStep]) -> Result<Vec<TransactWrite>> {
        let subject = &list.subject;
        let schema = self.db.graph_schema();
        let edges = changes.iter().map(|(edge, kind)| (edge, *kind));
        let mut objects = counts(edges.clone());
        let mut writes = edge_writes(schema, &self.scope, edges)?;
        // The subject may be an object of its own.
        let own = objects.remove(&subject.key).unwrap_or_default();
        let update = add(count(Update::new(), own), &EDGES, 1);
        writes.push(entity_update(schema, subject, update, list.is_busy()));
        for (object, by) in objects {
            let update = count(Update::new(), by);
            let condition = if by.0 > 0 { is_alive() } else { exists() };
            let object = self.place(object)?;
            writes.push(entity_update(schema, &object, update, condition));
        }
        Ok(writes)
    }

    /// Removes the note and the mark. Tells whether they were there.
    async fn free_list(&self, list: &WantedList) -> Result<bool> {
        let schema = self.db.graph_schema();
        let update = Update::new().remove(meta(&BUSY));
        let update = entity_update(schema, &list.subject, update, list.is_busy());
        let key = stored::list_intent_key(&list.subject, &list.predicate);
        let note = DeleteItem::new(schema.entities(), key);
        let freed = send(&self.db, vec![update, note.into()]).await?;
        Ok(freed.is_applied())
    }

    /// Removes a note that nothing depends on any more.
    async fn forget_list(&self, list: &WantedList) -> Result<()> {
        let key = stored::list_intent_key(&list.subject, &list.predicate);
        let intent = Value::from(list.intent.as_str());
        let is_own = Condition::eq(Path::attribute(INTENT), intent);
        let note = DeleteItem::new(self.db.graph_schema().entities(), key).condition(is_own);
        // Refused, it is gone already.
        send(&self.db, vec![note.into()]).await.map(drop)
    }
}

impl WantedList {
    /// The writes that note what the list is to be, and mark its subject: on the condition that its edges are as they were
    /// when this was planned, by their version, and that no other change of them is under way.
    fn beginning(&self, schema: &GraphSchema, edges: u64) -> Result<Vec<TransactWrite>> {
        let (subject, note) = (&self.subject, stored::list_intent(self));
        let bytes = item_size(&note);
        if bytes > ITEM_BYTES_MAX {
            let what = "the list is too long to be changed at once";
            let message = format!("{what}: subject={subject} bytes={bytes} max={ITEM_BYTES_MAX}");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        // Where the subject is not busy, an older note is of no use to anybody.
        let note = PutItem::new(schema.entities(), note);
        let update = Update::new()
            .set(meta(&BUSY), self.intent.as_str())
            .set(meta(&EDGES), edges + 1);
        let is_free = Condition::attribute_not_exists(meta(&BUSY));
        let as_seen = is_list_version(edges).and(is_alive()).and(is_free);
        let mark = entity_update(schema, subject, update, as_seen);
        Ok(vec![note.into(), mark])
    }

    /// That its subject is there, and busy with it.
    fn is_busy(&self) -> Condition {
        let intent = Value::from(self.intent.as_str());
        is_alive().and(Condition::eq(meta(&BUSY), intent))
    }
}
