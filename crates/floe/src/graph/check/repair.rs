//! Making the three tables agree, difference by difference. Each is mended on the condition that it is as it was seen.

use floe_store::Value;
use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{DeleteItem, PutItem, TransactWrite};

use super::difference::{Difference, InSteps, Report};
use crate::error::Result;
use crate::graph::changes::EdgeChangeKind;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, IndexKey, Place};
use crate::graph::steps::send;
use crate::graph::stored::{
    self, BEHIND_ID, BUSY, EDGES, Edge, HELD_BY, INCOMING, INDEX_ENTRIES, LEAVING_ID, META,
    VERSION, meta,
};
use crate::graph::writes::{
    self, edge_write, entity_update, exists, intent_delete, intent_put, is_version,
};

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
        let is_meta = |found: &Difference| matches!(found, Difference::MissingMeta(_));
        let is_count = |found: &Difference| matches!(found, Difference::WrongCount { .. });
        self.mend_all(&report, is_meta).await?;
        let with_meta = self.check().await?;
        self.mend_all(&with_meta, |found| !is_count(found)).await?;
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
        let writes: Vec<TransactWrite> = match difference {
            Difference::MissingSubject(edge) | Difference::MissingObject(edge) => {
                self.without_edge(edge).await?
            }
            Difference::WrongHold(edge) => {
                let mut turned = edge.clone();
                turned.is_holding = !edge.is_holding;
                let kind = EdgeChangeKind::Rewrite;
                vec![edge_write(schema, &self.scope, &turned, kind)?]
            }
            Difference::WrongCount {
                entity,
                expected,
                actual,
            } => {
                let update = Update::new()
                    .set(meta(&INCOMING), expected.0)
                    .set(meta(&HELD_BY), expected.1);
                let as_seen = Condition::attribute_not_exists(meta(&INCOMING))
                    .or(Condition::eq(meta(&INCOMING), Value::from(actual.0)));
                let as_seen = exists().and(as_seen);
                vec![entity_update(schema, &self.place(entity)?, update, as_seen)]
            }
            Difference::WrongKeys { entity } => self.with_keys(entity).await?,
            Difference::MissingEntry { entity, index, key } => {
                self.with_entry(entity, index, key).await?
            }
            Difference::ExtraEntry { entity, index, key } => {
                let entry = stored::entry_key(&self.place(entity)?, index, key);
                vec![DeleteItem::new(schema.entries(), entry).into()]
            }
            Difference::MissingClaim { entity, index, key } => {
                vec![writes::claim(schema, &self.place(entity)?, index, key, None).into()]
            }
            Difference::ExtraClaim { index, key, .. } => {
                vec![writes::release(schema, &self.scope, index, key).into()]
            }
            Difference::MissingIntent { what, entity } => {
                let place = self.place(entity)?;
                let of = match what {
                    InSteps::Deletion => LEAVING_ID,
                    InSteps::Entries => BEHIND_ID,
                    InSteps::List => return self.free(&place).await,
                };
                vec![intent_put(schema, of, &place)]
            }
            Difference::ExtraIntent {
                what: InSteps::Deletion,
                entity,
            } => {
                vec![intent_delete(schema, LEAVING_ID, &self.place(entity)?)]
            }
            Difference::MissingMeta(entity) => {
                let meta = stored::new_meta(stored::first_version(&self.db), (0, 0));
                let update = Update::new().set(Path::attribute(META), Value::M(meta));
                let has_none = exists().and(Condition::attribute_not_exists(Path::attribute(META)));
                vec![entity_update(schema, &self.place(entity)?, update, has_none)]
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
        let update = entity_update(self.db.graph_schema(), place, update, is_busy);
        send(&self.db, vec![update]).await.map(drop)
    }

    /// Removes an edge; its subject, if there is one, has another list then.
    async fn without_edge(&self, edge: &Edge) -> Result<Vec<TransactWrite>> {
        let schema = self.db.graph_schema();
        let kind = EdgeChangeKind::Remove;
        let mut writes = vec![edge_write(schema, &self.scope, edge, kind)?];
        let subject = self.place(&edge.subject)?;
        if let Some(stored) = self.reads().entity(&subject).await? {
            let update = Update::new().set(meta(&EDGES), stored.edges + 1);
            let as_seen = is_version(stored.version);
            writes.push(entity_update(schema, &subject, update, as_seen));
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
            .set(meta(&VERSION), stored.version + 1);
        let as_seen = is_version(stored.version);
        let schema = self.db.graph_schema();
        Ok(vec![entity_update(schema, &place, update, as_seen)])
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
        let key = IndexKey::text(key);
        let attributes = emitted.get(index).and_then(|emitted| emitted.get(&key));
        let put = attributes.map(|attributes| {
            let entry = stored::entry(&place, index, &key, attributes);
            PutItem::new(table, entry).into()
        });
        Ok(put.into_iter().collect())
    }
}
