//! The graph schema of a database: table names, relations and indexes.

mod index;
mod relation;
mod timestamps;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use floe_store::table::{KeyKind, Projection, TableDef};

pub(crate) use index::Emitted;
pub use index::{Emit, IndexDef, MapIndex};
pub use relation::{OnDelete, Relation, RelationDef, WithoutAttributes};

use super::keys::ScopedKey;
use super::stored::{
    Edge, ID, INDEX, INDEX_KEY, OBJECT_KEY, PREDICATE_KEY, SCOPE_INDEX_NAME, SCOPE_TYPE_KEY,
    SUBJECT_KEY, UNIQUE_KEY, UPDATED,
};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tables::{ENSURE_DEADLINE, TableChange};
use timestamps::Timestamps;

/// Maximum number of recorded entities in an unexpected state.
const UNEXPECTED_MAX: usize = 1000;

/// The graph schema of a database: relations, indexes and table names. See [`Db::with_graph`].
#[derive(Debug, Default)]
pub struct GraphSchema {
    prefix: String,
    relations: Vec<RelationDef>,
    indexes: Vec<IndexDef>,
    pub(crate) timestamps: Timestamps,
    /// Indexes known to be complete, by scope, name and version.
    ready: Mutex<BTreeSet<(String, String, u64)>>,
    /// Entities in a state that a failed commit did not expect: absent, or under deletion. The next attempt reads them.
    unexpected: Mutex<BTreeSet<ScopedKey>>,
}

impl GraphSchema {
    /// Creates a schema without relations and indexes, whose table names have no prefix.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the prefix of table and index names: `shop_` results in `shop_entities_master`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Declares a relation.
    #[must_use]
    pub fn relation<R: Relation>(self) -> Self {
        self.relation_def(RelationDef::of::<R>())
    }

    /// Declares an untyped relation.
    #[must_use]
    pub fn relation_def(mut self, relation: RelationDef) -> Self {
        self.relations.push(relation);
        self
    }

    /// Declares an index.
    #[must_use]
    pub fn index<I: MapIndex>(self) -> Self {
        self.index_def(IndexDef::of::<I>())
    }

    /// Declares an index of untyped entities.
    #[must_use]
    pub fn index_def(mut self, index: IndexDef) -> Self {
        self.indexes.push(index);
        self
    }

    pub(crate) fn relation_of(&self, edge: &Edge) -> Option<&RelationDef> {
        self.relations.iter().find(|relation| {
            relation.predicate == edge.predicate
                && relation.subject_type == edge.subject.type_name()
                && relation.object_type == edge.object.type_name()
        })
    }

    /// Rejects an undeclared relation: deletions would not know its rules.
    pub(crate) fn check_relation<R: Relation>(&self) -> Result<()> {
        let wanted = RelationDef::of::<R>();
        if self.relations.iter().any(|def| def.declares(&wanted)) {
            return Ok(());
        }
        let what = "the relation is not declared: pass it to GraphSchema::relation";
        let message = format!("{what}: predicate={}", wanted.predicate);
        Err(Error::new(ErrorKind::InvalidUse, message))
    }

    /// Rejects a new edge that does not match the declared relations: a typed list with it could not be read. A predicate
    /// that no relation has is free.
    pub(crate) fn check_edge(&self, edge: &Edge) -> Result<()> {
        if let Some(relation) = self.relation_of(edge) {
            return relation.check_attributes(edge);
        }
        let relations = self.relations.iter();
        let declared = relations.filter(|relation| relation.predicate == edge.predicate);
        let declared = declared.map(|of| format!("{}-{}", of.subject_type, of.object_type));
        let declared: Vec<String> = declared.collect();
        if declared.is_empty() {
            return Ok(());
        }
        let what = "no relation of this predicate has these types: correct the types, or declare the relation";
        let (subject, predicate, object) = (&edge.subject, &edge.predicate, &edge.object);
        let declared = declared.join(",");
        let message = format!(
            "{what}: subject={subject} predicate={predicate} object={object} declared={declared}"
        );
        Err(Error::new(ErrorKind::InvalidUse, message))
    }

    pub(crate) fn indexes_of(&self, type_name: &str) -> impl Iterator<Item = &IndexDef> {
        let indexes = self.indexes.iter();
        indexes.filter(move |index| index.type_name == type_name)
    }

    /// Returns the index with this type and name.
    pub(crate) fn index_of(&self, type_name: &str, name: &str) -> Option<&IndexDef> {
        self.indexes_of(type_name).find(|index| index.name == name)
    }

    pub(crate) fn index_named(&self, name: &str) -> Result<&IndexDef> {
        let found = self.indexes.iter().find(|index| index.name == name);
        found.ok_or_else(|| {
            let what = "the index is not declared: pass it to GraphSchema::index";
            Error::new(ErrorKind::InvalidUse, format!("{what}: index={name}"))
        })
    }

    /// Whether an index is known to be complete in a scope.
    pub(crate) fn is_ready(&self, scope: &str, index: &IndexDef) -> bool {
        let key = (scope.to_owned(), index.name.clone(), index.version);
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.contains(&key)
    }

    pub(crate) fn mark_ready(&self, scope: &str, index: &IndexDef) {
        let key = (scope.to_owned(), index.name.clone(), index.version);
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        ready.insert(key);
    }

    /// Records that a commit failed because of the state of an entity that it had not read.
    pub(crate) fn note_unexpected(&self, scoped_key: &ScopedKey) {
        let noted = self.unexpected.lock();
        let mut noted = noted.unwrap_or_else(PoisonError::into_inner);
        // Attempts that never follow leave their entities behind. Forgetting one costs another attempt.
        if noted.len() >= UNEXPECTED_MAX {
            noted.clear();
        }
        noted.insert(scoped_key.clone());
    }

    /// Returns whether an entity was recorded, and forgets it.
    pub(crate) fn take_unexpected(&self, scoped_key: &ScopedKey) -> bool {
        let noted = self.unexpected.lock();
        let mut noted = noted.unwrap_or_else(PoisonError::into_inner);
        noted.remove(scoped_key)
    }

    pub(crate) fn entities(&self) -> String {
        format!("{}entities_master", self.prefix)
    }

    pub(crate) fn by_type(&self) -> String {
        format!("{}entities_by_type", self.prefix)
    }

    pub(crate) fn relationships(&self) -> String {
        format!("{}relationship_entries", self.prefix)
    }

    pub(crate) fn reverse(&self) -> String {
        format!("{}reverse_relationships", self.prefix)
    }

    pub(crate) fn entries(&self) -> String {
        format!("{}index_entries", self.prefix)
    }

    pub(crate) fn lookup(&self) -> String {
        format!("{}index_lookup", self.prefix)
    }

    /// Returns the definitions of the three tables.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the prefix is not valid in table names.
    pub fn tables(&self) -> Result<Vec<TableDef>> {
        let text = KeyKind::S;
        let entities = TableDef::builder(self.entities(), ID, text)
            .sort_key(SCOPE_TYPE_KEY, text)
            .global_index(
                self.by_type(),
                [(SCOPE_TYPE_KEY, text)],
                [(UPDATED, text)],
                Projection::All,
            );
        let relationships = TableDef::builder(self.relationships(), SUBJECT_KEY, text)
            .sort_key(PREDICATE_KEY, text)
            .global_index(
                self.reverse(),
                [(OBJECT_KEY, text)],
                [(INDEX, KeyKind::N)],
                Projection::All,
            );
        let entries = TableDef::builder(self.entries(), SUBJECT_KEY, text)
            .sort_key(UNIQUE_KEY, text)
            .global_index(
                self.lookup(),
                [(SCOPE_INDEX_NAME, text)],
                [(INDEX_KEY, text)],
                Projection::All,
            );
        let tables = [entities, relationships, entries].into_iter();
        let tables: floe_store::Result<_> = tables.map(|table| table.build()).collect();
        tables.map_err(|error| {
            Error::new(ErrorKind::InvalidUse, error.to_string()).with_source(error)
        })
    }
}

impl Db {
    /// Sets the schema of the database's [graph](crate::graph).
    #[must_use]
    pub fn with_graph(self, schema: GraphSchema) -> Self {
        self.with_setting(Arc::new(schema))
    }

    pub(crate) fn graph_schema(&self) -> &Arc<GraphSchema> {
        self.setting()
    }

    /// Creates the missing tables of the graph.
    ///
    /// # Errors
    ///
    /// As for [`ensure_tables`](Db::ensure_tables).
    pub async fn ensure_graph(&self) -> Result<Vec<TableChange>> {
        let tables = self.graph_schema().tables()?;
        self.ensure_definitions(tables, ENSURE_DEADLINE).await
    }
}
