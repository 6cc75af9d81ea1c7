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
use floe_store::{Item, Number, Timestamp, Value};

use super::changes::{Changes, NodeState, Write};
use super::keys::{EntityKey, Place};
use super::node::Node;
use super::schema::GraphSchema;
use super::stored::{
    self, BEHIND, BEHIND_ID, EDGES, Entries, ID, INCOMING, INDEX_ENTRIES, LEAVING, META, Stored,
    UPDATED, VERSION, meta,
};
use super::writes::{
    self, claimed, count, edge_write, entry_writes, intent_put, is_alive, is_list_version,
    is_number, is_version,
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
        Error::new(
            ErrorKind::ReadOnly,
            "a read-only transaction cannot change the graph",
        )
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
        let planned = self.planned.as_ref().map_err(Clone::clone)?;
        Ok(planned
            .iter()
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
        let (incoming, held) = self.changes.incoming_change(&place.key, &place.scope);
        let read = state.read.as_ref().map(Option::as_ref);
        match (&state.write, read) {
            (Write::Create(node), _) => self.create(place, state, node, (incoming, held)),
            (Write::Update(node), Some(Some(stored))) => {
                self.update(place, state, stored, node, (incoming, held))
            }
            (Write::Delete, Some(Some(stored))) => self.delete(place, state, stored),
            (_, read) => {
                self.touch(place, state, read.flatten(), (incoming, held));
                Ok(())
            }
        }
    }

    fn create(
        &mut self,
        place: &Place,
        state: &NodeState,
        node: &Node,
        (incoming, held): (i64, i64),
    ) -> Result<()> {
        let moment = self.schema.moments.next(self.now, None);
        let entries = self.index(place, state)?;
        let mut meta = stored::new_meta(self.first_version, incoming, held);
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

    fn update(
        &mut self,
        place: &Place,
        state: &NodeState,
        old: &Stored,
        node: &Node,
        (incoming, held): (i64, i64),
    ) -> Result<()> {
        let moment = self
            .schema
            .moments
            .next(self.now, old.node.updated.as_deref());
        let entries = self.index(place, state)?;
        let bytes = item_size(&stored::new_entity(place, node, &moment, &entries));
        check_size(place, bytes + META_BYTES)?;
        let mut update = difference(&old.node.attributes, &node.attributes)
            .set(Path::attribute(UPDATED), moment.as_str())
            .set(meta(&VERSION), Value::N(Number::from(old.version + 1)));
        if entries != old.entries {
            let entries = stored::write_entries(&entries);
            update = update.set(Path::attribute(INDEX_ENTRIES), entries);
        }
        if self.changes.defers_entries {
            update = update.set(meta(&BEHIND), true);
        }
        update = count(update, (incoming, held));
        let mut condition = is_version(old.version);
        if state.is_list_changed || state.is_list_watched {
            condition = condition.and(is_list_version(old.edges));
        }
        if state.is_list_changed {
            update = update.set(meta(&EDGES), Value::N(Number::from(old.edges + 1)));
        }
        self.plan_update(place, update, condition, Meaning::Changed(place.clone()));
        Ok(())
    }

    fn delete(&mut self, place: &Place, state: &NodeState, old: &Stored) -> Result<()> {
        self.index(place, state)?;
        let condition = is_version(old.version)
            .and(is_list_version(old.edges))
            .and(is_number(&INCOMING, old.incoming));
        let key = stored::entity_key(place);
        let delete = DeleteItem::new(self.schema.entities(), key).condition(condition);
        self.plan(
            delete.return_old_on_failure(),
            Meaning::Changed(place.clone()),
        );
        Ok(())
    }

    /// An entity whose own attributes stay: its edges change, edges to it change, or it must be as it was read.
    fn touch(
        &mut self,
        place: &Place,
        state: &NodeState,
        read: Option<&Stored>,
        (incoming, held): (i64, i64),
    ) {
        // What only loses edges may be on its way out itself.
        let here = match incoming >= 0 {
            true => is_alive(),
            false => writes::exists(),
        };
        let (mut conditions, mut update) = (Vec::new(), count(Update::new(), (incoming, held)));
        match read.filter(|stored| !stored.is_leaving) {
            Some(stored) => {
                if state.is_watched {
                    conditions.push(is_version(stored.version));
                }
                if state.is_list_watched || state.is_list_changed {
                    conditions.push(is_list_version(stored.edges));
                }
                if state.is_list_changed {
                    let edges = Value::N(Number::from(stored.edges + 1));
                    update = update.set(meta(&EDGES), edges);
                }
            }
            None if state.read.is_some() && state.is_watched => {
                conditions.push(
                    Condition::attribute_not_exists(Path::attribute(ID))
                        .or(Condition::attribute_exists(meta(&LEAVING))),
                );
            }
            None => {}
        }
        let is_known = !conditions.is_empty();
        let condition = conditions.into_iter().reduce(Condition::and);
        let meaning = match is_known {
            true => Meaning::Changed(place.clone()),
            false if incoming < 0 => Meaning::Dangling(place.clone()),
            false => Meaning::Missing(place.clone()),
        };
        match (update.is_empty(), condition) {
            (true, None) => {}
            (true, Some(condition)) => {
                let key = stored::entity_key(place);
                let mut check = ConditionCheck::new(self.schema.entities(), key, condition);
                check.return_old_on_failure = true;
                self.plan(check, meaning);
            }
            (false, condition) => {
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
            let write = match claim.to {
                Some(place) => {
                    writes::claim(self.schema, &place, &index, &key, claim.from.as_ref()).into()
                }
                None => writes::release(self.schema, &scope, &index, &key).into(),
            };
            self.planned.push(Planned {
                write,
                meaning: Meaning::Claimed { index, key },
            });
        }
    }
}

/// What `_meta` weighs at most.
const META_BYTES: usize = 128;

fn check_size(place: &Place, bytes: usize) -> Result<()> {
    match bytes > ITEM_BYTES_MAX {
        true => Err(Error::new(
            ErrorKind::TooLarge,
            format!("the item is too large: entity={place} bytes={bytes} max={ITEM_BYTES_MAX}"),
        )),
        false => Ok(()),
    }
}
