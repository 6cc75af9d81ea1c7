//! Whether the three tables agree with each other. `repair.rs` makes them.
//!
//! Everything of a scope is read once and compared: edges with the entities that they join, the numbers of edges that
//! entities tell, entries and claims with what the functions of the indexes emit. Where a program does not know a relation
//! or an index, what the entities tell of it counts. Run it while nobody writes; otherwise what is being written may be
//! told as a difference. All keys of the scope are held in memory meanwhile.

mod difference;
mod repair;

use std::collections::{BTreeMap, BTreeSet};

use floe_store::expr::{Condition, Path};
use floe_store::op::Scan;
use floe_store::{Item, Name, Value};

pub use difference::{Difference, InSteps, Report};

use super::handle::Graph;
use super::keys::{EntityKey, check_scope};
use super::schema::Emitted;
use super::schema::OnDelete;
use super::stored::{
    self, BEHIND_ID, Edge, Entries, ID, IndexedKeys, LEAVING_ID, LISTS_ID, SCOPE, SUBJECT_SCOPE,
    Stored,
};
use crate::error::Result;

/// Everything of a scope.
#[derive(Default)]
struct Content {
    entities: BTreeMap<EntityKey, Stored>,
    intents: BTreeSet<(InSteps, EntityKey)>,
    edges: Vec<Edge>,
    /// By entity, index and key.
    entries: BTreeMap<(EntityKey, String, String), Item>,
    /// By index and key.
    claims: BTreeMap<(String, String), EntityKey>,
    differences: Vec<Difference>,
}

/// An entry that an index should have.
struct Expected {
    index: String,
    key: String,
    /// As its function emits it, if that is known.
    entry: Option<Item>,
    is_unique: bool,
}

impl Graph<'_> {
    /// Compares the three tables and tells every difference.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer.
    pub async fn check(&self) -> Result<Report> {
        self.check_outside()?;
        check_scope(&self.scope)?;
        let mut content = self.content().await?;
        let mut differences = std::mem::take(&mut content.differences);
        self.check_edges(&content, &mut differences);
        self.check_indexes(&content, &mut differences)?;
        check_steps(&content, &mut differences);
        Ok(Report {
            entities: content.entities.len() as u64,
            edges: content.edges.len() as u64,
            entries: content.entries.len() as u64,
            differences,
        })
    }

    async fn content(&self) -> Result<Content> {
        let schema = self.db.graph_schema();
        let mut content = Content::default();
        let (entities, edges) = (schema.entities(), schema.relationships());
        self.scanned(entities, SCOPE, &mut content, Content::add_entity)
            .await?;
        self.scanned(edges, SUBJECT_SCOPE, &mut content, Content::add_edge)
            .await?;
        self.scanned(schema.entries(), SCOPE, &mut content, Content::add_entry)
            .await?;
        Ok(content)
    }

    /// Adds all items of the scope in a table.
    async fn scanned(
        &self,
        table: String,
        scope: Name,
        content: &mut Content,
        add: impl Fn(&mut Content, &Item) -> Result<()>,
    ) -> Result<()> {
        let is_own = Condition::eq(Path::attribute(scope), Value::from(self.scope.as_str()));
        let mut scan = Scan::new(table.as_str()).consistent().filter(is_own);
        loop {
            let page = self.reads().scan(&scan).await?;
            for item in &page.items {
                if let Err(error) = add(content, item) {
                    let (table, reason) = (table.clone(), error.to_string());
                    let damaged = Difference::Damaged { table, reason };
                    content.differences.push(damaged);
                }
            }
            scan.start_key = page.last_key;
            if scan.start_key.is_none() {
                return Ok(());
            }
        }
    }

    fn check_edges(&self, content: &Content, differences: &mut Vec<Difference>) {
        let schema = self.db.graph_schema();
        let mut counts: BTreeMap<&EntityKey, (u64, u64)> = BTreeMap::new();
        for edge in &content.edges {
            let (from, to) = (edge.subject.type_name(), edge.object.type_name());
            let relation = schema.relation_of(from, &edge.predicate, to);
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
        let mut wanted: BTreeSet<(EntityKey, String, String)> = BTreeSet::new();
        let mut claimed: BTreeSet<(String, String)> = BTreeSet::new();
        for (entity, stored) in &content.entities {
            if stored.is_leaving {
                continue;
            }
            let (keys, emitted) = match self.keys_of(stored) {
                Ok(found) => found,
                Err(error) => {
                    let (entity, reason) = (entity.clone(), error.to_string());
                    differences.push(Difference::Unreadable { entity, reason });
                    continue;
                }
            };
            if keys != stored.entries {
                let entity = entity.clone();
                differences.push(Difference::WrongKeys { entity });
            }
            for expected in self.expected(entity, &keys, emitted)? {
                content.check_entry(entity, stored, &expected, differences);
                if expected.is_unique {
                    claimed.insert((expected.index.clone(), expected.key.clone()));
                }
                wanted.insert((entity.clone(), expected.index, expected.key));
            }
        }
        content.check_extra(&wanted, &claimed, differences);
        Ok(())
    }

    /// The entries that the indexes should have of an entity.
    fn expected(
        &self,
        entity: &EntityKey,
        keys: &Entries,
        emitted: Vec<(String, Emitted)>,
    ) -> Result<Vec<Expected>> {
        let place = self.place(entity)?;
        let mut entries = BTreeMap::new();
        for (index, of_index) in emitted {
            for (key, attributes) in of_index {
                let entry = stored::entry(&place, &index, &key, &attributes);
                entries.insert((index.clone(), key.as_str().to_owned()), entry);
            }
        }
        let mut expected = Vec::new();
        for (index, of_index) in keys {
            expected.extend(of_index.keys.iter().map(|key| Expected {
                entry: entries.remove(&(index.clone(), key.clone())),
                index: index.clone(),
                key: key.clone(),
                is_unique: of_index.is_unique,
            }));
        }
        Ok(expected)
    }

    /// The keys of an entity as the functions emit them, and the entries. Indexes that this program does not know, or knows
    /// by an older function, are taken at their word.
    pub(super) fn keys_of(&self, stored: &Stored) -> Result<(Entries, Vec<(String, Emitted)>)> {
        let schema = self.db.graph_schema();
        let (mut keys, mut entries) = (stored.entries.clone(), Vec::new());
        for index in schema.indexes_of(stored.node.key.type_name()) {
            let had = keys.get(&index.name);
            if had.is_some_and(|had| had.version > index.version) {
                continue;
            }
            let emitted = index.emitted(&stored.node)?;
            let of_index = IndexedKeys {
                version: index.version,
                is_unique: index.is_unique,
                keys: emitted.keys().map(|key| key.as_str().to_owned()).collect(),
            };
            keys.insert(index.name.clone(), of_index);
            entries.push((index.name.clone(), emitted));
        }
        Ok((keys, entries))
    }
}

impl Content {
    fn add_entity(&mut self, item: &Item) -> Result<()> {
        if !stored::is_own(item) {
            let stored = Stored::of_item(item)?;
            self.entities.insert(stored.node.key.clone(), stored);
            return Ok(());
        }
        let what = match item.get(&ID).and_then(Value::as_s) {
            Some(LEAVING_ID) => InSteps::Deletion,
            Some(LISTS_ID) => InSteps::List,
            Some(BEHIND_ID) => InSteps::Entries,
            _ => return Ok(()),
        };
        self.intents.insert((what, stored::intent_owner(item)?));
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

    fn check_entry(
        &self,
        of: &EntityKey,
        stored: &Stored,
        expected: &Expected,
        differences: &mut Vec<Difference>,
    ) {
        let (entity, index, key) = (of.clone(), expected.index.clone(), expected.key.clone());
        let place = (entity.clone(), index.clone(), key.clone());
        let found = self.entries.get(&place);
        let is_right = match &expected.entry {
            Some(entry) => found == Some(entry),
            None => found.is_some(),
        };
        if !is_right && !stored.is_behind {
            let (entity, index, key) = place;
            differences.push(Difference::MissingEntry { entity, index, key });
        }
        if !expected.is_unique {
            return;
        }
        match self.claims.get(&(index.clone(), key.clone())) {
            Some(holder) if *holder == entity => {}
            Some(_) => differences.push(Difference::DoubleClaim { entity, index, key }),
            None => differences.push(Difference::MissingClaim { entity, index, key }),
        }
    }

    fn check_extra(
        &self,
        wanted: &BTreeSet<(EntityKey, String, String)>,
        claimed: &BTreeSet<(String, String)>,
        differences: &mut Vec<Difference>,
    ) {
        let of = |entity: &EntityKey| self.entities.get(entity);
        for place in self.entries.keys().filter(|place| !wanted.contains(*place)) {
            let is_on_its_way = |of: &Stored| of.is_leaving || of.is_behind;
            if !of(&place.0).is_some_and(is_on_its_way) {
                let (entity, index, key) = place.clone();
                differences.push(Difference::ExtraEntry { entity, index, key });
            }
        }
        let claims = self.claims.iter();
        for ((index, key), entity) in claims.filter(|(claim, _)| !claimed.contains(*claim)) {
            if !of(entity).is_some_and(|of| of.is_leaving) {
                let (entity, index, key) = (entity.clone(), index.clone(), key.clone());
                differences.push(Difference::ExtraClaim { entity, index, key });
            }
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
            (InSteps::Deletion, stored.is_leaving),
            (InSteps::List, stored.busy.is_some()),
            (InSteps::Entries, stored.is_behind),
        ];
        let marks = marks.into_iter().filter(|(_, is_marked)| *is_marked);
        marked.extend(marks.map(|(what, _)| (what, key.clone())));
    }
    for (what, entity) in marked.union(&content.intents).cloned() {
        let place = (what, entity.clone());
        let is_marked = marked.contains(&place);
        differences.push(match (is_marked, content.intents.contains(&place)) {
            (true, true) => Difference::Unfinished { what, entity },
            (true, false) => Difference::MissingIntent { what, entity },
            (false, _) => Difference::ExtraIntent { what, entity },
        });
    }
}
