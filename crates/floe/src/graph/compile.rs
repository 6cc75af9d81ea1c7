//! From what a body did in the graph to the writes of its commit.
//!
//! Each item is written once, however many changes meet in it: an entity that is updated and to which an edge leads is
//! one update. What must not have changed stands in the conditions: the version of an entity whose attributes were read
//! or are changed, the version of its list of edges, that the ends of an edge are there.

mod meaning;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use floe_store::expr::{Condition, Path, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::size::item_size;
use floe_store::{Item, Timestamp, Value};

use super::changes::{Changes, NodeState, Write};
use super::keys::{EntityKey, Place};
use super::node::Node;
use super::schema::GraphSchema;
use super::stored::{
    self, BEHIND, BEHIND_ID, EDGES, Entries, ID, INCOMING, INDEX_ENTRIES, META, Stored, UPDATED,
    VERSION, meta,
};
use super::writes::{
    self, claimed, count, edge_write, entry_writes, intent_put, is_alive, is_leaving,
    is_list_version, is_number, is_version,
};
use crate::error::{Error, ErrorKind, Result};
use crate::tx::part::{Part, PartWrite, Refusal, difference};
use crate::tx::session::{self, PartContext};
use meaning::{Meaning, Planned};

/// The share of the graph in a commit.
#[derive(Debug)]
struct GraphPart {
    schema: Arc<GraphSchema>,
    planned: Result<Vec<Planned>>,
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
        let is_write = |planned: &Planned| !matches!(planned.write, TransactWrite::Check(_));
        // What cannot be compiled was meant to be written.
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

    fn refused(&self, at: usize, item: Option<&Item>) -> Refusal {
        let planned = self.planned.as_ref().ok();
        match planned.and_then(|planned| planned.get(at)) {
            Some(planned) => planned.meaning.failure(item).into(),
            None => Refusal::Lost(Error::new(ErrorKind::TransactionFailed, "a lost race")),
        }
    }
}

/// Who has a unique key, and who gets it.
#[derive(Default)]
struct Claim {
    from: Option<EntityKey>,
    to: Option<Place>,
}

struct Compiler<'a> {
    schema: &'a GraphSchema,
    changes: &'a Changes,
    now: Timestamp,
    /// Where the versions of new entities begin.
    first_version: u64,
    planned: Vec<Planned>,
    /// By scope, index and key.
    claims: BTreeMap<(String, String, String), Claim>,
}

impl Compiler<'_> {
    fn compile(mut self) -> Result<Vec<Planned>> {
        let objects = self.changes.edges.iter().map(|((of, _), change)| Place {
            scope: of.scope.clone(),
            key: change.edge.object.clone(),
        });
        let places: BTreeSet<Place> = objects.chain(self.changes.nodes.keys().cloned()).collect();
        let untouched = NodeState::default();
        for place in places {
            let state = self.changes.nodes.get(&place).unwrap_or(&untouched);
            self.node(&place, state)?;
        }
        self.edges()?;
        self.claims();
        Ok(self.planned)
    }

    fn plan(&mut self, write: impl Into<TransactWrite>, meaning: Meaning) {
        self.planned.push(Planned {
            write: write.into(),
            meaning,
        });
    }

    fn node(&mut self, place: &Place, state: &NodeState) -> Result<()> {
        let counts = self.changes.incoming_change(&place.key, &place.scope);
        let touched = Touched {
            place,
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

    fn create(&mut self, touched: Touched<'_>, node: &Node) -> Result<()> {
        let Touched { place, state, .. } = touched;
        let moment = self.schema.moments.next(self.now, None);
        let entries = self.index(place, state)?;
        let mut meta = stored::new_meta(self.first_version, touched.counts);
        if self.changes.defers_entries {
            meta.insert(BEHIND, true);
        }
        let item = stored::new_entity(place, node, &moment, &entries).with(META, Value::M(meta));
        check_size(place, item_size(&item))?;
        let mut put = PutItem::new(self.schema.entities(), item).return_old_on_failure();
        put.condition = Some(Condition::attribute_not_exists(Path::attribute(ID)));
        let meaning = match state.read {
            // It was looked for and was not there: somebody else was faster.
            Some(_) => Meaning::Changed(place.clone()),
            None => Meaning::Exists(place.clone()),
        };
        self.plan(put, meaning);
        Ok(())
    }

    fn update(&mut self, touched: Touched<'_>, old: &Stored, node: &Node) -> Result<()> {
        let place = touched.place;
        let (moments, updated) = (&self.schema.moments, old.node.updated.as_deref());
        let moment = moments.next(self.now, updated);
        let entries = self.index(place, touched.state)?;
        let bytes = item_size(&stored::new_entity(place, node, &moment, &entries));
        check_size(place, bytes + META_BYTES)?;
        let mut update = difference(&old.node.attributes, &node.attributes)
            .set(Path::attribute(UPDATED), moment.as_str())
            .set(meta(&VERSION), old.version + 1);
        if entries != old.entries {
            let entries = stored::write_entries(&entries);
            update = update.set(Path::attribute(INDEX_ENTRIES), entries);
        }
        if self.changes.defers_entries {
            update = update.set(meta(&BEHIND), true);
        }
        let update = touched.counted(update, Some(old));
        let list = touched.list_condition(old);
        let condition = list
            .into_iter()
            .fold(is_version(old.version), Condition::and);
        self.plan_update(place, update, condition, Meaning::Changed(place.clone()));
        Ok(())
    }

    fn delete(&mut self, touched: Touched<'_>, old: &Stored) -> Result<()> {
        let place = touched.place;
        self.index(place, touched.state)?;
        let condition = is_version(old.version)
            .and(is_list_version(old.edges))
            .and(is_number(&INCOMING, old.incoming));
        let key = stored::entity_key(place);
        let delete = DeleteItem::new(self.schema.entities(), key).condition(condition);
        let delete = delete.return_old_on_failure();
        self.plan(delete, Meaning::Changed(place.clone()));
        Ok(())
    }

    /// An entity whose own attributes stay: its edges change, edges to it change, or it must be as it was read.
    fn touch(&mut self, touched: Touched<'_>, read: Option<&Stored>) {
        let Touched { place, state, .. } = touched;
        // What only loses edges may be on its way out itself.
        let loses_edges = touched.counts.0 < 0;
        let alive = read.filter(|stored| !stored.is_leaving);
        let watched = match alive {
            Some(stored) => state.is_watched.then(|| is_version(stored.version)),
            None => (state.read.is_some() && state.is_watched)
                .then(|| Condition::attribute_not_exists(Path::attribute(ID)).or(is_leaving())),
        };
        let list = alive.and_then(|stored| touched.list_condition(stored));
        let condition = watched.into_iter().chain(list).reduce(Condition::and);
        let meaning = match condition {
            Some(_) => Meaning::Changed(place.clone()),
            None if loses_edges => Meaning::Dangling(place.clone()),
            None => Meaning::Missing(place.clone()),
        };
        let update = touched.counted(Update::new(), alive);
        match (update.is_empty(), condition) {
            (true, None) => {}
            (true, Some(condition)) => {
                let key = stored::entity_key(place);
                let mut check = ConditionCheck::new(self.schema.entities(), key, condition);
                check.return_old_on_failure = true;
                self.plan(check, meaning);
            }
            (false, condition) => {
                let here = if loses_edges {
                    writes::exists()
                } else {
                    is_alive()
                };
                let condition = condition.into_iter().fold(here, Condition::and);
                self.plan_update(place, update, condition, meaning);
            }
        }
    }

    fn plan_update(
        &mut self,
        place: &Place,
        update: Update,
        condition: Condition,
        meaning: Meaning,
    ) {
        let key = stored::entity_key(place);
        let write = UpdateItem::new(self.schema.entities(), key, update).condition(condition);
        self.plan(write.return_old_on_failure(), meaning);
    }

    fn edges(&mut self) -> Result<()> {
        for ((subject, _), change) in &self.changes.edges {
            let write = edge_write(self.schema, &subject.scope, &change.edge, change.kind)?;
            if let TransactWrite::Put(put) = &write {
                check_size(subject, item_size(&put.item))?;
            }
            self.plan(write, Meaning::Changed(subject.clone()));
        }
        Ok(())
    }

    /// The entries of an entity in all indexes that are known, and the writes that make them so.
    fn index(&mut self, place: &Place, state: &NodeState) -> Result<Entries> {
        let indexed = state.index(self.schema, place)?;
        let changed = || Meaning::Changed(place.clone());
        let is_deferred = self.changes.defers_entries && !matches!(state.write, Write::Delete);
        if is_deferred {
            self.plan(intent_put(self.schema, BEHIND_ID, place), changed());
        }
        for write in entry_writes(self.schema, place, &indexed) {
            if let TransactWrite::Put(put) = &write {
                check_size(place, item_size(&put.item))?;
            }
            if !is_deferred {
                self.plan(write, changed());
            }
        }
        for (index, key) in indexed.released {
            let claim = self.claim(place, index, key);
            claim.from = Some(place.key.clone());
        }
        for (index, key) in indexed.claimed {
            let (name, text) = (index.clone(), key.clone());
            let claim = self.claim(place, index, key);
            if claim.to.as_ref().is_some_and(|other| other != place) {
                return Err(claimed(&name, &text, None));
            }
            claim.to = Some(place.clone());
        }
        Ok(indexed.entries)
    }

    fn claim(&mut self, place: &Place, index: String, key: String) -> &mut Claim {
        let key = (place.scope.clone(), index, key);
        self.claims.entry(key).or_default()
    }

    fn claims(&mut self) {
        for ((scope, index, key), claim) in std::mem::take(&mut self.claims) {
            let from = claim.from.as_ref();
            let write: TransactWrite = match claim.to {
                Some(place) => writes::claim(self.schema, &place, &index, &key, from).into(),
                None => writes::release(self.schema, &scope, &index, &key).into(),
            };
            self.plan(write, Meaning::Claimed { index, key });
        }
    }
}

/// An entity that is written or checked.
#[derive(Clone, Copy)]
struct Touched<'c> {
    place: &'c Place,
    state: &'c NodeState,
    /// By how much the numbers of edges that lead to it change.
    counts: (i64, i64),
}

impl Touched<'_> {
    /// The condition that its list of edges is as it was, if the outcome depends on that.
    fn list_condition(self, old: &Stored) -> Option<Condition> {
        let is_seen = self.state.is_list_watched || self.state.is_list_changed;
        is_seen.then(|| is_list_version(old.edges))
    }

    /// An update that counts the edges which come and go as well.
    fn counted(self, update: Update, old: Option<&Stored>) -> Update {
        let update = count(update, self.counts);
        match old {
            Some(old) if self.state.is_list_changed => update.set(meta(&EDGES), old.edges + 1),
            _ => update,
        }
    }
}

/// What `_meta` weighs at most.
const META_BYTES: usize = 128;

fn check_size(place: &Place, bytes: usize) -> Result<()> {
    if bytes <= ITEM_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("the item is too large: entity={place} bytes={bytes} max={ITEM_BYTES_MAX}");
    Err(Error::new(ErrorKind::TooLarge, message))
}
