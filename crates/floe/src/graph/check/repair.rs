//! Making the three tables agree, difference by difference. Each is mended on the condition that it is as it was seen.

use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::{Item, Number, Value};

use super::difference::{Difference, InSteps, Report};
use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, Place, join};
use crate::graph::steps::send;
use crate::graph::stored::{
    self, BEHIND_ID, BUSY, EDGES, Edge, HELD_BY, ID, INCOMING, INDEX_ENTRIES, LEAVING_ID, META,
    SUBJECT_KEY, UNIQUE_KEY, VERSION, meta,
};
use crate::graph::writes::is_version;

impl Graph<'_> {
    /// Compares the three tables and repairs what can be. Tells what was different.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub async fn repair(&self) -> Result<Report> {
        let report = self.check().await?;
        // Nothing can be mended in an entity without `_meta`, and what is removed changes numbers: so it is compared anew
        // in between.
        let is_meta = |difference: &Difference| matches!(difference, Difference::MissingMeta(_));
        let is_count =
            |difference: &Difference| matches!(difference, Difference::WrongCount { .. });
        self.mend_all(&report, is_meta).await?;
        let with_meta = self.check().await?;
        self.mend_all(&with_meta, |difference| !is_count(difference))
            .await?;
        let with_edges = self.check().await?;
        self.mend_all(&with_edges, is_count).await?;
        self.resume(|_| {}).await?;
        Ok(report)
    }

    async fn mend_all(&self, report: &Report, which: impl Fn(&Difference) -> bool) -> Result<()> {
        for difference in report.differences.iter().filter(|d| which(d)) {
            self.mend(difference).await?;
        }
        Ok(())
    }

    async fn mend(&self, difference: &Difference) -> Result<()> {
        let schema = self.db.graph_schema();
        let (entities, edges) = (schema.entities(), schema.relationships());
        let writes: Vec<TransactWrite> = match difference {
            Difference::MissingSubject(edge) | Difference::MissingObject(edge) => {
                self.without_edge(edge).await?
            }
            Difference::WrongHold(edge) => {
                let turned = Edge {
                    is_holding: !edge.is_holding,
                    ..edge.clone()
                };
                let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
                let put = PutItem::new(edges, turned.to_item(&self.scope)?).condition(is_there);
                vec![put.into()]
            }
            Difference::WrongCount {
                entity,
                expected,
                actual,
            } => {
                let place = self.place(entity)?;
                let number = |number: u64| Value::N(Number::from(number));
                let update = Update::new()
                    .set(meta(&INCOMING), number(expected.0))
                    .set(meta(&HELD_BY), number(expected.1));
                let as_seen = Condition::attribute_not_exists(meta(&INCOMING))
                    .or(Condition::eq(meta(&INCOMING), number(actual.0)));
                let is_there = Condition::attribute_exists(Path::attribute(ID));
                let update = UpdateItem::new(entities, stored::entity_key(&place), update);
                vec![update.condition(is_there.and(as_seen)).into()]
            }
            Difference::WrongKeys { entity } => self.with_keys(entity).await?,
            Difference::MissingEntry { entity, index, key } => {
                self.with_entry(entity, index, key).await?
            }
            Difference::ExtraEntry { entity, index, key } => {
                let entry = Item::new()
                    .with(SUBJECT_KEY, self.place(entity)?.text())
                    .with(UNIQUE_KEY, join([index.as_str(), key.as_str()]));
                vec![DeleteItem::new(schema.entries(), entry).into()]
            }
            Difference::MissingClaim { entity, index, key } => {
                let claim = stored::claim(&self.place(entity)?, index, key);
                let is_free = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
                vec![
                    PutItem::new(schema.entries(), claim)
                        .condition(is_free)
                        .into(),
                ]
            }
            Difference::ExtraClaim { index, key, .. } => {
                let claim = stored::claim_key(&self.scope, index, key);
                vec![DeleteItem::new(schema.entries(), claim).into()]
            }
            Difference::MissingIntent { what, entity } => {
                let place = self.place(entity)?;
                let of = match what {
                    InSteps::Deletion => LEAVING_ID,
                    InSteps::Entries => BEHIND_ID,
                    InSteps::List => return self.free(&place).await,
                };
                vec![PutItem::new(entities, stored::intent(of, &place)).into()]
            }
            Difference::ExtraIntent {
                what: InSteps::Deletion,
                entity,
            } => {
                let key = stored::intent_key(LEAVING_ID, &self.place(entity)?);
                vec![DeleteItem::new(entities, key).into()]
            }
            Difference::MissingMeta(entity) => {
                let meta = stored::new_meta(stored::first_version(&self.db), 0, 0);
                let update = Update::new().set(Path::attribute(META), Value::M(meta));
                let key = stored::entity_key(&self.place(entity)?);
                let is_there = Condition::attribute_exists(Path::attribute(ID));
                let has_none = Condition::attribute_not_exists(Path::attribute(META));
                let update = UpdateItem::new(entities, key, update);
                vec![update.condition(is_there.and(has_none)).into()]
            }
            Difference::DoubleClaim { .. }
            | Difference::Unreadable { .. }
            | Difference::Damaged { .. }
            | Difference::Unfinished { .. }
            // Where nothing is marked, what is resumed removes the note.
            | Difference::ExtraIntent { .. } => return Ok(()),
        };
        if !writes.is_empty() {
            // Refused, somebody else has changed it; the next check tells.
            send(&self.db, writes).await?;
        }
        Ok(())
    }

    /// Lets others change the lists of an entity again.
    async fn free(&self, place: &Place) -> Result<()> {
        let update = Update::new().remove(meta(&BUSY));
        let is_busy = Condition::attribute_exists(meta(&BUSY));
        let table = self.db.graph_schema().entities();
        let update = UpdateItem::new(table, stored::entity_key(place), update);
        send(&self.db, vec![update.condition(is_busy).into()])
            .await
            .map(drop)
    }

    /// Removes an edge; its subject, if there is one, has another list then.
    async fn without_edge(&self, edge: &Edge) -> Result<Vec<TransactWrite>> {
        let schema = self.db.graph_schema();
        let key = edge.key_item(&self.scope)?;
        let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
        let delete = DeleteItem::new(schema.relationships(), key).condition(is_there);
        let mut writes = vec![delete.into()];
        let subject = self.place(&edge.subject)?;
        if let Some(stored) = self.reads().entity(&subject).await? {
            let edges = Value::N(Number::from(stored.edges + 1));
            let update = Update::new().set(meta(&EDGES), edges);
            let update = UpdateItem::new(schema.entities(), stored::entity_key(&subject), update);
            writes.push(update.condition(is_version(stored.version)).into());
        }
        Ok(writes)
    }

    async fn with_keys(&self, entity: &EntityKey) -> Result<Vec<TransactWrite>> {
        let place = self.place(entity)?;
        let Some(stored) = self.reads().entity(&place).await? else {
            return Ok(Vec::new());
        };
        let (keys, _) = self.keys_of(&stored)?;
        let update = Update::new()
            .set(Path::attribute(INDEX_ENTRIES), stored::write_entries(&keys))
            .set(meta(&VERSION), Value::N(Number::from(stored.version + 1)));
        let table = self.db.graph_schema().entities();
        let update = UpdateItem::new(table, stored::entity_key(&place), update);
        Ok(vec![update.condition(is_version(stored.version)).into()])
    }

    async fn with_entry(
        &self,
        entity: &EntityKey,
        index: &str,
        key: &str,
    ) -> Result<Vec<TransactWrite>> {
        let place = self.place(entity)?;
        let Some(stored) = self.reads().entity(&place).await? else {
            return Ok(Vec::new());
        };
        let table = self.db.graph_schema().entries();
        let (_, emitted) = self.keys_of(&stored)?;
        let entries = emitted.iter().filter(|(name, _)| name == index);
        let entries = entries.flat_map(|(_, entries)| entries);
        let entries = entries.filter(|(emitted, _)| emitted.as_str() == key);
        let puts = entries.map(|(key, attributes)| {
            let entry = stored::entry(&place, index, key, attributes);
            PutItem::new(table.as_str(), entry).into()
        });
        Ok(puts.collect())
    }
}
