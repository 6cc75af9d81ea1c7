//! The reads and changes of a transaction in the graph, until it commits.
//!
//! Each entity that a body uses has a [state](NodeState), and each edge that it adds or removes has a
//! [change](EdgeChange). Reads go through this module, so that a body sees its own changes. `compile.rs` turns them
//! into the writes of the commit.

use std::collections::BTreeMap;

use super::entries::{Indexed, index_entries};
use super::keys::{EntityKey, ScopedKey};
use super::node::Node;
use super::schema::GraphSchema;
use super::stored::{Edge, StoredEntity};
use crate::error::{Error, ErrorKind, Result};

/// The graph reads and changes of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(super) nodes: BTreeMap<ScopedKey, NodeState>,
    /// Key: the subject and the key of the edge.
    pub(super) edges: BTreeMap<(ScopedKey, String), EdgeChange>,
    /// Whether index entries are written after the commit, because there are too many for it.
    pub(super) defers_entries: bool,
}

/// The state of an entity that the body uses.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// The entity as read. Outer `None`: not read. Inner `None`: read, and absent.
    pub(super) read: Option<Option<StoredEntity>>,
    /// Whether the outcome depends on its attributes or its absence.
    pub(super) is_watched: bool,
    /// Whether the outcome depends on its outgoing edges.
    pub(super) is_list_watched: bool,
    /// Whether its outgoing edges change.
    pub(super) is_list_changed: bool,
    pub(super) write: Write,
    /// Its index entries, if a plan computed them.
    indexed: Option<Indexed>,
}

/// The pending write of an entity.
#[derive(Debug, Default)]
pub(super) enum Write {
    #[default]
    Nothing,
    Create(Node),
    Update(Node),
    Delete,
}

/// The pending change of an edge.
#[derive(Debug)]
pub(super) struct EdgeChange {
    pub(super) edge: Edge,
    pub(super) kind: EdgeChangeKind,
    /// Whether the stored edge holds its object, that is, prevents its deletion.
    was_holding: bool,
}

/// How an edge changes. The value is the change of the number of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeChangeKind {
    /// The edge is new.
    Add = 1,
    /// The edge exists, and its attributes change.
    Rewrite = 0,
    /// The edge exists and is removed.
    Remove = -1,
}

impl Changes {
    pub(super) fn state(&mut self, scoped_key: &ScopedKey) -> &mut NodeState {
        self.nodes.entry(scoped_key.clone()).or_default()
    }

    /// The entity with the changes of the body. Outer `None`: it must be read first. Inner `None`: it is absent.
    pub(super) fn current(&self, scoped_key: &ScopedKey) -> Option<Option<StoredEntity>> {
        let state = self.nodes.get(scoped_key)?;
        let read = state.read.as_ref().map(Option::as_ref);
        Some(match (&state.write, read) {
            (Write::Delete, _) => None,
            (Write::Create(node), _) => Some(created(node)),
            (Write::Update(node), Some(Some(stored))) => Some(StoredEntity {
                node: node.clone(),
                ..stored.clone()
            }),
            (_, read) => read?.filter(|stored| !stored.is_deleting).cloned(),
        })
    }

    /// The entity, if it was under deletion when it was read.
    pub(super) fn deleting(&self, scoped_key: &ScopedKey) -> Option<&StoredEntity> {
        let read = self.nodes.get(scoped_key)?.read.as_ref()?.as_ref();
        read.filter(|stored| stored.is_deleting)
    }

    /// Number of items to write for an entity and its index entries.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if an index function cannot read the entity.
    pub(super) fn entity_items(
        &self,
        schema: &GraphSchema,
        scoped_key: &ScopedKey,
    ) -> Result<usize> {
        let indexed = self.nodes.get(scoped_key);
        let indexed = indexed.map(|state| state.index(schema, scoped_key));
        Ok(1 + indexed.transpose()?.map_or(0, |indexed| indexed.items()))
    }

    /// Whether the stored entity, as read, has pending index entries.
    pub(super) fn has_pending_entries(&self, scoped_key: &ScopedKey) -> bool {
        let read = self
            .nodes
            .get(scoped_key)
            .and_then(|state| state.read.as_ref());
        read.is_some_and(|read| read.as_ref().is_some_and(|read| read.has_pending_entries))
    }

    /// Records the result of a read. The first result of an entity stays.
    pub(super) fn record_read(&mut self, scoped_key: &ScopedKey, read: Option<StoredEntity>) {
        self.state(scoped_key).read.get_or_insert(read);
    }

    /// Makes the outcome depend on an entity.
    pub(super) fn watch(&mut self, scoped_key: &ScopedKey) {
        self.state(scoped_key).is_watched = true;
    }

    /// # Errors
    ///
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) if the entity is known to exist.
    pub(super) fn create(&mut self, scoped_key: &ScopedKey, node: Node) -> Result<()> {
        if matches!(self.state(scoped_key).write, Write::Delete) {
            let what = "the transaction deletes this entity and cannot create it again";
            return Err(scoped_key.error(ErrorKind::InvalidUse, what));
        }
        if self.current(scoped_key).flatten().is_some() {
            return Err(exists(scoped_key));
        }
        self.state(scoped_key).set(Write::Create(node));
        Ok(())
    }

    /// Sets the attributes of an existing entity.
    pub(super) fn update(&mut self, scoped_key: &ScopedKey, node: Node) {
        let state = self.state(scoped_key);
        state.is_watched = true;
        state.set(match state.write {
            Write::Create(_) => Write::Create(node),
            _ => Write::Update(node),
        });
    }

    pub(super) fn delete(&mut self, scoped_key: &ScopedKey) {
        let state = self.state(scoped_key);
        (state.is_watched, state.is_list_watched) = (true, true);
        state.set(Write::Delete);
    }

    /// Makes the outcome depend on the outgoing edges of an entity.
    pub(super) fn watch_list(&mut self, scoped_key: &ScopedKey) {
        self.state(scoped_key).is_list_watched = true;
    }

    pub(super) fn is_created(&self, scoped_key: &ScopedKey) -> bool {
        let state = self.nodes.get(scoped_key);
        state.is_some_and(|state| matches!(state.write, Write::Create(_)))
    }

    /// Adds, rewrites or removes an edge.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if the edge's key is too long.
    pub(super) fn change_edge(
        &mut self,
        subject: ScopedKey,
        edge: Edge,
        kind: EdgeChangeKind,
    ) -> Result<()> {
        let key = (subject, edge.predicate_key()?);
        let before = self.edges.get(&key);
        let kind = match (before.map(|change| change.kind), kind) {
            (Some(EdgeChangeKind::Add), EdgeChangeKind::Remove) => {
                self.edges.remove(&key);
                return Ok(());
            }
            (Some(EdgeChangeKind::Add), _) => EdgeChangeKind::Add,
            (Some(_), EdgeChangeKind::Add) => EdgeChangeKind::Rewrite,
            (_, kind) => kind,
        };
        let is_held = kind != EdgeChangeKind::Add && edge.is_holding;
        let change = EdgeChange {
            was_holding: before.map_or(is_held, |change| change.was_holding),
            kind,
            edge,
        };
        self.edges.insert(key, change);
        Ok(())
    }

    /// Whether the body adds or rewrites an edge.
    pub(super) fn has_edge(&self, scope: &str, edge: &Edge) -> bool {
        let mut own = self.changes_to(&edge.object, scope);
        own.any(|change| change.kind != EdgeChangeKind::Remove && change.edge == *edge)
    }

    /// Number of stored edges of a list that the body removes.
    pub(super) fn removed(&self, subject: &ScopedKey, predicate: &str) -> usize {
        let own = self.edges.iter().filter(|((of, _), change)| {
            of == subject
                && change.edge.predicate == predicate
                && change.kind == EdgeChangeKind::Remove
        });
        own.count()
    }

    /// The outgoing edges of a subject as the body sees them, given the stored ones.
    pub(super) fn outgoing(
        &self,
        subject: &ScopedKey,
        predicate: Option<&str>,
        stored: Vec<Edge>,
    ) -> Result<Vec<Edge>> {
        let mut edges = BTreeMap::new();
        for edge in stored {
            edges.insert(edge.predicate_key()?, edge);
        }
        let own = self.edges.iter().filter(|((of, _), _)| of == subject);
        for ((_, key), change) in own {
            if predicate.is_some_and(|predicate| change.edge.predicate != predicate) {
                continue;
            }
            match change.kind {
                EdgeChangeKind::Remove => edges.remove(key),
                _ => edges.insert(key.clone(), change.edge.clone()),
            };
        }
        Ok(edges.into_values().collect())
    }

    /// The incoming edges of an object as the body sees them, given the stored ones.
    pub(super) fn incoming(&self, object: &ScopedKey, stored: Vec<Edge>) -> Vec<Edge> {
        let is_same = |edge: &Edge, change: &EdgeChange| {
            edge.subject == change.edge.subject
                && edge.predicate == change.edge.predicate
                && edge.index == change.edge.index
        };
        let own: Vec<_> = self.changes_to(&object.key, &object.scope).collect();
        let mut edges = stored;
        edges.retain(|edge| !own.iter().any(|change| is_same(edge, change)));
        let mut alive = own;
        alive.retain(|change| change.kind != EdgeChangeKind::Remove);
        edges.extend(alive.into_iter().map(|change| change.edge.clone()));
        edges
    }

    fn changes_to(&self, object: &EntityKey, scope: &str) -> impl Iterator<Item = &EdgeChange> {
        let to_object = self
            .edges
            .iter()
            .filter(move |((of, _), change)| of.scope == scope && change.edge.object == *object);
        to_object.map(|(_, change)| change)
    }

    /// The changes of an entity's counts of incoming edges: all edges, and those that hold it.
    pub(super) fn incoming_change(&self, object: &EntityKey, scope: &str) -> (i64, i64) {
        let own = self.changes_to(object, scope);
        own.fold((0, 0), |(all, held), change| {
            let is_holding = change.kind != EdgeChangeKind::Remove && change.edge.is_holding;
            let holds = i64::from(is_holding) - i64::from(change.was_holding);
            (all + change.kind as i64, held + holds)
        })
    }

    /// Defers the index entries of an entity if they do not fit into a commit of `items_max` items together with the
    /// entity. Returns whether they are deferred.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if an index function cannot read the entity.
    pub(super) fn defer_entries(
        &mut self,
        schema: &GraphSchema,
        scoped_key: &ScopedKey,
        items_max: usize,
    ) -> Result<bool> {
        let state = self.state(scoped_key);
        let indexed = state.index(schema, scoped_key)?;
        let is_wide = 1 + indexed.items() > items_max;
        state.indexed = Some(indexed);
        self.defers_entries = is_wide;
        Ok(is_wide)
    }
}

impl NodeState {
    fn set(&mut self, write: Write) {
        self.write = write;
        self.indexed = None;
    }

    /// The index entries to write and delete for the new state of the entity.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) if an index function cannot read the entity.
    pub(super) fn index(&self, schema: &GraphSchema, scoped_key: &ScopedKey) -> Result<Indexed> {
        if let Some(indexed) = &self.indexed {
            return Ok(indexed.clone());
        }
        let read = self.read.as_ref().and_then(Option::as_ref);
        match &self.write {
            Write::Create(node) => index_entries(schema, scoped_key, None, Some(node)),
            Write::Update(node) => index_entries(schema, scoped_key, read, Some(node)),
            Write::Delete => index_entries(schema, scoped_key, read, None),
            Write::Nothing => Ok(Indexed::default()),
        }
    }
}

fn created(node: &Node) -> StoredEntity {
    StoredEntity {
        node: node.clone(),
        version: 0,
        edges: 0,
        incoming: 0,
        held: 0,
        is_deleting: false,
        list_change: None,
        has_pending_entries: false,
        has_meta: true,
        entries: crate::graph::stored::Entries::new(),
    }
}

pub(super) fn exists(scoped_key: &ScopedKey) -> Error {
    scoped_key.error(ErrorKind::AlreadyExists, "the entity already exists")
}
