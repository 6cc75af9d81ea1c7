//! Repairs differences between the three tables, each on the condition that it is as the check found it.

use floe_store::Value;
use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{DeleteItem, PutItem, TransactWrite};

use super::difference::{CheckReport, Difference, WideChange};
use crate::error::Result;
use crate::graph::changes::EdgeChangeKind;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, IndexKey, ScopedKey};
use crate::graph::steps::send;
use crate::graph::stored::{
    self, DELETIONS_ID, EDGES, Edge, HELD_BY, INCOMING, INDEX_ENTRIES, LIST_CHANGE, META,
    PENDING_ID, VERSION, meta,
};
use crate::graph::writes::{
    self, edge_write, entity_update, exists, intent_delete, intent_put, is_version,
};

impl Graph<'_> {
    /// Compares the three tables and repairs what can be repaired. Returns the differences found.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub async fn repair(&self) -> Result<CheckReport> {
        let report = self.check().await?;
        // An entity without `_meta` cannot be repaired otherwise, and removing edges changes counts: so each round
        // starts with a new check.
        let is_meta = |found: &Difference| matches!(found, Difference::MissingMeta(_));
        let is_count = |found: &Difference| matches!(found, Difference::WrongCount { .. });
        self.repair_all(&report, is_meta).await?;
        let with_meta = self.check().await?;
        self.repair_all(&with_meta, |found| !is_count(found))
            .await?;
        let with_edges = self.check().await?;
        self.repair_all(&with_edges, is_count).await?;
        self.resume(|_| {}).await?;
        Ok(report)
    }

    async fn repair_all(
        &self,
        report: &CheckReport,
        which: impl Fn(&Difference) -> bool,
    ) -> Result<()> {
        for difference in report.differences.iter().filter(|d| which(d)) {
            self.repair_difference(difference).await?;
        }
        Ok(())
    }

    async fn repair_difference(&self, difference: &Difference) -> Result<()> {
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
                vec![entity_update(schema, &self.scoped_key(entity)?, update, as_seen)]
            }
            Difference::WrongKeys { entity } => self.with_keys(entity).await?,
            Difference::MissingEntry { entity, index, key } => {
                self.with_entry(entity, index, key).await?
            }
            Difference::ExtraEntry { entity, index, key } => {
                let entry = stored::entry_key(&self.scoped_key(entity)?, index, key);
                vec![DeleteItem::new(schema.entries(), entry).into()]
            }
            Difference::MissingClaim { entity, index, key } => {
                vec![writes::claim(schema, &self.scoped_key(entity)?, index, key, None).into()]
            }
            Difference::ExtraClaim { index, key, .. } => {
                vec![writes::release(schema, &self.scope, index, key).into()]
            }
            Difference::MissingIntent { change, entity } => {
                let scoped_key = self.scoped_key(entity)?;
                let of = match change {
                    WideChange::Deletion => DELETIONS_ID,
                    WideChange::Entries => PENDING_ID,
                    WideChange::List => return self.unlock_lists(&scoped_key).await,
                };
                vec![intent_put(schema, of, &scoped_key)]
            }
            Difference::ExtraIntent {
                change: WideChange::Deletion,
                entity,
            } => {
                vec![intent_delete(schema, DELETIONS_ID, &self.scoped_key(entity)?)]
            }
            Difference::MissingMeta(entity) => {
                let meta = stored::new_meta(stored::first_version(&self.db), (0, 0));
                let update = Update::new().set(Path::attribute(META), Value::M(meta));
                let has_none = exists().and(Condition::attribute_not_exists(Path::attribute(META)));
                vec![entity_update(schema, &self.scoped_key(entity)?, update, has_none)]
            }
            Difference::DoubleClaim { .. }
            | Difference::Unreadable { .. }
            | Difference::Damaged { .. }
            | Difference::Unfinished { .. }
            // `resume` deletes the record where no entity is marked.
            | Difference::ExtraIntent { .. } => return Ok(()),
        };
        if !writes.is_empty() {
            // A failed condition means another writer changed it; the next check reports the result.
            send(&self.db, writes).await?;
        }
        Ok(())
    }

    /// Unlocks the lists of an entity.
    async fn unlock_lists(&self, scoped_key: &ScopedKey) -> Result<()> {
        let update = Update::new().remove(meta(&LIST_CHANGE));
        let is_marked = Condition::attribute_exists(meta(&LIST_CHANGE));
        let update = entity_update(self.db.graph_schema(), scoped_key, update, is_marked);
        send(&self.db, vec![update]).await.map(drop)
    }

    /// Removes an edge, and raises the list version of its subject, if that exists.
    async fn without_edge(&self, edge: &Edge) -> Result<Vec<TransactWrite>> {
        let schema = self.db.graph_schema();
        let kind = EdgeChangeKind::Remove;
        let mut writes = vec![edge_write(schema, &self.scope, edge, kind)?];
        let subject = self.scoped_key(&edge.subject)?;
        if let Some(stored) = self.reads().entity(&subject).await? {
            let update = Update::new().set(meta(&EDGES), stored.edges + 1);
            let as_seen = is_version(stored.version);
            writes.push(entity_update(schema, &subject, update, as_seen));
        }
        Ok(writes)
    }

    async fn with_keys(&self, entity: &EntityKey) -> Result<Vec<TransactWrite>> {
        let scoped_key = self.scoped_key(entity)?;
        let Some(stored) = self.reads().entity(&scoped_key).await? else {
            return Ok(Vec::new());
        };
        let (keys, _) = self.keys_of(&stored)?;
        let update = Update::new()
            .set(Path::attribute(INDEX_ENTRIES), stored::write_entries(&keys))
            .set(meta(&VERSION), stored.version + 1);
        let as_seen = is_version(stored.version);
        let schema = self.db.graph_schema();
        Ok(vec![entity_update(schema, &scoped_key, update, as_seen)])
    }

    async fn with_entry(
        &self,
        entity: &EntityKey,
        index: &str,
        key: &str,
    ) -> Result<Vec<TransactWrite>> {
        let scoped_key = self.scoped_key(entity)?;
        let Some(stored) = self.reads().entity(&scoped_key).await? else {
            return Ok(Vec::new());
        };
        let table = self.db.graph_schema().entries();
        let (_, emitted) = self.keys_of(&stored)?;
        let key = IndexKey::text(key);
        let attributes = emitted.get(index).and_then(|emitted| emitted.get(&key));
        let put = attributes.map(|attributes| {
            let entry = stored::entry(&scoped_key, index, &key, attributes);
            PutItem::new(table, entry).into()
        });
        Ok(put.into_iter().collect())
    }
}
