//! Whether the three tables agree with each other. `repair.rs` makes them.
//!
//! Everything of a scope is read once and compared: edges with the entities that they join, the numbers of edges that
//! entities tell, entries and claims with what the functions of the indexes emit. Run it while nobody writes; otherwise
//! what is being written may be told as a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use floe_store::expr::{Condition, Path};
use floe_store::op::Scan;
use floe_store::{Item, Name, Value};

use super::Graph;
use super::index::Emitted;
use super::key::EntityKey;
use super::relation::OnDelete;
use super::stored::{self, Edge, Entries, ID, IndexedKeys, LEAVING_ID, SCOPE, Stored};
use crate::error::Result;

const SUBJECT_SCOPE: Name = Name::new_static("_subject_scope");

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// How many entities there are.
    pub entities: u64,
    /// How many edges there are.
    pub edges: u64,
    /// How many entries of indexes there are.
    pub entries: u64,
    /// Everything that does not agree.
    pub differences: Vec<Difference>,
}

/// Something that does not agree.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// An entity lacks `_meta`, so it cannot be changed: others have written it. Repaired by giving it one.
    MissingMeta(EntityKey),
    /// The function of an index cannot read an entity. Not repaired: the entity, or the function, has to change.
    Unreadable {
        /// The entity.
        entity: EntityKey,
        /// Why not.
        reason: String,
    },
    /// An edge leads from nothing. Repaired by removing it.
    MissingSubject(Edge),
    /// An edge leads to nothing. Repaired by removing it.
    MissingObject(Edge),
    /// An edge refuses the deletion of its object, or does not, other than its relation says. Repaired as it says.
    WrongHold(Edge),
    /// An entity tells another number of edges that lead to it than there are. Repaired by telling the number.
    WrongCount {
        /// The entity.
        entity: EntityKey,
        /// The number of edges, and of those that refuse its deletion.
        expected: (u64, u64),
        /// What it tells.
        actual: (u64, u64),
    },
    /// An entity tells other keys in the indexes than it has. Repaired by telling those.
    WrongKeys {
        /// The entity.
        entity: EntityKey,
    },
    /// An index lacks an entry, or has one with other attributes. Repaired by writing it.
    MissingEntry {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// An index has an entry that no function emits. Repaired by removing it.
    ExtraEntry {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// Nobody holds a unique key that an entity has. Repaired by letting it hold it.
    MissingClaim {
        /// The entity.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// Two entities have the same unique key. Not repaired: one of them has to change.
    DoubleClaim {
        /// The entity that does not hold it.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// A unique key is held by what does not have it. Repaired by letting go.
    ExtraClaim {
        /// The entity that holds it.
        entity: EntityKey,
        /// The index.
        index: String,
        /// The key.
        key: String,
    },
    /// The deletion of an entity was begun and not ended. Repaired by ending it.
    Unfinished(EntityKey),
    /// The change of a list was begun and not ended. Repaired by ending it.
    UnfinishedList(EntityKey),
    /// An entity is marked as being deleted, but nobody would end it. Repaired by ending it.
    MissingIntent(EntityKey),
    /// The deletion of an entity is noted that is not there or not marked. Repaired by removing the note.
    ExtraIntent(EntityKey),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut edge = |what: &str, edge: &Edge| {
            let (subject, predicate, object) = (&edge.subject, &edge.predicate, &edge.object);
            write!(
                f,
                "{what}: subject={subject} predicate={predicate} object={object}"
            )
        };
        match self {
            Self::MissingMeta(entity) => write!(f, "an entity has no _meta: entity={entity}"),
            Self::Unreadable { entity, reason } => {
                write!(f, "an entity cannot be read: {reason} entity={entity}")
            }
            Self::MissingSubject(of) => edge("an edge leads from nothing", of),
            Self::MissingObject(of) => edge("an edge leads to nothing", of),
            Self::WrongHold(of) => {
                edge("an edge does not hold its object as its relation says", of)
            }
            Self::WrongCount {
                entity,
                expected,
                actual,
            } => write!(
                f,
                "the number of incoming edges is wrong: entity={entity} expected={expected:?} actual={actual:?}"
            ),
            Self::WrongKeys { entity } => {
                write!(f, "the keys of an entity are wrong: entity={entity}")
            }
            Self::MissingEntry { entity, index, key } => {
                write!(
                    f,
                    "an entry is missing or wrong: entity={entity} index={index} key={key}"
                )
            }
            Self::ExtraEntry { entity, index, key } => {
                write!(
                    f,
                    "an entry is one too many: entity={entity} index={index} key={key}"
                )
            }
            Self::MissingClaim { entity, index, key } => {
                write!(
                    f,
                    "a unique key is not held: entity={entity} index={index} key={key}"
                )
            }
            Self::DoubleClaim { entity, index, key } => {
                write!(
                    f,
                    "two have the same unique key: entity={entity} index={index} key={key}"
                )
            }
            Self::ExtraClaim { entity, index, key } => {
                write!(
                    f,
                    "a unique key is held in vain: entity={entity} index={index} key={key}"
                )
            }
            Self::Unfinished(entity) => write!(f, "a deletion was not ended: entity={entity}"),
            Self::UnfinishedList(entity) => {
                write!(f, "the change of a list was not ended: entity={entity}")
            }
            Self::MissingIntent(entity) => write!(f, "a deletion is not noted: entity={entity}"),
            Self::ExtraIntent(entity) => write!(f, "a deletion is noted in vain: entity={entity}"),
        }
    }
}

/// Everything of a scope.
#[derive(Default)]
struct Content {
    entities: BTreeMap<EntityKey, Stored>,
    intents: BTreeSet<EntityKey>,
    edges: Vec<Edge>,
    /// By entity, index and key.
    entries: BTreeMap<(EntityKey, String, String), Item>,
    /// By index and key.
    claims: BTreeMap<(String, String), EntityKey>,
}

impl Graph<'_> {
    /// Compares the three tables and tells every difference.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer,
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when an item is none of the graph's.
    pub async fn check(&self) -> Result<Report> {
        self.check_outside()?;
        let content = self.content().await?;
        let mut differences = Vec::new();
        self.check_edges(&content, &mut differences);
        self.check_indexes(&content, &mut differences)?;
        Self::check_deletions(&content, &mut differences);
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
        for item in self.scanned(schema.entities(), SCOPE).await? {
            let id = item.get(&ID).and_then(Value::as_s);
            if id == Some(LEAVING_ID) && stored::is_own(&item) {
                content.intents.insert(stored::intent_owner(&item)?);
            } else if !stored::is_own(&item) {
                let stored = Stored::of_item(&item)?;
                content.entities.insert(stored.node.key.clone(), stored);
            }
        }
        for item in self.scanned(schema.relationships(), SUBJECT_SCOPE).await? {
            content.edges.push(Edge::of_item(&item)?);
        }
        for item in self.scanned(schema.entries(), SCOPE).await? {
            let owner = stored::entry_owner(&item)?;
            let index = stored::text(&item, &stored::INDEX_NAME)?.to_owned();
            let key = stored::text(&item, &stored::INDEX_KEY)?.to_owned();
            match stored::is_claim(&item) {
                true => {
                    content.claims.insert((index, key), owner);
                }
                false => {
                    content.entries.insert((owner, index, key), item);
                }
            }
        }
        Ok(content)
    }

    async fn scanned(&self, table: String, scope: Name) -> Result<Vec<Item>> {
        let is_own = Condition::eq(Path::attribute(scope), Value::from(self.scope.as_str()));
        let mut scan = Scan::new(table).consistent().filter(is_own);
        let mut items = Vec::new();
        loop {
            let page = self.reads().scan(&scan).await?;
            items.extend(page.items);
            scan.start_key = page.last_key;
            if scan.start_key.is_none() {
                return Ok(items);
            }
        }
    }

    fn check_edges(&self, content: &Content, differences: &mut Vec<Difference>) {
        let schema = self.db.graph_schema();
        let mut counts: BTreeMap<&EntityKey, (u64, u64)> = BTreeMap::new();
        for edge in &content.edges {
            let (from, to) = (edge.subject.type_name(), edge.object.type_name());
            let holds = schema.on_delete(from, &edge.predicate, to) == OnDelete::Restrict;
            let count = counts.entry(&edge.object).or_default();
            count.0 += 1;
            count.1 += u64::from(edge.is_holding);
            if !content.entities.contains_key(&edge.subject) {
                differences.push(Difference::MissingSubject(edge.clone()));
            } else if !content.entities.contains_key(&edge.object) {
                differences.push(Difference::MissingObject(edge.clone()));
            } else if holds != edge.is_holding {
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
        let schema = self.db.graph_schema();
        let mut wanted: BTreeSet<(EntityKey, String, String)> = BTreeSet::new();
        let mut claimed: BTreeSet<(String, String)> = BTreeSet::new();
        for (entity, stored) in &content.entities {
            let place = self.place(entity)?;
            let (keys, emitted) = match self.keys_of(stored) {
                Ok(found) => found,
                Err(error) => {
                    let (entity, reason) = (entity.clone(), error.to_string());
                    differences.push(Difference::Unreadable { entity, reason });
                    continue;
                }
            };
            if !stored.is_leaving && keys != stored.entries {
                let entity = entity.clone();
                differences.push(Difference::WrongKeys { entity });
            }
            for (index, entries) in emitted {
                for (key, attributes) in entries {
                    let entry = stored::entry(&place, &index, &key, &attributes);
                    let (entity, key) = (entity.clone(), key.as_str().to_owned());
                    let place = (entity.clone(), index.clone(), key.clone());
                    if content.entries.get(&place) != Some(&entry) && !stored.is_leaving {
                        let (entity, index, key) = place.clone();
                        differences.push(Difference::MissingEntry { entity, index, key });
                    }
                    wanted.insert(place);
                    let is_unique = schema.index_named(&index)?.is_unique;
                    if !is_unique {
                        continue;
                    }
                    let index = index.clone();
                    claimed.insert((index.clone(), key.clone()));
                    match content.claims.get(&(index.clone(), key.clone())) {
                        Some(holder) if *holder == entity => {}
                        Some(_) => differences.push(Difference::DoubleClaim { entity, index, key }),
                        None if stored.is_leaving => {}
                        None => differences.push(Difference::MissingClaim { entity, index, key }),
                    }
                }
            }
            // Indexes that this program does not know are taken at their word.
            for (index, keys) in &stored.entries {
                if schema.index_named(index).is_err() {
                    let keys = keys.keys.iter();
                    wanted.extend(keys.map(|key| (entity.clone(), index.clone(), key.clone())));
                }
            }
        }
        for (entity, index, key) in content.entries.keys() {
            if !wanted.contains(&(entity.clone(), index.clone(), key.clone())) {
                let (entity, index, key) = (entity.clone(), index.clone(), key.clone());
                differences.push(Difference::ExtraEntry { entity, index, key });
            }
        }
        for ((index, key), entity) in &content.claims {
            if !claimed.contains(&(index.clone(), key.clone())) && schema.index_named(index).is_ok()
            {
                let (entity, index, key) = (entity.clone(), index.clone(), key.clone());
                differences.push(Difference::ExtraClaim { entity, index, key });
            }
        }
        Ok(())
    }

    /// The keys of an entity as the functions emit them, and the entries.
    pub(super) fn keys_of(&self, stored: &Stored) -> Result<(Entries, Vec<(String, Emitted)>)> {
        let schema = self.db.graph_schema();
        let (mut keys, mut entries) = (stored.entries.clone(), Vec::new());
        for index in schema.indexes_of(stored.node.key.type_name()) {
            let emitted = index.emitted(&stored.node)?;
            let of_index = IndexedKeys {
                version: index.version,
                keys: emitted.keys().map(|key| key.as_str().to_owned()).collect(),
            };
            keys.insert(index.name.clone(), of_index);
            entries.push((index.name.clone(), emitted));
        }
        Ok((keys, entries))
    }

    fn check_deletions(content: &Content, differences: &mut Vec<Difference>) {
        for (key, stored) in &content.entities {
            if !stored.has_meta {
                differences.push(Difference::MissingMeta(key.clone()));
            }
            if stored.is_busy {
                differences.push(Difference::UnfinishedList(key.clone()));
            }
            match (stored.is_leaving, content.intents.contains(key)) {
                (true, true) => differences.push(Difference::Unfinished(key.clone())),
                (true, false) => differences.push(Difference::MissingIntent(key.clone())),
                (false, true) => differences.push(Difference::ExtraIntent(key.clone())),
                (false, false) => {}
            }
        }
        let gone = content
            .intents
            .iter()
            .filter(|key| !content.entities.contains_key(*key));
        differences.extend(gone.cloned().map(Difference::ExtraIntent));
    }
}
