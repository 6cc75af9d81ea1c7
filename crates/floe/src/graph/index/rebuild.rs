//! Bringing an index up to date: page by page, each entity in a transaction of its own, while others go on writing. What
//! they write has its entries already, if they have the function: so a rebuild belongs after the last program without it
//! has stopped.
//!
//! Entities are found by their type where the store's indexes are never behind; elsewhere all of the table is read, as it
//! is, so that none is missed that the index does not show yet.

use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{Page, Scan, TransactWrite};
use floe_store::{Item, Value};
use tracing::Instrument;

use super::behind::write_behind;
use super::state::{ScopedIndex, State};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::entries::{Indexed, index_entries};
use crate::graph::handle::Graph;
use crate::graph::keys::{self, Place, type_key};
use crate::graph::reads::Reads;
use crate::graph::schema::{GraphSchema, MapIndex};
use crate::graph::steps::{Step, send};
use crate::graph::stored::{
    self, BEHIND, BEHIND_ID, INDEX_ENTRIES, SCOPE_TYPE_KEY, Stored, VERSION, meta,
};
use crate::graph::telemetry;
use crate::graph::writes::{
    self, claimed, contended, entity_update, entry_writes, intent_put, is_version,
};

/// How often an entity is indexed anew because somebody else has changed it.
const TRIES_MAX: u32 = 50;

/// How far a rebuild is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebuilding {
    /// The index.
    pub index: String,
    /// How many entities were looked at, also before an interruption.
    pub entities: u64,
    /// How many of them have other entries now, since the rebuild was begun or resumed.
    pub changed: u64,
}

impl Graph<'_> {
    /// Brings an index up to date, while others go on reading and writing. Interrupted, it goes on where it was when it
    /// is called again. Where indexes of the store are behind at times, as in DynamoDB, all of the table of entities is
    /// read, so that nothing is missed.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) when the index is unique and two entities have the same key,
    /// [`InvalidUse`](ErrorKind::InvalidUse) when it is not declared.
    pub async fn rebuild<I: MapIndex>(
        &self,
        progress: impl Fn(&Rebuilding) + Send + Sync,
    ) -> Result<Rebuilding> {
        self.rebuild_by(I::NAME, progress).await
    }

    /// As [`rebuild`](Self::rebuild), by the name of the index.
    ///
    /// # Errors
    ///
    /// As for [`rebuild`](Self::rebuild).
    pub async fn rebuild_by(
        &self,
        index: &str,
        progress: impl Fn(&Rebuilding) + Send + Sync,
    ) -> Result<Rebuilding> {
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
    /// Page after page, from where it was left.
    async fn pages(&self, listener: &(dyn Fn(&Rebuilding) + Send + Sync)) -> Result<Rebuilding> {
        let mut state = self.begun().await?;
        let mut progress = Rebuilding {
            index: self.def.name.clone(),
            entities: state.done,
            changed: 0,
        };
        loop {
            let page = self.page_of_type(state.cursor.take()).await?;
            for item in &page.items {
                let stored = Stored::of_item(item)?;
                progress.entities += 1;
                progress.changed += u64::from(self.reindex(&stored).await?);
            }
            listener(&progress);
            state.done = progress.entities;
            state.is_ready = page.last_key.is_none();
            state.cursor = page.last_key;
            self.save(&state).await?;
            if state.is_ready {
                self.reads.schema().note_ready(self.scope, self.def);
                return Ok(progress);
            }
        }
    }

    /// A page of the entities of the type, none of which is missed.
    async fn page_of_type(&self, cursor: Option<Item>) -> Result<Page> {
        let reads = self.reads;
        if reads.db.engine().capabilities().consistent_indexes {
            // Who is updated meanwhile moves to the end, and is met again there.
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

    /// The state of a rebuild that begins, or goes on where it was interrupted.
    async fn begun(&self) -> Result<State> {
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

    /// Brings the entries of an entity up to date, given as it was seen. Tells whether there was something to do.
    async fn reindex(&self, seen: &Stored) -> Result<bool> {
        let reads = &self.reads;
        let place = Place::new(self.scope, seen.node.key.clone())?;
        let indexed = seen.entries.get(&self.def.name);
        if indexed.is_some_and(|indexed| indexed.version >= self.def.version) {
            if seen.is_behind {
                write_behind(reads, &place).await?;
            }
            return Ok(false);
        }
        for _ in 0..TRIES_MAX {
            let Some(old) = reads.entity(&place).await? else {
                return Ok(false);
            };
            let Some(reindexing) = reindexing(reads, &place, &old)? else {
                return Ok(false);
            };
            match send(reads.db, reindexing.writes).await? {
                Step::Applied => {
                    if reindexing.is_deferred {
                        write_behind(reads, &place).await?;
                    }
                    return Ok(true);
                }
                Step::Refused(reasons) => {
                    for ((index, key), reason) in reindexing.claimed.iter().zip(reasons) {
                        if let Some(item) = &reason.item {
                            return Err(claimed(index, key, Some(item)));
                        }
                    }
                }
            }
        }
        Err(contended(&place, TRIES_MAX))
    }
}

/// What brings the entries of an entity up to date.
struct Reindexing {
    /// The unique keys that it claims, one with each of the first writes.
    claimed: Vec<(String, String)>,
    writes: Vec<TransactWrite>,
    /// Whether the entries follow in steps.
    is_deferred: bool,
}

/// The writes that bring the entries of an entity up to date; `None` if they are.
fn reindexing(reads: &Reads<'_>, place: &Place, old: &Stored) -> Result<Option<Reindexing>> {
    if old.is_leaving {
        return Ok(None);
    }
    let schema = reads.schema();
    let indexed = index_entries(schema, place, Some(old), Some(&old.node));
    let indexed =
        indexed.map_err(|error| Error::new(error.kind(), format!("{error} entity={place}")))?;
    if indexed.entries == old.entries && indexed.puts.is_empty() {
        return Ok(None);
    }
    let items_max = reads.items_max();
    let is_deferred = old.is_behind || 1 + indexed.items() > items_max;
    let entries = stored::write_entries(&indexed.entries);
    let mut update = Update::new()
        .set(Path::attribute(INDEX_ENTRIES), entries)
        .set(meta(&VERSION), old.version + 1);
    let mut writes = claim_writes(schema, place, &indexed);
    if is_deferred {
        update = update.set(meta(&BEHIND), true);
        writes.push(intent_put(schema, BEHIND_ID, place));
    } else {
        writes.extend(entry_writes(schema, place, &indexed));
    }
    let as_seen = is_version(old.version);
    writes.push(entity_update(schema, place, update, as_seen));
    if writes.len() > items_max {
        let what = "the entity has more unique keys than fit into one transaction";
        let items = writes.len();
        let message = format!("{what}: entity={place} items={items} max={items_max}");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(Some(Reindexing {
        claimed: indexed.claimed,
        writes,
        is_deferred,
    }))
}

fn claim_writes(schema: &GraphSchema, place: &Place, indexed: &Indexed) -> Vec<TransactWrite> {
    let claim = |(index, key): &(String, String)| -> TransactWrite {
        writes::claim(schema, place, index, key, None).into()
    };
    let release = |(index, key): &(String, String)| -> TransactWrite {
        writes::release(schema, &place.scope, index, key).into()
    };
    let claims = indexed.claimed.iter().map(claim);
    claims.chain(indexed.released.iter().map(release)).collect()
}
