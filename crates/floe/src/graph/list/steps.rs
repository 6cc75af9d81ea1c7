//! Changes of lists that do not fit into one transaction. They are made in steps, and the process may crash after any
//! step.
//!
//! First one transaction records the new list as an intent and marks the subject with it. From then on no other change
//! may write edges of the subject. Then the differences are written in batches, and at last the intent and the mark are
//! deleted. Each step follows from the intent and the stored edges, and depends on the mark: so every process that finds
//! an intent can continue, also concurrently, and a late process changes nothing. After a crash, the next writer of the
//! subject completes the change, or `resume`.
//!
//! Readers see intermediate states: edges appear and disappear in batches. Edges that remain are always visible,
//! because an edge that moves is removed and added in the same step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use floe_store::expr::{Condition, KeyCondition, KeyOp, Path, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{DeleteItem, PutItem, Query, TransactWrite};
use floe_store::size::item_size;
use floe_store::{Item, Value};

use super::commit::{Change, list_change_in_progress};
use super::difference::Difference;
use super::plan::plan;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::changes::EdgeChangeKind;
use crate::graph::handle::Graph;
use crate::graph::keys::{DELIMITER, EntityKey, ScopedKey, own_key};
use crate::graph::schema::GraphSchema;
use crate::graph::steps::send;
use crate::graph::stored::{
    self, EDGES, Edge, ID, INTENT, LIST_CHANGE, LIST_CHANGES_ID, SCOPE_TYPE_KEY, TargetList, meta,
};
use crate::graph::writes::{
    add, contended, count, counts, edge_writes, entity_update, exists, is_alive, is_list_version,
    missing,
};

/// Maximum attempts to start a change after conflicts.
const STARTS_MAX: u32 = 50;

/// An edge and its change.
type EdgeStep = (Edge, EdgeChangeKind);

impl Graph<'_> {
    /// Changes a list in steps. Returns the number of removed edges.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) if the intent exceeds the size of an item.
    pub(super) async fn change_in_steps(&self, change: &Change) -> Result<u64> {
        let (list, removed) = self.start_list(change).await?;
        self.complete_list(list).await?;
        Ok(removed)
    }

    /// Completes the list changes that were started.
    pub(in crate::graph) async fn resume_lists(&self) -> Result<()> {
        for intent in self.reads().intents(LIST_CHANGES_ID, &self.scope).await? {
            let list = stored::target_list(&self.scope, &intent)?;
            self.complete_list(list).await?;
        }
        Ok(())
    }

    /// Records the new list as an intent. Returns the number of edges to remove.
    async fn start_list(&self, change: &Change) -> Result<(TargetList, u64)> {
        let reads = self.reads();
        let subject = self.scoped_key(&change.subject)?;
        let mut list = TargetList {
            subject: subject.clone(),
            predicate: change.predicate.clone(),
            intent: self.db.env().ordered_uuid().to_string(),
            edges: Vec::new(),
        };
        let mut failure = None;
        for tried in 0..STARTS_MAX {
            let old = reads.entity(&subject).await?;
            let old = old.filter(|old| !old.is_deleting);
            let old = old.ok_or_else(|| missing(&subject))?;
            if let Some(intent) = &old.list_change {
                self.complete_list_of(&subject, intent).await?;
                failure = Some(list_change_in_progress(&subject));
                if tried > 0 {
                    reads.pause(tried).await;
                }
                continue;
            }
            let predicate = &change.predicate;
            let edges = reads.outgoing(&subject, Some(predicate), None).await?;
            let plan = plan(reads.schema(), &subject, predicate, &edges, &change.change)?;
            self.check_objects(&edges, &plan.target).await?;
            list.edges = plan.target;
            let writes = list.start_writes(reads.schema(), old.edges)?;
            if send(&self.db, writes).await?.is_applied() {
                return Ok((list, plan.difference.removed()));
            }
            failure = None;
        }
        Err(failure.unwrap_or_else(|| contended(&subject, STARTS_MAX)))
    }

    /// Fails if an object does not exist, before anything is changed.
    async fn check_objects(&self, old: &[Edge], target: &[Edge]) -> Result<()> {
        let present: BTreeSet<&EntityKey> = old.iter().map(|edge| &edge.object).collect();
        let new = target.iter().map(|edge| &edge.object);
        let new = new.filter(|object| !present.contains(object));
        let scoped_keys = self.scoped_keys(new)?;
        let found = self.reads().entities(&scoped_keys).await?;
        let is_gone = |scoped_key: &&ScopedKey| {
            found
                .get(scoped_key)
                .is_none_or(|object| object.is_deleting)
        };
        match scoped_keys.iter().find(is_gone) {
            Some(scoped_key) => Err(missing(scoped_key)),
            None => Ok(()),
        }
    }

    /// Writes the differences between the stored list and the target. Reads the list once, and again only if other
    /// processes have changed it, so the work is linear in the length of the list.
    async fn complete_list(&self, mut list: TargetList) -> Result<()> {
        loop {
            let subject = self.reads().entity(&list.subject).await?;
            let subject = subject.filter(|subject| !subject.is_deleting);
            if subject.and_then(|subject| subject.list_change).as_ref() != Some(&list.intent) {
                // Another process has completed the change, or the edges are deleted with the subject.
                return self.delete_list_intent(&list).await;
            }
            let (reads, predicate) = (self.reads(), Some(&*list.predicate));
            let edges = reads.outgoing(&list.subject, predicate, None).await?;
            let steps = self.list_steps(&edges, &list.edges)?;
            if self.write_steps(&mut list, steps).await? && self.finish_list(&list).await? {
                return Ok(());
            }
        }
    }

    /// Writes steps. Returns whether all of them were applied; otherwise the list has to be read again.
    async fn write_steps(
        &self,
        list: &mut TargetList,
        mut steps: VecDeque<Vec<EdgeStep>>,
    ) -> Result<bool> {
        while let Some(changes) = steps.front() {
            let writes = self.list_writes(list, changes)?;
            if !send(&self.db, writes).await?.is_applied() {
                let left: Vec<EdgeStep> = steps.into_iter().flatten().collect();
                self.drop_missing(list, &left).await?;
                return Ok(false);
            }
            steps.pop_front();
        }
        Ok(true)
    }

    /// Completes the change of a subject's edges with this intent, which another process has started.
    pub(super) async fn complete_list_of(&self, subject: &ScopedKey, intent: &str) -> Result<()> {
        let reads = self.reads();
        let of_subject = list_intents_query(reads.schema(), subject);
        let mut intents = reads.query(of_subject, None).await?;
        let is_wanted = |item: &Item| item.get(&INTENT).and_then(Value::as_s) == Some(intent);
        if !intents.iter().any(is_wanted) {
            // The key of an intent with a long key does not begin with the subject.
            intents = reads.intents(LIST_CHANGES_ID, &self.scope).await?;
        }
        let Some(found) = intents.iter().find(|item| is_wanted(item)) else {
            return Ok(());
        };
        let list = stored::target_list(&self.scope, found)?;
        self.complete_list(list).await
    }

    /// Divides the changes into steps. The changes of one object stay together if they fit.
    fn list_steps(&self, edges: &[Edge], target: &[Edge]) -> Result<VecDeque<Vec<EdgeStep>>> {
        // Each edge may also write its object's item, and each step writes the subject's.
        let max = (self.items_max().saturating_sub(1) / 2).max(1);
        let mut by_object: BTreeMap<EntityKey, Vec<EdgeStep>> = BTreeMap::new();
        for (edge, kind) in Difference::between(edges, target)?.0 {
            let of_object = by_object.entry(edge.object.clone()).or_default();
            of_object.push((edge, kind));
        }
        // A growing list grows from its front.
        let mut groups: Vec<_> = by_object.into_values().collect();
        groups.sort_by_key(|group| group.iter().map(|(edge, _)| edge.index).min());
        let mut steps: VecDeque<Vec<EdgeStep>> = VecDeque::new();
        for of_object in groups {
            match steps.back_mut() {
                Some(step) if step.len() + of_object.len() <= max => step.extend(of_object),
                _ => steps.extend(of_object.chunks(max).map(<[EdgeStep]>::to_vec)),
            }
        }
        Ok(steps)
    }

    /// Leaves out edges to add whose objects were deleted meanwhile, and removes edges whose objects do not exist and
    /// have no count to update.
    async fn drop_missing(&self, list: &mut TargetList, changes: &[EdgeStep]) -> Result<()> {
        let scoped_keys = self.scoped_keys(changes.iter().map(|(edge, _)| &edge.object))?;
        let found = self.reads().entities(&scoped_keys).await?;
        let mut dropped: BTreeSet<&EntityKey> = BTreeSet::new();
        for ((edge, change), scoped_key) in changes.iter().zip(&scoped_keys) {
            let object = found.get(scoped_key);
            match change {
                EdgeChangeKind::Add if object.is_none_or(|object| object.is_deleting) => {
                    dropped.insert(&edge.object);
                }
                EdgeChangeKind::Remove if object.is_none() => {
                    let table = self.db.graph_schema().relationships();
                    let delete = DeleteItem::new(table, edge.key_item(&self.scope)?);
                    send(&self.db, vec![delete.into()]).await?;
                }
                _ => {}
            }
        }
        list.edges
            .retain(|target| !dropped.contains(&target.object));
        Ok(())
    }

    fn list_writes(&self, list: &TargetList, changes: &[EdgeStep]) -> Result<Vec<TransactWrite>> {
        let subject = &list.subject;
        let schema = self.db.graph_schema();
        let edges = changes.iter().map(|(edge, kind)| (edge, *kind));
        let mut objects = counts(edges.clone());
        let mut writes = edge_writes(schema, &self.scope, edges)?;
        // The subject may be an object of its own list.
        let own = objects.remove(&subject.key).unwrap_or_default();
        let update = add(count(Update::new(), own), &EDGES, 1);
        writes.push(entity_update(schema, subject, update, list.is_marked()));
        for (object, by) in objects {
            let update = count(Update::new(), by);
            let condition = if by.0 > 0 { is_alive() } else { exists() };
            let object = self.scoped_key(object)?;
            writes.push(entity_update(schema, &object, update, condition));
        }
        Ok(writes)
    }

    /// Deletes the intent and the mark. Returns whether they existed.
    async fn finish_list(&self, list: &TargetList) -> Result<bool> {
        let schema = self.db.graph_schema();
        let update = Update::new().remove(meta(&LIST_CHANGE));
        let update = entity_update(schema, &list.subject, update, list.is_marked());
        let key = stored::list_intent_key(&list.subject, &list.predicate);
        let intent = DeleteItem::new(schema.entities(), key);
        let outcome = send(&self.db, vec![update, intent.into()]).await?;
        Ok(outcome.is_applied())
    }

    /// Deletes an intent without a mark.
    async fn delete_list_intent(&self, list: &TargetList) -> Result<()> {
        let key = stored::list_intent_key(&list.subject, &list.predicate);
        let intent = Value::from(list.intent.as_str());
        let is_own = Condition::eq(Path::attribute(INTENT), intent);
        let intent = DeleteItem::new(self.db.graph_schema().entities(), key).condition(is_own);
        // A failed condition means it is deleted already.
        send(&self.db, vec![intent.into()]).await.map(drop)
    }
}

/// The query of the intents to change lists of a subject, consistently.
fn list_intents_query(schema: &GraphSchema, subject: &ScopedKey) -> Query {
    let key = &subject.key;
    let mut prefix = own_key(&subject.scope, [key.type_name(), key.id()]);
    prefix.push(DELIMITER);
    let key = KeyCondition::partition(ID, LIST_CHANGES_ID);
    let key = key.and(SCOPE_TYPE_KEY, KeyOp::BeginsWith(Value::from(prefix)));
    Query::new(schema.entities(), key).consistent()
}

impl TargetList {
    /// The writes that record the new list and mark its subject, on the condition that its edges have not changed since
    /// the plan, by their version, and that no other change of them is in progress.
    fn start_writes(&self, schema: &GraphSchema, edges: u64) -> Result<Vec<TransactWrite>> {
        let (subject, intent) = (&self.subject, stored::list_intent(self));
        let bytes = item_size(&intent);
        if bytes > ITEM_BYTES_MAX {
            let what = "the list is too long for a change in steps";
            let message = format!("{what}: subject={subject} bytes={bytes} max={ITEM_BYTES_MAX}");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        // Without a mark on the subject, an older intent has no effect.
        let intent = PutItem::new(schema.entities(), intent);
        let update = Update::new()
            .set(meta(&LIST_CHANGE), self.intent.as_str())
            .set(meta(&EDGES), edges + 1);
        let is_free = Condition::attribute_not_exists(meta(&LIST_CHANGE));
        let as_seen = is_list_version(edges).and(is_alive()).and(is_free);
        let mark = entity_update(schema, subject, update, as_seen);
        Ok(vec![intent.into(), mark])
    }

    /// The condition that its subject exists and is marked with this change.
    fn is_marked(&self) -> Condition {
        let intent = Value::from(self.intent.as_str());
        is_alive().and(Condition::eq(meta(&LIST_CHANGE), intent))
    }
}
