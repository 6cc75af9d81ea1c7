//! From what a body did in the graph to the writes of its commit.
//!
//! Each item is written once, however many changes meet in it: an entity that is updated and to which an edge leads is
//! one update. What must not have changed stands in the conditions: the version of an entity whose attributes were read
//! or are changed, the version of its list of edges, that the ends of an edge are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::limits::ITEM_BYTES_MAX;
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::size::item_size;
use floe_store::{Item, Name, Number, Timestamp, Value};

use super::changes::{Changes, EdgeChangeKind, NodeState, Write, exists};
use super::entries::index_entries;
use super::key::{EntityKey, Place};
use super::node::Node;
use super::schema::GraphSchema;
use super::stored::{
    self, BEHIND, BEHIND_ID, EDGES, Entries, HELD_BY, ID, INCOMING, INDEX_ENTRIES, LEAVING, META,
    SUBJECT_KEY, Stored, TYPE, UPDATED, VERSION, meta,
};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::commit::Failure;
use crate::tx::part::{Part, PartWrite, Refusal};

/// The share of the graph in a commit.
#[derive(Debug)]
pub(crate) struct GraphPart {
    schema: Arc<GraphSchema>,
    planned: Result<Vec<Planned>>,
}

/// A write, and what it means if its condition does not hold.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) write: TransactWrite,
    pub(super) meaning: Meaning,
}

#[derive(Clone, Debug)]
pub(super) enum Meaning {
    /// Somebody else has changed this entity, or its edges.
    Changed(Place),
    /// The entity that was to be created is there.
    Exists(Place),
    /// The entity that was to be joined is not there.
    Missing(Place),
    /// The entity to which an edge led that is removed is not there.
    Dangling(Place),
    /// Another entity has this key.
    Claimed { index: String, key: String },
}

impl GraphPart {
    pub(super) fn new(changes: &Changes, db: &Db, now: Timestamp) -> Self {
        let schema = db.graph_schema().clone();
        let planned = Compiler {
            schema: &schema,
            changes,
            now,
            first_version: stored::first_version(db),
            planned: Vec::new(),
            claims: BTreeMap::new(),
        }
        .compile();
        Self { schema, planned }
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

impl Meaning {
    fn failure(&self, item: Option<&Item>) -> Failure {
        let is_leaving = item.is_some_and(stored::is_leaving);
        match self {
            Self::Exists(place) | Self::Changed(place) if is_leaving => {
                Failure::Retry(leaving(place))
            }
            Self::Changed(place) => Failure::Retry(Error::new(
                ErrorKind::TransactionFailed,
                format!("somebody else changed the entity or its edges: entity={place}"),
            )),
            Self::Exists(place) => Failure::Final(exists(place)),
            Self::Missing(place) => Failure::Final(missing(place)),
            Self::Dangling(place) => Failure::Final(dangling(place)),
            Self::Claimed { index, key } => Failure::Final(claimed(index, key, item)),
        }
    }
}

pub(super) fn missing(place: &Place) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("the entity is not there: entity={place}"),
    )
}

fn dangling(place: &Place) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("an edge leads to nothing, which Graph::repair mends: entity={place}"),
    )
}

fn leaving(place: &Place) -> Error {
    Error::new(
        ErrorKind::TransactionFailed,
        format!("the entity is being deleted; Graph::resume ends it: entity={place}"),
    )
}

pub(super) fn claimed(index: &str, key: &str, item: Option<&Item>) -> Error {
    let holder = item.and_then(|item| stored::entry_owner(item).ok());
    let holder = holder.map_or_else(|| "unknown".to_owned(), |holder| holder.to_string());
    Error::new(
        ErrorKind::Conflict,
        format!("another entity has this key: index={index} key={key} holder={holder}"),
    )
}

/// Who has a unique key, and who gets it.
#[derive(Default)]
struct Claim {
    from: Option<EntityKey>,
    to: Option<Place>,
    scope: String,
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
            (Write::Delete, Some(Some(stored))) => self.delete(place, stored),
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
        let entries = self.index(place, None, Some(node))?;
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
        let entries = self.index(place, Some(old), Some(node))?;
        let bytes = item_size(&stored::new_entity(place, node, &moment, &entries));
        check_size(place, bytes + META_BYTES)?;
        let mut update = attributes_update(&old.node.attributes, &node.attributes)
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

    fn delete(&mut self, place: &Place, old: &Stored) -> Result<()> {
        self.index(place, Some(old), None)?;
        let condition = is_version(old.version)
            .and(is_list_version(old.edges))
            .and(is_number(&INCOMING, old.incoming));
        let key = stored::entity_key(place);
        let mut delete = DeleteItem::new(self.schema.entities(), key).return_old_on_failure();
        delete.condition = Some(condition);
        self.plan(delete, Meaning::Changed(place.clone()));
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
        let alive = Condition::attribute_exists(Path::attribute(ID));
        // What only loses edges may be on its way out itself.
        let here = match incoming >= 0 {
            true => alive.and(Condition::attribute_not_exists(meta(&LEAVING))),
            false => alive,
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
        let mut write =
            UpdateItem::new(self.schema.entities(), key, update).return_old_on_failure();
        write.condition = Some(condition);
        self.plan(write, meaning);
    }

    fn edges(&mut self) -> Result<()> {
        let table = self.schema.relationships();
        for ((subject, _), change) in &self.changes.edges {
            let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
            let is_new = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
            let write = match change.kind {
                EdgeChangeKind::Remove => {
                    let key = change.edge.key_item(&subject.scope)?;
                    DeleteItem::new(table.as_str(), key)
                        .condition(is_there)
                        .into()
                }
                kind => {
                    let item = change.edge.to_item(&subject.scope)?;
                    check_size(subject, item_size(&item))?;
                    let condition = match kind {
                        EdgeChangeKind::Add => is_new,
                        _ => is_there,
                    };
                    PutItem::new(table.as_str(), item)
                        .condition(condition)
                        .into()
                }
            };
            self.planned.push(Planned {
                write,
                meaning: Meaning::Changed(subject.clone()),
            });
        }
        Ok(())
    }

    /// The entries of an entity in all indexes that are known, and the writes that make them so.
    fn index(
        &mut self,
        place: &Place,
        old: Option<&Stored>,
        new: Option<&Node>,
    ) -> Result<Entries> {
        let table = self.schema.entries();
        let indexed = index_entries(self.schema, place, old, new)?;
        let is_deferred = self.changes.defers_entries && new.is_some();
        if is_deferred {
            let intent = stored::intent(BEHIND_ID, place);
            let put = PutItem::new(self.schema.entities(), intent);
            self.plan(put, Meaning::Changed(place.clone()));
        }
        for (index, key, attributes) in &indexed.puts {
            let entry = stored::entry(place, index, key, attributes);
            check_size(place, item_size(&entry))?;
            if !is_deferred {
                let put = PutItem::new(table.as_str(), entry);
                self.plan(put, Meaning::Changed(place.clone()));
            }
        }
        for (index, key) in indexed.deletes.iter().filter(|_| !is_deferred) {
            let delete = DeleteItem::new(table.as_str(), stored::entry_key(place, index, key));
            self.plan(delete, Meaning::Changed(place.clone()));
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
        let claim = self
            .claims
            .entry((place.scope.clone(), index, key))
            .or_default();
        claim.scope.clone_from(&place.scope);
        claim
    }

    fn claims(&mut self) {
        let table = self.schema.entries();
        for ((_, index, key), claim) in std::mem::take(&mut self.claims) {
            let meaning = Meaning::Claimed {
                index: index.clone(),
                key: key.clone(),
            };
            match claim.to {
                Some(place) => {
                    let item = stored::claim(&place, &index, &key);
                    let mut put = PutItem::new(table.as_str(), item).return_old_on_failure();
                    let free = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
                    let own = is_holder(&place.key);
                    let freed = claim.from.map(|holder| is_holder(&holder));
                    put.condition = Some(freed.into_iter().fold(free.or(own), Condition::or));
                    self.plan(put, meaning);
                }
                None => {
                    let item = stored::claim_key(&claim.scope, &index, &key);
                    self.plan(DeleteItem::new(table.as_str(), item), meaning);
                }
            }
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

/// Sets what is new and removes what is gone.
fn attributes_update(old: &Item, new: &Item) -> Update {
    let changed = new
        .iter()
        .filter(|(name, value)| old.get(name) != Some(*value));
    let update = changed.fold(Update::new(), |update, (name, value)| {
        update.set(Path::attribute(name.clone()), value.clone())
    });
    let gone = old.iter().filter(|(name, _)| !new.contains(name));
    gone.fold(update, |update, (name, _)| {
        update.remove(Path::attribute(name.clone()))
    })
}

/// Adds to the numbers of incoming edges.
pub(super) fn count(update: Update, (incoming, held): (i64, i64)) -> Update {
    let add = |update: Update, name: &Name, by: i64| match by {
        0 => update,
        by => {
            // Entities that others have written need not have the numbers.
            let had = SetOperand::if_not_exists(meta(name), Value::from(0));
            update.set_sum(meta(name), had, Value::from(by))
        }
    };
    add(add(update, &INCOMING, incoming), &HELD_BY, held)
}

/// Whether a number of `_meta` is this one. Entities that others have written need not have them, which counts as 0.
pub(super) fn is_number(name: &Name, number: u64) -> Condition {
    let is = Condition::eq(meta(name), Value::N(Number::from(number)));
    match number {
        0 => is.or(Condition::attribute_not_exists(meta(name))),
        _ => is,
    }
}

pub(super) fn is_version(version: u64) -> Condition {
    let is_there = Condition::attribute_exists(Path::attribute(ID));
    is_there.and(is_number(&VERSION, version))
}

fn is_list_version(edges: u64) -> Condition {
    is_number(&EDGES, edges)
}

pub(super) fn is_holder(key: &EntityKey) -> Condition {
    let has = |name: Name, text: &str| Condition::eq(Path::attribute(name), Value::from(text));
    has(TYPE, key.type_name()).and(has(ID, key.id()))
}
