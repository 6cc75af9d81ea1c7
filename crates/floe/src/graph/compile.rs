//! Turns the graph changes of a body into the writes of its commit.
//!
//! Each item is written once, even if several changes affect it: an entity that is updated and gets an incoming edge is
//! one update. The conditions cover what must not have changed: the version of an entity whose attributes are read or
//! changed, the version of its list of edges, and the existence of both ends of an edge.

mod failure;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use floe_store::expr::{Condition, Path, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::size::item_size;
use floe_store::{Item, Timestamp, Value};

use super::changes::{Changes, NodeState, Write};
use super::keys::{EntityKey, ScopedKey};
use super::node::Node;
use super::schema::GraphSchema;
use super::stored::{
    self, EDGES, Entries, ID, INCOMING, INDEX_ENTRIES, META, PENDING, PENDING_ID, StoredEntity,
    UPDATED, VERSION, meta,
};
use super::writes::{
    self, claimed, count, edge_write, entry_writes, intent_put, is_alive, is_deleting,
    is_list_version, is_number, is_version,
};
use crate::error::{Error, ErrorKind, Result};
use crate::tx::part::{Part, PartWrite, Rejection, difference};
use crate::tx::session::{self, PartContext};
use failure::{ConditionFailure, PlannedWrite};

/// The graph's part of a commit.
#[derive(Debug)]
struct GraphPart {
    schema: Arc<GraphSchema>,
    planned: Result<Vec<PlannedWrite>>,
}

impl session::Changes for Changes {
    fn into_parts(self, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        if self.nodes.is_empty() && self.edges.is_empty() {
            return Ok(Vec::new());
        }
        let schema = context.db.graph_schema().clone();
        let planned = Compiler {
            schema: &schema,
            changes: &self,
            now: context.now,
            first_version: stored::first_version(context.db),
            planned: Vec::new(),
            claims: BTreeMap::new(),
        }
        .compile();
        Ok(vec![Box::new(GraphPart { schema, planned })])
    }
}

impl Part for GraphPart {
    fn is_write(&self) -> bool {
        let is_write = |planned: &PlannedWrite| !matches!(planned.write, TransactWrite::Check(_));
        // A part that fails to compile contains writes.
        self.planned
            .as_ref()
            .map_or(true, |planned| planned.iter().any(is_write))
    }

    fn read_only_error(&self) -> Error {
        let message = "a read-only transaction cannot change the graph";
        Error::new(ErrorKind::ReadOnly, message)
    }

    fn tables(&self) -> Vec<(String, &'static str)> {
        let schema = &self.schema;
        let tables = [schema.entities(), schema.relationships(), schema.entries()];
        tables.map(|table| (table, "graph")).into()
    }

    fn remedy(&self) -> &'static str {
        "call ensure_graph"
    }

    fn writes(&self) -> Result<Vec<PartWrite>> {
        let planned = self.planned.as_ref().map_err(Clone::clone)?.iter();
        Ok(planned
            .map(|planned| planned.write.clone().into())
            .collect())
    }

    fn condition_failed(&self, at: usize, item: Option<&Item>) -> Rejection {
        let planned = self.planned.as_ref().ok();
        match planned.and_then(|planned| planned.get(at)) {
            Some(planned) => {
                if let Some(scoped_key) = planned.on_failure.unexpected(item) {
                    self.schema.note_unexpected(scoped_key);
                }
                planned.on_failure.failure(item).into()
            }
            None => Rejection::Conflict(Error::new(ErrorKind::TransactionFailed, "lost a race")),
        }
    }
}

/// The current and the next owner of a unique key.
#[derive(Default)]
struct Claim {
    from: Option<EntityKey>,
    to: Option<ScopedKey>,
}

struct Compiler<'a> {
    schema: &'a GraphSchema,
    changes: &'a Changes,
    now: Timestamp,
    /// First version of new entities.
    first_version: u64,
    planned: Vec<PlannedWrite>,
    /// Key: scope, index, key.
    claims: BTreeMap<(String, String, String), Claim>,
}

impl Compiler<'_> {
    fn compile(mut self) -> Result<Vec<PlannedWrite>> {
        let objects = self
            .changes
            .edges
            .iter()
            .map(|((of, _), change)| ScopedKey {
                scope: of.scope.clone(),
                key: change.edge.object.clone(),
            });
        let scoped_keys: BTreeSet<ScopedKey> =
            objects.chain(self.changes.nodes.keys().cloned()).collect();
        let untouched = NodeState::default();
        for scoped_key in scoped_keys {
            let state = self.changes.nodes.get(&scoped_key).unwrap_or(&untouched);
            self.node(&scoped_key, state)?;
        }
        self.edges()?;
        self.claims();
        Ok(self.planned)
    }

    fn plan(&mut self, write: impl Into<TransactWrite>, on_failure: ConditionFailure) {
        self.planned.push(PlannedWrite {
            write: write.into(),
            on_failure,
        });
    }

    fn node(&mut self, scoped_key: &ScopedKey, state: &NodeState) -> Result<()> {
        let counts = self
            .changes
            .incoming_change(&scoped_key.key, &scoped_key.scope);
        let touched = TouchedEntity {
            scoped_key,
            state,
            counts,
        };
        let read = state.read.as_ref().and_then(Option::as_ref);
        match (&state.write, read) {
            (Write::Create(node), _) => self.create(touched, node),
            (Write::Update(node), Some(stored)) => self.update(touched, stored, node),
            (Write::Delete, Some(stored)) => self.delete(touched, stored),
            (_, read) => {
                self.touch(touched, read);
                Ok(())
            }
        }
    }

    fn create(&mut self, touched: TouchedEntity<'_>, node: &Node) -> Result<()> {
        let TouchedEntity {
            scoped_key, state, ..
        } = touched;
        let timestamp = self.schema.timestamps.next(self.now, None);
        let entries = self.index(scoped_key, state)?;
        let mut meta = stored::new_meta(self.first_version, touched.counts);
        if self.changes.defers_entries {
            meta.insert(PENDING, true);
        }
        let item =
            stored::new_entity(scoped_key, node, &timestamp, &entries).with(META, Value::M(meta));
        check_size(scoped_key, item_size(&item))?;
        let mut put = PutItem::new(self.schema.entities(), item).return_old_on_failure();
        put.condition = Some(Condition::attribute_not_exists(Path::attribute(ID)));
        let on_failure = match state.read {
            // It was read as absent: another writer created it since.
            Some(_) => ConditionFailure::Changed(scoped_key.clone()),
            None => ConditionFailure::Exists(scoped_key.clone()),
        };
        self.plan(put, on_failure);
        Ok(())
    }

    fn update(
        &mut self,
        touched: TouchedEntity<'_>,
        old: &StoredEntity,
        node: &Node,
    ) -> Result<()> {
        let scoped_key = touched.scoped_key;
        let (timestamps, updated) = (&self.schema.timestamps, old.node.updated.as_deref());
        let timestamp = timestamps.next(self.now, updated);
        let entries = self.index(scoped_key, touched.state)?;
        let bytes = item_size(&stored::new_entity(scoped_key, node, &timestamp, &entries));
        check_size(scoped_key, bytes + META_BYTES)?;
        let mut update = difference(&old.node.attributes, &node.attributes)
            .set(Path::attribute(UPDATED), timestamp.as_str())
            .set(meta(&VERSION), old.version + 1);
        if entries != old.entries {
            let entries = stored::write_entries(&entries);
            update = update.set(Path::attribute(INDEX_ENTRIES), entries);
        }
        if self.changes.defers_entries {
            update = update.set(meta(&PENDING), true);
        }
        let update = touched.counted(update, Some(old));
        let list = touched.list_condition(old);
        let condition = list
            .into_iter()
            .fold(is_version(old.version), Condition::and);
        self.plan_update(
            scoped_key,
            update,
            condition,
            ConditionFailure::Changed(scoped_key.clone()),
        );
        Ok(())
    }

    fn delete(&mut self, touched: TouchedEntity<'_>, old: &StoredEntity) -> Result<()> {
        let scoped_key = touched.scoped_key;
        self.index(scoped_key, touched.state)?;
        let condition = is_version(old.version)
            .and(is_list_version(old.edges))
            .and(is_number(&INCOMING, old.incoming));
        let key = stored::entity_key(scoped_key);
        let delete = DeleteItem::new(self.schema.entities(), key).condition(condition);
        let delete = delete.return_old_on_failure();
        self.plan(delete, ConditionFailure::Changed(scoped_key.clone()));
        Ok(())
    }

    /// Plans an entity whose own attributes stay: its edges or edges to it change, or it must be unchanged since it was
    /// read.
    fn touch(&mut self, touched: TouchedEntity<'_>, read: Option<&StoredEntity>) {
        let TouchedEntity {
            scoped_key, state, ..
        } = touched;
        // An entity that only loses edges may be under deletion itself.
        let loses_edges = touched.counts.0 < 0;
        if loses_edges && matches!(state.read, Some(None)) {
            // The edges are dangling: there is no count to update.
            let is_absent = Condition::attribute_not_exists(Path::attribute(ID));
            let key = stored::entity_key(scoped_key);
            let mut check = ConditionCheck::new(self.schema.entities(), key, is_absent);
            check.return_old_on_failure = true;
            return self.plan(check, ConditionFailure::Changed(scoped_key.clone()));
        }
        let alive = read.filter(|stored| !stored.is_deleting);
        let watched = match alive {
            Some(stored) => state.is_watched.then(|| is_version(stored.version)),
            None => (state.read.is_some() && state.is_watched)
                .then(|| Condition::attribute_not_exists(Path::attribute(ID)).or(is_deleting())),
        };
        let list = alive.and_then(|stored| touched.list_condition(stored));
        let condition = watched.into_iter().chain(list).reduce(Condition::and);
        let on_failure = match condition {
            Some(_) => ConditionFailure::Changed(scoped_key.clone()),
            None if loses_edges => ConditionFailure::Dangling(scoped_key.clone()),
            None => ConditionFailure::Missing(scoped_key.clone()),
        };
        let update = touched.counted(Update::new(), alive);
        match (update.is_empty(), condition) {
            (true, None) => {}
            (true, Some(condition)) => {
                let key = stored::entity_key(scoped_key);
                let mut check = ConditionCheck::new(self.schema.entities(), key, condition);
                check.return_old_on_failure = true;
                self.plan(check, on_failure);
            }
            (false, condition) => {
                let here = if loses_edges {
                    writes::exists()
                } else {
                    is_alive()
                };
                let condition = condition.into_iter().fold(here, Condition::and);
                self.plan_update(scoped_key, update, condition, on_failure);
            }
        }
    }

    fn plan_update(
        &mut self,
        scoped_key: &ScopedKey,
        update: Update,
        condition: Condition,
        on_failure: ConditionFailure,
    ) {
        let key = stored::entity_key(scoped_key);
        let write = UpdateItem::new(self.schema.entities(), key, update).condition(condition);
        self.plan(write.return_old_on_failure(), on_failure);
    }

    fn edges(&mut self) -> Result<()> {
        for ((subject, _), change) in &self.changes.edges {
            let write = edge_write(self.schema, &subject.scope, &change.edge, change.kind)?;
            if let TransactWrite::Put(put) = &write {
                check_size(subject, item_size(&put.item))?;
            }
            self.plan(write, ConditionFailure::Changed(subject.clone()));
        }
        Ok(())
    }

    /// Returns the entries of an entity in all known indexes, and plans the writes for them.
    fn index(&mut self, scoped_key: &ScopedKey, state: &NodeState) -> Result<Entries> {
        let indexed = state.index(self.schema, scoped_key)?;
        let changed = || ConditionFailure::Changed(scoped_key.clone());
        let is_deferred = self.changes.defers_entries && !matches!(state.write, Write::Delete);
        if is_deferred {
            self.plan(intent_put(self.schema, PENDING_ID, scoped_key), changed());
        }
        for write in entry_writes(self.schema, scoped_key, &indexed) {
            if let TransactWrite::Put(put) = &write {
                check_size(scoped_key, item_size(&put.item))?;
            }
            if !is_deferred {
                self.plan(write, changed());
            }
        }
        for (index, key) in indexed.released {
            let claim = self.claim(scoped_key, index, key);
            claim.from = Some(scoped_key.key.clone());
        }
        for (index, key) in indexed.claimed {
            let (name, text) = (index.clone(), key.clone());
            let claim = self.claim(scoped_key, index, key);
            if claim.to.as_ref().is_some_and(|other| other != scoped_key) {
                return Err(claimed(&name, &text, None));
            }
            claim.to = Some(scoped_key.clone());
        }
        Ok(indexed.entries)
    }

    fn claim(&mut self, scoped_key: &ScopedKey, index: String, key: String) -> &mut Claim {
        let key = (scoped_key.scope.clone(), index, key);
        self.claims.entry(key).or_default()
    }

    fn claims(&mut self) {
        for ((scope, index, key), claim) in std::mem::take(&mut self.claims) {
            let from = claim.from.as_ref();
            let write: TransactWrite = match claim.to {
                Some(scoped_key) => {
                    writes::claim(self.schema, &scoped_key, &index, &key, from).into()
                }
                None => writes::release(self.schema, &scope, &index, &key).into(),
            };
            self.plan(write, ConditionFailure::Claimed { index, key });
        }
    }
}

/// An entity that is written or checked.
#[derive(Clone, Copy)]
struct TouchedEntity<'c> {
    scoped_key: &'c ScopedKey,
    state: &'c NodeState,
    /// The changes of its counts of incoming edges.
    counts: (i64, i64),
}

impl TouchedEntity<'_> {
    /// The condition that its list of edges is unchanged, if the outcome depends on it.
    fn list_condition(self, old: &StoredEntity) -> Option<Condition> {
        let is_seen = self.state.is_list_watched || self.state.is_list_changed;
        is_seen.then(|| is_list_version(old.edges))
    }

    /// Adds the changes of edge counts and list version to an update.
    fn counted(self, update: Update, old: Option<&StoredEntity>) -> Update {
        let update = count(update, self.counts);
        match old {
            Some(old) if self.state.is_list_changed => update.set(meta(&EDGES), old.edges + 1),
            _ => update,
        }
    }
}

/// Maximum size of `_meta`.
const META_BYTES: usize = 128;

fn check_size(scoped_key: &ScopedKey, bytes: usize) -> Result<()> {
    if bytes <= ITEM_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("the item is too large: entity={scoped_key} bytes={bytes} max={ITEM_BYTES_MAX}");
    Err(Error::new(ErrorKind::TooLarge, message))
}
