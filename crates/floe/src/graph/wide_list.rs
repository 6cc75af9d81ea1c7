//! Changes of lists that do not fit into one transaction: done in steps, each of which can be the last before a crash.
//!
//! First the list as it is to be is noted, and its subject marked as busy, in one transaction: from then on nobody else
//! changes edges of the subject. Then what differs is changed, some edges at a time, until nothing does; at last the note
//! and the mark go. What to do follows from the note and from what is stored, so whoever finds a note can go on. Readers
//! see the list on its way.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::expr::{Condition, KeyCondition, KeyOp, Path, SetOperand, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{DeleteItem, PutItem, Query, TransactWrite, UpdateItem};
use floe_store::size::item_size;
use floe_store::{Number, Value};

use super::Graph;
use super::compile::{count, is_number, missing};
use super::key::{EntityKey, Place};
use super::rearrange::{ListChange, difference, target};
use super::steps::send;
use super::stored::{
    self, BUSY, EDGES, Edge, ID, LEAVING, LISTS_ID, SCOPE_TYPE_KEY, SUBJECT_KEY, meta,
};
use super::work::{Done, Op};
use crate::error::{Error, ErrorKind, Result};

/// How often a change is begun anew because somebody else was faster.
const BEGINS_MAX: u32 = 50;

/// A list on its way to what it is to be.
struct WideList {
    subject: Place,
    predicate: String,
    wanted: Vec<Edge>,
}

impl Graph<'_> {
    /// Changes a list in steps.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when the list cannot be noted in one item.
    pub(super) async fn change_wide(&self, op: &Op<'_>) -> Result<Done> {
        let Op::List {
            subject,
            predicate,
            change,
        } = op
        else {
            return Ok(Done::default());
        };
        let subject = self.place(subject)?;
        let before = self
            .reads()
            .outgoing(&subject, Some(predicate), None)
            .await?;
        let list = self.begin_list(&subject, predicate, change).await?;
        let gone = difference(&before, &list.wanted)?.removed.len() as u64;
        self.end_list(list).await?;
        Ok(Done {
            edges: gone,
            ..Done::default()
        })
    }

    /// Ends the changes of lists that were begun and not ended. Tells how many there were.
    pub(super) async fn resume_lists(&self) -> Result<u64> {
        let prefix = Value::from(stored::own_prefix(&self.scope));
        let key =
            KeyCondition::partition(ID, LISTS_ID).and(SCOPE_TYPE_KEY, KeyOp::BeginsWith(prefix));
        let query = Query::new(self.db.graph_schema().entities(), key).consistent();
        let mut ended = 0;
        for item in self.reads().query(query, None).await? {
            let (subject, predicate, wanted) = stored::wanted_list(&item)?;
            let subject = self.place(&subject)?;
            let list = WideList {
                subject,
                predicate,
                wanted,
            };
            self.end_list(list).await?;
            ended += 1;
        }
        Ok(ended)
    }

    async fn begin_list(
        &self,
        subject: &Place,
        predicate: &str,
        change: &ListChange,
    ) -> Result<WideList> {
        let schema = self.db.graph_schema();
        for tried in 0..BEGINS_MAX {
            let old = self.reads().entity(subject).await?;
            let old = old.filter(|old| !old.is_leaving);
            let old = old.ok_or_else(|| missing(subject))?;
            if old.is_busy {
                self.pause(tried).await;
                continue;
            }
            let edges = self
                .reads()
                .outgoing(subject, Some(predicate), None)
                .await?;
            let wanted = target(schema, subject, predicate, &edges, change)?;
            self.check_objects(&edges, &wanted).await?;
            let intent = stored::list_intent(subject, predicate, &wanted)?;
            check_size(subject, item_size(&intent))?;
            let is_new = Condition::attribute_not_exists(Path::attribute(ID));
            let intent = PutItem::new(schema.entities(), intent).condition(is_new);
            let number = |number: u64| Value::N(Number::from(number));
            let update = Update::new()
                .set(meta(&BUSY), true)
                .set(meta(&EDGES), number(old.edges + 1));
            let as_seen = is_number(&EDGES, old.edges).and(is_alive());
            let key = stored::entity_key(subject);
            let mark = UpdateItem::new(schema.entities(), key, update).condition(as_seen);
            if send(&self.db, vec![intent.into(), mark.into()])
                .await?
                .is_applied()
            {
                return Ok(WideList {
                    subject: subject.clone(),
                    predicate: predicate.to_owned(),
                    wanted,
                });
            }
        }
        Err(Error::new(
            ErrorKind::TransactionFailed,
            format!("others were always faster: entity={subject} attempts={BEGINS_MAX}"),
        ))
    }

    async fn pause(&self, tried: u32) {
        let backoff = crate::tx::backoff::Backoff::resync();
        let pause = backoff.pause(tried + 1, self.db.env().next_u64());
        self.db.timer().sleep(pause).await;
    }

    /// Refuses objects that are not there, before anything is done.
    async fn check_objects(&self, old: &[Edge], wanted: &[Edge]) -> Result<()> {
        let known: BTreeSet<&EntityKey> = old.iter().map(|edge| &edge.object).collect();
        let new = wanted.iter().map(|edge| &edge.object);
        let new = new.filter(|object| !known.contains(object));
        let places: Vec<Place> = new
            .map(|object| self.place(object))
            .collect::<Result<_>>()?;
        let found = self.reads().entities(&places).await?;
        let is_gone = |place: &&Place| found.get(place).is_none_or(|object| object.is_leaving);
        match places.iter().find(is_gone) {
            Some(place) => Err(missing(place)),
            None => Ok(()),
        }
    }

    /// Changes what differs, until nothing does.
    async fn end_list(&self, mut list: WideList) -> Result<()> {
        // Each edge may need its object's item as well, and all of them the subject's.
        let max = self.db.engine().capabilities().transact_items_max;
        let some = (max.saturating_sub(1) / 2).max(1);
        loop {
            let is_there = self.reads().entity(&list.subject).await?;
            if is_there.is_none_or(|subject| subject.is_leaving) {
                // Its edges go with it.
                return self.forget_list(&list, false).await;
            }
            let subject = &list.subject;
            let edges = self
                .reads()
                .outgoing(subject, Some(&list.predicate), None)
                .await?;
            let left = difference(&edges, &list.wanted)?;
            let removed = left.removed.into_iter().map(|edge| (edge, Change::Remove));
            let put = left.put.into_iter().map(|(edge, is_there)| match is_there {
                true => (edge, Change::Rewrite),
                false => (edge, Change::Add),
            });
            let changes: Vec<(Edge, Change)> = removed.chain(put).take(some).collect();
            if changes.is_empty() {
                return self.forget_list(&list, true).await;
            }
            let writes = self.list_writes(&list.subject, &changes)?;
            if !send(&self.db, writes).await?.is_applied() {
                self.drop_missing(&mut list, &changes).await?;
            }
        }
    }

    /// Leaves out what is to be linked and is gone meanwhile, and removes edges that lead to nothing, where there is
    /// nothing to count.
    async fn drop_missing(&self, list: &mut WideList, changes: &[(Edge, Change)]) -> Result<()> {
        let objects = changes.iter().map(|(edge, _)| self.place(&edge.object));
        let places: Vec<Place> = objects.collect::<Result<_>>()?;
        let found = self.reads().entities(&places).await?;
        for ((edge, change), place) in changes.iter().zip(&places) {
            let object = found.get(place);
            match change {
                Change::Add if object.is_none_or(|object| object.is_leaving) => {
                    list.wanted.retain(|wanted| wanted.object != edge.object);
                }
                Change::Remove if object.is_none() => {
                    let table = self.db.graph_schema().relationships();
                    let delete = DeleteItem::new(table, edge.key_item(&self.scope)?);
                    send(&self.db, vec![delete.into()]).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn list_writes(
        &self,
        subject: &Place,
        changes: &[(Edge, Change)],
    ) -> Result<Vec<TransactWrite>> {
        let schema = self.db.graph_schema();
        let table = schema.relationships();
        let mut writes: Vec<TransactWrite> = Vec::new();
        let mut objects: BTreeMap<&EntityKey, (i64, i64)> = BTreeMap::new();
        for (edge, change) in changes {
            let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
            let is_new = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
            let by = match change {
                Change::Remove => {
                    let key = edge.key_item(&self.scope)?;
                    let delete = DeleteItem::new(table.as_str(), key);
                    writes.push(delete.condition(is_there).into());
                    -1
                }
                Change::Add => {
                    let put = PutItem::new(table.as_str(), edge.to_item(&self.scope)?);
                    writes.push(put.condition(is_new).into());
                    1
                }
                Change::Rewrite => {
                    let put = PutItem::new(table.as_str(), edge.to_item(&self.scope)?);
                    writes.push(put.condition(is_there).into());
                    0
                }
            };
            let counted = objects.entry(&edge.object).or_default();
            counted.0 += by;
            counted.1 += by * i64::from(edge.is_holding);
        }
        // The subject may be an object of its own.
        let own = objects.remove(&subject.key).unwrap_or_default();
        let one = Value::from(1);
        let had = SetOperand::if_not_exists(meta(&EDGES), Value::from(0));
        let update = count(Update::new(), own).set_sum(meta(&EDGES), had, one);
        let update = UpdateItem::new(schema.entities(), stored::entity_key(subject), update);
        writes.push(update.condition(is_alive()).into());
        for (object, by) in objects.into_iter().filter(|(_, by)| *by != (0, 0)) {
            let key = stored::entity_key(&self.place(object)?);
            let update = UpdateItem::new(schema.entities(), key, count(Update::new(), by));
            let condition = match by.0 > 0 {
                true => is_alive(),
                false => Condition::attribute_exists(Path::attribute(ID)),
            };
            writes.push(update.condition(condition).into());
        }
        Ok(writes)
    }

    /// Removes the note, and the mark of a subject that is there.
    async fn forget_list(&self, list: &WideList, has_subject: bool) -> Result<()> {
        let entities = self.db.graph_schema().entities();
        let key = stored::list_intent_key(&list.subject, &list.predicate);
        let mut writes: Vec<TransactWrite> = vec![DeleteItem::new(entities.as_str(), key).into()];
        if has_subject {
            let key = stored::entity_key(&list.subject);
            let update = Update::new().remove(meta(&BUSY));
            let update = UpdateItem::new(entities.as_str(), key, update);
            let is_there = Condition::attribute_exists(Path::attribute(ID));
            writes.push(update.condition(is_there).into());
        }
        if !send(&self.db, writes).await?.is_applied() {
            // The subject is gone since.
            let key = stored::list_intent_key(&list.subject, &list.predicate);
            send(&self.db, vec![DeleteItem::new(entities, key).into()]).await?;
        }
        Ok(())
    }
}

/// What becomes of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Add,
    Rewrite,
    Remove,
}

fn is_alive() -> Condition {
    Condition::attribute_exists(Path::attribute(ID))
        .and(Condition::attribute_not_exists(meta(&LEAVING)))
}

fn check_size(subject: &Place, bytes: usize) -> Result<()> {
    match bytes > ITEM_BYTES_MAX {
        true => Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "the list is too long to be changed at once: subject={subject} bytes={bytes} max={ITEM_BYTES_MAX}"
            ),
        )),
        false => Ok(()),
    }
}
