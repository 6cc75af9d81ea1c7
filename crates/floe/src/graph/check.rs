//! Compares the three tables of a graph with each other. `repair.rs` repairs differences.
//!
//! The check reads a whole scope once. It compares edges with the entities that they connect, the edge counts stored on
//! entities, and entries and claims with the output of the index functions. For relations and indexes that the program
//! does not know, the data stored on the entities is taken as correct. Run it while no process writes: otherwise
//! changes in flight may be reported as differences. All keys of the scope are held in memory.

mod difference;
mod repair;

use std::collections::{BTreeMap, BTreeSet};

use floe_store::expr::{Condition, Path};
use floe_store::op::Scan;
use floe_store::{Item, Name, Value};

pub use difference::{CheckReport, Difference, WideChange};

use super::handle::Graph;
use super::keys::{EntityKey, IndexKey, check_scope};
use super::schema::Emitted;
use super::schema::OnDelete;
use super::stored::{
    self, DELETIONS_ID, Edge, Entries, ID, LIST_CHANGES_ID, PENDING_ID, SCOPE, SUBJECT_SCOPE,
    StoredEntity,
};
use crate::error::Result;

/// All items of a scope.
#[derive(Default)]
struct Content {
    entities: BTreeMap<EntityKey, StoredEntity>,
    intents: BTreeSet<(WideChange, EntityKey)>,
    edges: Vec<Edge>,
    entries: BTreeMap<EntryName, Item>,
    claims: BTreeMap<ClaimName, EntityKey>,
    differences: Vec<Difference>,
}

/// Entity, index, key.
type EntryName = (EntityKey, String, String);

/// Index, key.
type ClaimName = (String, String);

type Add = fn(&mut Content, &Item) -> Result<()>;

impl Graph<'_> {
    /// Compares the three tables and reports every difference. Holds all keys of the scope in memory. Changes made
    /// during the check may be reported as differences.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable.
    pub async fn check(&self) -> Result<CheckReport> {
        self.check_outside()?;
        check_scope(&self.scope)?;
        let mut content = self.content().await?;
        let mut differences = std::mem::take(&mut content.differences);
        self.check_edges(&content, &mut differences);
        self.check_indexes(&content, &mut differences)?;
        check_steps(&content, &mut differences);
        Ok(CheckReport {
            entities: content.entities.len() as u64,
            edges: content.edges.len() as u64,
            entries: content.entries.len() as u64,
            differences,
        })
    }

    async fn content(&self) -> Result<Content> {
        let schema = self.db.graph_schema();
        let mut content = Content::default();
        let tables: [(String, Name, Add); 3] = [
            (schema.entities(), SCOPE, Content::add_entity),
            (schema.relationships(), SUBJECT_SCOPE, Content::add_edge),
            (schema.entries(), SCOPE, Content::add_entry),
        ];
        for (table, scope, add) in tables {
            self.scanned(table, scope, &mut content, add).await?;
        }
        Ok(content)
    }

    /// Adds all items of the scope from one table.
    async fn scanned(
        &self,
        table: String,
        scope: Name,
        content: &mut Content,
        add: Add,
    ) -> Result<()> {
        let is_own = Condition::eq(Path::attribute(scope), Value::from(self.scope.as_str()));
        let scan = Scan::new(table.as_str()).consistent().filter(is_own);
        let add = |item: &Item| {
            if let Err(error) = add(content, item) {
                let (table, reason) = (table.clone(), error.to_string());
                let damaged = Difference::Damaged { table, reason };
                content.differences.push(damaged);
            }
        };
        self.reads().scan_each(scan, add).await
    }

    fn check_edges(&self, content: &Content, differences: &mut Vec<Difference>) {
        let schema = self.db.graph_schema();
        let mut counts: BTreeMap<&EntityKey, (u64, u64)> = BTreeMap::new();
        for edge in &content.edges {
            let relation = schema.relation_of(edge);
            let holds = relation.map(|relation| relation.on_delete == OnDelete::Restrict);
            let count = counts.entry(&edge.object).or_default();
            count.0 += 1;
            count.1 += u64::from(edge.is_holding);
            if !content.entities.contains_key(&edge.subject) {
                differences.push(Difference::MissingSubject(edge.clone()));
            } else if !content.entities.contains_key(&edge.object) {
                differences.push(Difference::MissingObject(edge.clone()));
            } else if holds.is_some_and(|holds| holds != edge.is_holding) {
                differences.push(Difference::WrongHold(edge.clone()));
            }
        }
        for (key, stored) in &content.entities {
            let expected = counts.get(key).copied().unwrap_or_default();
            let actual = (stored.incoming, stored.held);
            if expected != actual {
                differences.push(Difference::WrongCount {
                    entity: key.clone(),
                    expected,
                    actual,
                });
            }
        }
    }

    fn check_indexes(&self, content: &Content, differences: &mut Vec<Difference>) -> Result<()> {
        let mut check = IndexCheck {
            content,
            extra_entries: content.entries.keys().collect(),
            extra_claims: content.claims.keys().collect(),
            differences,
        };
        for (entity, stored) in &content.entities {
            if stored.is_deleting {
                continue;
            }
            let (keys, emitted) = match self.keys_of(stored) {
                Ok(found) => found,
                Err(error) => {
                    let (entity, reason) = (entity.clone(), error.to_string());
                    let unreadable = Difference::Unreadable { entity, reason };
                    check.differences.push(unreadable);
                    continue;
                }
            };
            if keys != stored.entries {
                let entity = entity.clone();
                check.differences.push(Difference::WrongKeys { entity });
            }
            let scoped_key = self.scoped_key(entity)?;
            for (index, of_index) in &keys {
                for key in &of_index.keys {
                    let name = (entity.clone(), index.clone(), key.clone());
                    let key = IndexKey::text(key);
                    let attributes = emitted.get(index).and_then(|emitted| emitted.get(&key));
                    let entry =
                        attributes.map(|found| stored::entry(&scoped_key, index, &key, found));
                    check.entry(stored, &name, entry.as_ref());
                    if of_index.is_unique {
                        check.claim(name);
                    }
                }
            }
        }
        check.extra();
        Ok(())
    }

    /// The keys of an entity as emitted by the index functions, and the entries. The stored keys are taken for indexes
    /// that this program does not know, or knows with an older function.
    pub(super) fn keys_of(
        &self,
        stored: &StoredEntity,
    ) -> Result<(Entries, BTreeMap<String, Emitted>)> {
        let schema = self.db.graph_schema();
        let (mut keys, mut entries) = (stored.entries.clone(), BTreeMap::new());
        for index in schema.indexes_of(stored.node.key.type_name()) {
            let had = keys.get(&index.name);
            if had.is_some_and(|had| had.version > index.version) {
                continue;
            }
            let emitted = index.emitted(&stored.node)?;
            keys.insert(index.name.clone(), index.indexed_keys(&emitted));
            entries.insert(index.name.clone(), emitted);
        }
        Ok((keys, entries))
    }
}

impl Content {
    fn add_entity(&mut self, item: &Item) -> Result<()> {
        if !stored::is_own(item) {
            let stored = StoredEntity::of_item(item)?;
            self.entities.insert(stored.node.key.clone(), stored);
            return Ok(());
        }
        let change = match item.get(&ID).and_then(Value::as_s) {
            Some(DELETIONS_ID) => WideChange::Deletion,
            Some(LIST_CHANGES_ID) => WideChange::List,
            Some(PENDING_ID) => WideChange::Entries,
            _ => return Ok(()),
        };
        self.intents.insert((change, stored::intent_owner(item)?));
        Ok(())
    }

    fn add_edge(&mut self, item: &Item) -> Result<()> {
        self.edges.push(Edge::of_item(item)?);
        Ok(())
    }

    fn add_entry(&mut self, item: &Item) -> Result<()> {
        let owner = stored::entry_owner(item)?;
        let index = stored::text(item, &stored::INDEX_NAME)?.to_owned();
        let key = stored::text(item, &stored::INDEX_KEY)?.to_owned();
        if stored::is_claim(item) {
            self.claims.insert((index, key), owner);
        } else {
            self.entries.insert((owner, index, key), item.clone());
        }
        Ok(())
    }
}

/// Compares entries and claims with those that the entities should have. The remaining ones are extra.
struct IndexCheck<'c> {
    content: &'c Content,
    extra_entries: BTreeSet<&'c EntryName>,
    extra_claims: BTreeSet<&'c ClaimName>,
    differences: &'c mut Vec<Difference>,
}

impl IndexCheck<'_> {
    /// Checks an entry that should exist. `expected` is its content, if the index function is known.
    fn entry(&mut self, of: &StoredEntity, name: &EntryName, expected: Option<&Item>) {
        self.extra_entries.remove(name);
        let found = self.content.entries.get(name);
        let is_right = |found: &Item| expected.is_none_or(|expected| found == expected);
        if !of.has_pending_entries && !found.is_some_and(is_right) {
            let (entity, index, key) = name.clone();
            let missing = Difference::MissingEntry { entity, index, key };
            self.differences.push(missing);
        }
    }

    /// Checks a unique key that an entity should hold.
    fn claim(&mut self, (entity, index, key): EntryName) {
        let claim = (index, key);
        self.extra_claims.remove(&claim);
        let holder = self.content.claims.get(&claim);
        let (index, key) = claim;
        self.differences.extend(match holder {
            Some(holder) if *holder == entity => None,
            Some(_) => Some(Difference::DoubleClaim { entity, index, key }),
            None => Some(Difference::MissingClaim { entity, index, key }),
        });
    }

    fn extra(self) {
        let content = self.content;
        let of = |entity: &EntityKey| content.entities.get(entity);
        for name in self.extra_entries {
            let (entity, index, key) = name.clone();
            if !of(&entity).is_some_and(|of| of.is_deleting || of.has_pending_entries) {
                let extra = Difference::ExtraEntry { entity, index, key };
                self.differences.push(extra);
            }
        }
        for claim in self.extra_claims {
            let holder = content.claims.get(claim).cloned();
            let holder = holder.filter(|holder| !of(holder).is_some_and(|of| of.is_deleting));
            let (index, key) = claim.clone();
            let extra = holder.map(|entity| Difference::ExtraClaim { entity, index, key });
            self.differences.extend(extra);
        }
    }
}

fn check_steps(content: &Content, differences: &mut Vec<Difference>) {
    let mut marked = BTreeSet::new();
    for (key, stored) in &content.entities {
        if !stored.has_meta {
            differences.push(Difference::MissingMeta(key.clone()));
        }
        let marks = [
            (WideChange::Deletion, stored.is_deleting),
            (WideChange::List, stored.list_change.is_some()),
            (WideChange::Entries, stored.has_pending_entries),
        ];
        let marks = marks.into_iter().filter(|(_, is_marked)| *is_marked);
        marked.extend(marks.map(|(change, _)| (change, key.clone())));
    }
    for (change, entity) in marked.union(&content.intents).cloned() {
        let mark = (change, entity.clone());
        let is_marked = marked.contains(&mark);
        differences.push(match (is_marked, content.intents.contains(&mark)) {
            (true, true) => Difference::Unfinished { change, entity },
            (true, false) => Difference::MissingIntent { change, entity },
            (false, _) => Difference::ExtraIntent { change, entity },
        });
    }
}
