//! Whether an index is complete, and how it is made so.
//!
//! Each index has a state in each scope: the version of the function that made it, and whether it is complete. An index
//! of a type of which there is nothing yet is complete from the start. Otherwise it is rebuilt: page by page, each entity
//! in a transaction of its own, while others go on writing. What they write has its entries already, if they have the
//! function: so a rebuild belongs after the last program without it has stopped.
//!
//! Entities are found by their type where the store's indexes are never behind; elsewhere all of the table is read, as it
//! is, so that none is missed that the index does not show yet.

use floe_store::expr::{Condition, KeyCondition, Path, Update};
use floe_store::op::{
    DeleteItem, Page, PutItem, Query, Scan, TransactWrite, UpdateItem, WriteItem,
};
use floe_store::{Item, Name, Number, Value};
use tracing::Instrument;

use super::compile::{Meaning, claimed, is_holder, is_version};
use super::entries::{Indexed, index_entries};
use super::index::IndexDef;
use super::key::{Place, type_key};
use super::read::Reads;
use super::schema::GraphSchema;
use super::steps::{Step, send};
use super::stored::{
    self, BEHIND, BEHIND_ID, ID, INDEX_ENTRIES, SCOPE, SCOPE_TYPE_KEY, SUBJECT_KEY, Stored,
    VERSION, index_state_key, meta,
};
use super::wide_entries;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::telemetry;

const STATE_VERSION: Name = Name::new_static("_version");
const IS_READY: Name = Name::new_static("_is_ready");
const CURSOR: Name = Name::new_static("_cursor");
const DONE: Name = Name::new_static("_done");

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

/// The state of an index in a scope.
#[derive(Clone, Debug, Default)]
struct State {
    version: u64,
    is_ready: bool,
    cursor: Option<Item>,
    done: u64,
}

impl State {
    fn of_item(item: &Item) -> Self {
        let number = |name: &Name| item.get(name).and_then(Value::as_n)?.to_u64();
        Self {
            version: number(&STATE_VERSION).unwrap_or(0),
            is_ready: item.get(&IS_READY) == Some(&Value::Bool(true)),
            cursor: item.get(&CURSOR).and_then(Value::as_m).cloned(),
            done: number(&DONE).unwrap_or(0),
        }
    }

    fn to_item(&self, scope: &str, index: &IndexDef) -> Item {
        let mut item = index_state_key(scope, &index.name)
            .with(SCOPE, scope)
            .with(STATE_VERSION, Number::from(self.version))
            .with(IS_READY, self.is_ready)
            .with(DONE, Number::from(self.done));
        if let Some(cursor) = &self.cursor {
            item.insert(CURSOR, Value::M(cursor.clone()));
        }
        item
    }
}

/// Takes note of the indexes of a type before the first entity of it is written.
pub(super) async fn begin(reads: &Reads<'_>, scope: &str, type_name: &str) -> Result<()> {
    for index in reads.schema().indexes_of(type_name) {
        look(reads, scope, index).await?;
    }
    Ok(())
}

/// Refuses an index that is not complete.
///
/// # Errors
///
/// [`IndexNotReady`](ErrorKind::IndexNotReady) when it is not.
pub(super) async fn check_ready(reads: &Reads<'_>, scope: &str, index: &IndexDef) -> Result<()> {
    let state = look(reads, scope, index).await?;
    let Some(state) = state else {
        return Ok(());
    };
    let (name, expected, actual) = (&index.name, index.version, state.version);
    Err(Error::new(
        ErrorKind::IndexNotReady,
        format!(
            "the index is not complete; rebuild it, or ask for a scan: index={name} scope={scope} expected={expected} \
             actual={actual} entities={}",
            state.done
        ),
    ))
}

/// `None` if the index is complete.
async fn look(reads: &Reads<'_>, scope: &str, index: &IndexDef) -> Result<Option<State>> {
    let schema = reads.schema();
    if schema.is_ready(scope, index) {
        return Ok(None);
    }
    let key = index_state_key(scope, &index.name);
    let item = reads.item(&schema.entities(), &key).await?;
    let state = match &item {
        Some(item) => State::of_item(item),
        None if is_empty(reads, scope, index).await? => {
            let state = State {
                version: index.version,
                is_ready: true,
                ..State::default()
            };
            match save_new(reads, scope, index, &state).await? {
                true => state,
                false => State::default(),
            }
        }
        None => State::default(),
    };
    if state.is_ready && state.version == index.version {
        schema.note_ready(scope, index);
        return Ok(None);
    }
    Ok(Some(state))
}

async fn is_empty(reads: &Reads<'_>, scope: &str, index: &IndexDef) -> Result<bool> {
    let query = of_type(reads, scope, &index.type_name).limit(1);
    Ok(reads.page(&query).await?.items.is_empty())
}

fn of_type(reads: &Reads<'_>, scope: &str, type_name: &str) -> Query {
    let schema = reads.schema();
    let key = KeyCondition::partition(SCOPE_TYPE_KEY, type_key(scope, type_name));
    Query::new(schema.entities(), key).index(schema.by_type())
}

/// Notes the first state of an index, unless somebody else was faster.
async fn save_new(reads: &Reads<'_>, scope: &str, index: &IndexDef, state: &State) -> Result<bool> {
    let mut put = PutItem::new(reads.schema().entities(), state.to_item(scope, index));
    put.condition = Some(Condition::attribute_not_exists(Path::attribute(ID)));
    write(reads, put.into()).await
}

async fn save(reads: &Reads<'_>, scope: &str, index: &IndexDef, state: &State) -> Result<()> {
    let mut put = PutItem::new(reads.schema().entities(), state.to_item(scope, index));
    // A newer program may have begun to rebuild it for its own function.
    let version = Path::attribute(STATE_VERSION);
    put.condition = Some(
        Condition::attribute_not_exists(Path::attribute(ID)).or(Condition::le(
            version,
            Value::N(Number::from(state.version)),
        )),
    );
    match write(reads, put.into()).await? {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::IndexNotReady,
            format!(
                "a newer program has this index: index={} expected={}",
                index.name, state.version
            ),
        )),
    }
}

/// Writes one item of the graph's own, again if the answer is lost. Tells whether the condition held, the last time.
async fn write(reads: &Reads<'_>, write: WriteItem) -> Result<bool> {
    let writes = match write {
        WriteItem::Put(put) => vec![TransactWrite::Put(put)],
        WriteItem::Update(update) => vec![TransactWrite::Update(update)],
        WriteItem::Delete(delete) => vec![TransactWrite::Delete(delete)],
    };
    Ok(send(reads.db, writes).await?.is_applied())
}

/// Brings an index of a scope up to date.
///
/// # Errors
///
/// [`Conflict`](ErrorKind::Conflict) when the index is unique and two entities have the same key.
pub(super) async fn rebuild(
    reads: &Reads<'_>,
    scope: &str,
    index: &IndexDef,
    listener: &(dyn Fn(&Rebuilding) + Send + Sync),
) -> Result<Rebuilding> {
    let span = telemetry::rebuild(&index.name);
    let rebuilt = steps(reads, scope, index, listener);
    let rebuilt = rebuilt.instrument(span.clone()).await?;
    span.record("floe.graph.entities", rebuilt.entities)
        .record("floe.graph.changed", rebuilt.changed);
    Ok(rebuilt)
}

/// Page after page, from where it was left.
async fn steps(
    reads: &Reads<'_>,
    scope: &str,
    index: &IndexDef,
    listener: &(dyn Fn(&Rebuilding) + Send + Sync),
) -> Result<Rebuilding> {
    let mut state = begun(reads, scope, index).await?;
    let mut progress = Rebuilding {
        index: index.name.clone(),
        entities: state.done,
        changed: 0,
    };
    loop {
        let page = page_of_type(reads, scope, &index.type_name, state.cursor.take()).await?;
        for item in &page.items {
            let stored = Stored::of_item(item)?;
            progress.entities += 1;
            progress.changed += u64::from(reindex(reads, scope, index, &stored).await?);
        }
        listener(&progress);
        state.done = progress.entities;
        state.is_ready = page.last_key.is_none();
        state.cursor = page.last_key;
        save(reads, scope, index, &state).await?;
        if state.is_ready {
            reads.schema().note_ready(scope, index);
            return Ok(progress);
        }
    }
}

/// A page of the entities of a type, none of which is missed.
async fn page_of_type(
    reads: &Reads<'_>,
    scope: &str,
    type_name: &str,
    cursor: Option<Item>,
) -> Result<Page> {
    if reads.db.engine().capabilities().consistent_indexes {
        // Who is updated meanwhile moves to the end, and is met again there.
        let mut query = of_type(reads, scope, type_name);
        query.start_key = cursor;
        return reads.page(&query).await;
    }
    let type_key = Value::from(type_key(scope, type_name));
    let is_of_type = Condition::eq(Path::attribute(SCOPE_TYPE_KEY), type_key);
    let mut scan = Scan::new(reads.schema().entities())
        .consistent()
        .filter(is_of_type);
    scan.start_key = cursor;
    reads.scan(&scan).await
}

/// The state of a rebuild that begins, or goes on where it was interrupted.
async fn begun(reads: &Reads<'_>, scope: &str, index: &IndexDef) -> Result<State> {
    let key = index_state_key(scope, &index.name);
    let item = reads.item(&reads.schema().entities(), &key).await?;
    let known = item.as_ref().map(State::of_item);
    if let Some(state) = known.filter(|state| state.version == index.version && !state.is_ready) {
        return Ok(state);
    }
    let state = State {
        version: index.version,
        ..State::default()
    };
    save(reads, scope, index, &state).await?;
    Ok(state)
}

/// Brings the entries of an entity up to date, given as it was seen. Tells whether there was something to do.
async fn reindex(reads: &Reads<'_>, scope: &str, index: &IndexDef, seen: &Stored) -> Result<bool> {
    let place = Place::new(scope, seen.node.key.clone())?;
    let indexed = seen.entries.get(&index.name);
    if indexed.is_some_and(|indexed| indexed.version >= index.version) {
        if seen.is_behind {
            wide_entries::end(reads, &place).await?;
        }
        return Ok(false);
    }
    for _ in 0..TRIES_MAX {
        let Some(old) = reads.entity(&place).await? else {
            return Ok(false);
        };
        let Some(Reindexing {
            writes,
            is_deferred,
        }) = reindexing(reads, &place, &old)?
        else {
            return Ok(false);
        };
        let actions = writes.iter().map(|(write, _)| write.clone()).collect();
        let reasons = match send(reads.db, actions).await? {
            Step::Applied if is_deferred => {
                wide_entries::end(reads, &place).await?;
                return Ok(true);
            }
            Step::Applied => return Ok(true),
            Step::Refused(reasons) => reasons,
        };
        for ((_, meaning), reason) in writes.iter().zip(&reasons) {
            if let (Meaning::Claimed { index, key }, Some(item)) = (meaning, &reason.item) {
                return Err(claimed(index, key, Some(item)));
            }
        }
    }
    Err(Error::new(
        ErrorKind::TransactionFailed,
        format!("others were always faster: entity={place} attempts={TRIES_MAX}"),
    ))
}

/// What brings the entries of an entity up to date.
struct Reindexing {
    writes: Vec<(TransactWrite, Meaning)>,
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
    let max = reads.db.engine().capabilities().transact_items_max;
    let claims = indexed.released.len() + indexed.claimed.len();
    let items = 1 + indexed.puts.len() + indexed.deletes.len() + claims;
    let is_deferred = old.is_behind || items > max;
    let mut update = Update::new()
        .set(
            Path::attribute(INDEX_ENTRIES),
            stored::write_entries(&indexed.entries),
        )
        .set(meta(&VERSION), Value::N(Number::from(old.version + 1)));
    let entries = match is_deferred {
        true => {
            update = update.set(meta(&BEHIND), true);
            let intent = stored::intent(BEHIND_ID, place);
            vec![PutItem::new(schema.entities(), intent).into()]
        }
        false => entry_writes(schema, place, &indexed),
    };
    let entity = UpdateItem::new(schema.entities(), stored::entity_key(place), update)
        .condition(is_version(old.version));
    let changed = || Meaning::Changed(place.clone());
    let mut writes = vec![(entity.into(), changed())];
    writes.extend(entries.into_iter().map(|write| (write, changed())));
    writes.extend(claim_writes(schema, place, indexed));
    check_width(place, writes.len(), max)?;
    Ok(Some(Reindexing {
        writes,
        is_deferred,
    }))
}

fn entry_writes(schema: &GraphSchema, place: &Place, indexed: &Indexed) -> Vec<TransactWrite> {
    let table = schema.entries();
    let puts = indexed.puts.iter().map(|(name, key, attributes)| {
        let entry = stored::entry(place, name, key, attributes);
        PutItem::new(table.as_str(), entry).into()
    });
    let deletes = indexed.deletes.iter().map(|(name, key)| {
        let entry = stored::entry_key(place, name, key);
        DeleteItem::new(table.as_str(), entry).into()
    });
    puts.chain(deletes).collect()
}

fn claim_writes(
    schema: &GraphSchema,
    place: &Place,
    indexed: Indexed,
) -> Vec<(TransactWrite, Meaning)> {
    let table = schema.entries();
    let mut writes = Vec::new();
    for (name, key) in indexed.released {
        let claim = stored::claim_key(&place.scope, &name, &key);
        let delete = DeleteItem::new(table.as_str(), claim);
        writes.push((delete.into(), Meaning::Changed(place.clone())));
    }
    for (name, key) in indexed.claimed {
        let free = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
        let claim = PutItem::new(table.as_str(), stored::claim(place, &name, &key))
            .condition(free.or(is_holder(&place.key)))
            .return_old_on_failure();
        writes.push((claim.into(), Meaning::Claimed { index: name, key }));
    }
    writes
}

fn check_width(place: &Place, items: usize, max: usize) -> Result<()> {
    match items > max {
        true => Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "the entity has more unique keys than fit into one transaction: entity={place} items={items} max={max}"
            ),
        )),
        false => Ok(()),
    }
}
