//! Rebuilds an index page by page, each entity in its own transaction, while other programs write. Programs with the
//! index function write the entries themselves: so start a rebuild after the last program without the function has
//! stopped.
//!
//! Entities are found by type if the indexes of the store are consistent. Otherwise the whole table is read
//! consistently, so that no entity is missed that the store's index does not show yet.

use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{Page, Scan, TransactWrite};
use floe_store::{Item, Value};
use tracing::Instrument;

use super::pending::write_pending;
use super::state::{ScopedIndex, State};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::entries::{Indexed, index_entries};
use crate::graph::handle::Graph;
use crate::graph::keys::{self, ScopedKey, type_key};
use crate::graph::reads::Reads;
use crate::graph::schema::{GraphSchema, MapIndex};
use crate::graph::steps::{Step, send};
use crate::graph::stored::{
    self, INDEX_ENTRIES, PENDING, PENDING_ID, SCOPE_TYPE_KEY, StoredEntity, VERSION, meta,
};
use crate::graph::telemetry;
use crate::graph::writes::{
    self, claimed, contended, entity_update, entry_writes, intent_put, is_version,
};

/// Maximum attempts to index an entity that other writers change.
const TRIES_MAX: u32 = 50;

/// The progress of an index rebuild.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexRebuild {
    /// The index.
    pub index: String,
    /// Number of entities examined, including those before an interruption.
    pub entities: u64,
    /// Number of entities whose entries were changed since the rebuild was started or resumed.
    pub changed: u64,
}

impl Graph<'_> {
    /// Rebuilds an index while other callers read and write. After an interruption, the next call continues where it
    /// stopped. In stores whose indexes lag, such as DynamoDB, it reads the whole table of entities, so that none is
    /// missed.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) if the index is unique and two entities have the same key,
    /// [`InvalidUse`](ErrorKind::InvalidUse) if it is not declared.
    pub async fn rebuild<I: MapIndex>(
        &self,
        progress: impl Fn(&IndexRebuild) + Send + Sync,
    ) -> Result<IndexRebuild> {
        self.rebuild_by(I::NAME, progress).await
    }

    /// Rebuilds an index like [`rebuild`](Self::rebuild), by its name.
    ///
    /// # Errors
    ///
    /// As for [`rebuild`](Self::rebuild).
    pub async fn rebuild_by(
        &self,
        index: &str,
        progress: impl Fn(&IndexRebuild) + Send + Sync,
    ) -> Result<IndexRebuild> {
        self.check_outside()?;
        keys::check_scope(&self.scope)?;
        let index = self.db.graph_schema().index_named(index)?;
        let span = telemetry::rebuild(&index.name);
        let index = ScopedIndex {
            reads: self.reads(),
            scope: &self.scope,
            def: index,
        };
        let rebuilt = index.pages(&progress).instrument(span.clone()).await?;
        span.record("floe.graph.entities", rebuilt.entities)
            .record("floe.graph.changed", rebuilt.changed);
        Ok(rebuilt)
    }
}

impl ScopedIndex<'_> {
    /// Processes all pages, from the stored cursor.
    async fn pages(
        &self,
        listener: &(dyn Fn(&IndexRebuild) + Send + Sync),
    ) -> Result<IndexRebuild> {
        let mut state = self.start_or_resume().await?;
        let mut progress = IndexRebuild {
            index: self.def.name.clone(),
            entities: state.done,
            changed: 0,
        };
        loop {
            let page = self.page_of_type(state.cursor.take()).await?;
            for item in &page.items {
                let stored = StoredEntity::of_item(item)?;
                progress.entities += 1;
                progress.changed += u64::from(self.reindex(&stored).await?);
            }
            listener(&progress);
            state.done = progress.entities;
            state.is_ready = page.last_key.is_none();
            state.cursor = page.last_key;
            self.save(&state).await?;
            if state.is_ready {
                self.reads.schema().mark_ready(self.scope, self.def);
                return Ok(progress);
            }
        }
    }

    /// A page of the entities of the type.
    async fn page_of_type(&self, cursor: Option<Item>) -> Result<Page> {
        let reads = self.reads;
        if reads.db.engine().capabilities().consistent_indexes {
            // An entity that is updated meanwhile moves to the end, and is read again there.
            let mut query = self.of_type();
            query.start_key = cursor;
            return reads.page(&query).await;
        }
        let type_key = Value::from(type_key(self.scope, &self.def.type_name));
        let is_of_type = Condition::eq(Path::attribute(SCOPE_TYPE_KEY), type_key);
        let scan = Scan::new(reads.schema().entities()).consistent();
        let mut scan = scan.filter(is_of_type);
        scan.start_key = cursor;
        reads.scan(&scan).await
    }

    /// The state of a new rebuild, or of an interrupted one.
    async fn start_or_resume(&self) -> Result<State> {
        let version = self.def.version;
        let known = self.state().await?;
        if let Some(state) = known.filter(|state| state.version == version && !state.is_ready) {
            return Ok(state);
        }
        let state = State {
            version,
            ..State::default()
        };
        self.save(&state).await?;
        Ok(state)
    }

    /// Updates the entries of an entity. Returns whether there was something to change. `seen` is the entity as read.
    async fn reindex(&self, seen: &StoredEntity) -> Result<bool> {
        let reads = &self.reads;
        let scoped_key = ScopedKey::new(self.scope, seen.node.key.clone())?;
        let indexed = seen.entries.get(&self.def.name);
        if indexed.is_some_and(|indexed| indexed.version >= self.def.version) {
            if seen.has_pending_entries {
                write_pending(reads, &scoped_key).await?;
            }
            return Ok(false);
        }
        for _ in 0..TRIES_MAX {
            let Some(old) = reads.entity(&scoped_key).await? else {
                return Ok(false);
            };
            let Some(plan_reindex) = plan_reindex(reads, &scoped_key, &old)? else {
                return Ok(false);
            };
            match send(reads.db, plan_reindex.writes).await? {
                Step::Applied => {
                    if plan_reindex.is_deferred {
                        write_pending(reads, &scoped_key).await?;
                    }
                    return Ok(true);
                }
                Step::Refused(reasons) => {
                    for ((index, key), reason) in plan_reindex.claimed.iter().zip(reasons) {
                        if let Some(item) = &reason.item {
                            return Err(claimed(index, key, Some(item)));
                        }
                    }
                }
            }
        }
        Err(contended(&scoped_key, TRIES_MAX))
    }
}

/// The changes that update the entries of an entity.
struct ReindexPlan {
    /// The unique keys that it claims. The first writes claim them, in this order.
    claimed: Vec<(String, String)>,
    writes: Vec<TransactWrite>,
    /// Whether the entries follow in steps.
    is_deferred: bool,
}

/// The writes that update the entries of an entity; `None` if they are up to date.
fn plan_reindex(
    reads: &Reads<'_>,
    scoped_key: &ScopedKey,
    old: &StoredEntity,
) -> Result<Option<ReindexPlan>> {
    if old.is_deleting {
        return Ok(None);
    }
    let schema = reads.schema();
    let indexed = index_entries(schema, scoped_key, Some(old), Some(&old.node));
    let indexed = indexed
        .map_err(|error| Error::new(error.kind(), format!("{error} entity={scoped_key}")))?;
    if indexed.entries == old.entries && indexed.puts.is_empty() {
        return Ok(None);
    }
    let items_max = reads.items_max();
    let is_deferred = old.has_pending_entries || 1 + indexed.items() > items_max;
    let entries = stored::write_entries(&indexed.entries);
    let mut update = Update::new()
        .set(Path::attribute(INDEX_ENTRIES), entries)
        .set(meta(&VERSION), old.version + 1);
    let mut writes = claim_writes(schema, scoped_key, &indexed);
    if is_deferred {
        update = update.set(meta(&PENDING), true);
        writes.push(intent_put(schema, PENDING_ID, scoped_key));
    } else {
        writes.extend(entry_writes(schema, scoped_key, &indexed));
    }
    let as_seen = is_version(old.version);
    writes.push(entity_update(schema, scoped_key, update, as_seen));
    if writes.len() > items_max {
        let what = "the entity has more unique keys than fit into one transaction";
        let items = writes.len();
        let message = format!("{what}: entity={scoped_key} items={items} max={items_max}");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(Some(ReindexPlan {
        claimed: indexed.claimed,
        writes,
        is_deferred,
    }))
}

fn claim_writes(
    schema: &GraphSchema,
    scoped_key: &ScopedKey,
    indexed: &Indexed,
) -> Vec<TransactWrite> {
    let claim = |(index, key): &(String, String)| -> TransactWrite {
        writes::claim(schema, scoped_key, index, key, None).into()
    };
    let release = |(index, key): &(String, String)| -> TransactWrite {
        writes::release(schema, &scoped_key.scope, index, key).into()
    };
    let claims = indexed.claimed.iter().map(claim);
    claims.chain(indexed.released.iter().map(release)).collect()
}
