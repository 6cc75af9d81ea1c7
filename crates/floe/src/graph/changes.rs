//! What a transaction has read and changed in the graph, until it commits.
//!
//! Every entity that a body touches has a [state](NodeState), every edge that it adds or removes a [change](EdgeChange).
//! Reading goes through here, so a body sees its own changes. `compile.rs` makes the writes of the commit of it.

use std::collections::BTreeMap;

use super::entries::{Indexed, index_entries};
use super::keys::{EntityKey, Place};
use super::node::Node;
use super::schema::GraphSchema;
use super::stored::{Edge, Stored};
use crate::error::{Error, ErrorKind, Result};

/// What was read and changed in the graph.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(super) nodes: BTreeMap<Place, NodeState>,
    /// By subject and key of the edge.
    pub(super) edges: BTreeMap<(Place, String), EdgeChange>,
    /// Whether entries are left for later, because there are too many of them.
    pub(super) defers_entries: bool,
}

/// An entity that the body has touched.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    /// As it was read; `None` if it was not read, and inside that if it was not there.
    pub(super) read: Option<Option<Stored>>,
    /// Whether the outcome depends on its attributes, or on its absence.
    pub(super) is_watched: bool,
    /// Whether the outcome depends on its outgoing edges.
    pub(super) is_list_watched: bool,
    /// Whether its outgoing edges change.
    pub(super) is_list_changed: bool,
    pub(super) write: Write,
    /// Its entries in the indexes, where a plan has asked for them.
    indexed: Option<Indexed>,
}

/// What is to become of an entity.
#[derive(Debug, Default)]
pub(super) enum Write {
    #[default]
    Nothing,
    Create(Node),
    Update(Node),
    Delete,
}

/// What is to become of an edge.
#[derive(Debug)]
pub(super) struct EdgeChange {
    pub(super) edge: Edge,
    pub(super) kind: EdgeChangeKind,
    /// Whether what is stored of it refuses the deletion of its object.
    was_holding: bool,
}

/// What becomes of an edge, and by how much the number of edges changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeChangeKind {
    /// It is new.
    Add = 1,
    /// It is there, and its attributes change.
    Rewrite = 0,
    /// It is there, and goes.
    Remove = -1,
}

impl Changes {
    pub(super) fn state(&mut self, place: &Place) -> &mut NodeState {
        self.nodes.entry(place.clone()).or_default()
    }

    /// The entity with all that the body has done to it; `None` if it has to be read, and inside that if it is not there.
    pub(super) fn known(&self, place: &Place) -> Option<Option<Stored>> {
        let state = self.nodes.get(place)?;
        let read = state.read.as_ref().map(Option::as_ref);
        Some(match (&state.write, read) {
            (Write::Delete, _) => None,
            (Write::Create(node), _) => Some(created(node)),
            (Write::Update(node), Some(Some(stored))) => Some(Stored {
                node: node.clone(),
                ..stored.clone()
            }),
            (_, read) => read?.filter(|stored| !stored.is_leaving).cloned(),
        })
    }

    /// An entity that was read while its deletion was under way.
    pub(super) fn leaving(&self, place: &Place) -> Option<&Stored> {
        let read = self.nodes.get(place)?.read.as_ref()?.as_ref();
        read.filter(|stored| stored.is_leaving)
    }

    /// Takes note of what was read. What was read first counts.
    pub(super) fn settle(&mut self, place: &Place, read: Option<Stored>) {
        self.state(place).read.get_or_insert(read);
    }

    /// Takes note that the outcome depends on an entity.
    pub(super) fn watch(&mut self, place: &Place) {
        self.state(place).is_watched = true;
    }

    /// # Errors
    ///
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) when it is there, as far as is known.
    pub(super) fn create(&mut self, place: &Place, node: Node) -> Result<()> {
        if matches!(self.state(place).write, Write::Delete) {
            let what = "the transaction deletes this entity";
            return Err(place.error(ErrorKind::InvalidUse, what));
        }
        if self.known(place).flatten().is_some() {
            return Err(exists(place));
        }
        self.state(place).set(Write::Create(node));
        Ok(())
    }

    /// Sets the attributes of an entity that is there.
    pub(super) fn update(&mut self, place: &Place, node: Node) {
        let state = self.state(place);
        state.is_watched = true;
        state.set(match state.write {
            Write::Create(_) => Write::Create(node),
            _ => Write::Update(node),
        });
    }

    pub(super) fn delete(&mut self, place: &Place) {
        let state = self.state(place);
        (state.is_watched, state.is_list_watched) = (true, true);
        state.set(Write::Delete);
    }

    /// Takes note that the outcome depends on the outgoing edges of an entity.
    pub(super) fn watch_list(&mut self, place: &Place) {
        self.state(place).is_list_watched = true;
    }

    pub(super) fn is_created(&self, place: &Place) -> bool {
        let state = self.nodes.get(place);
        state.is_some_and(|state| matches!(state.write, Write::Create(_)))
    }

    /// Adds, rewrites or removes an edge.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when its key is too long.
    pub(super) fn change_edge(
        &mut self,
        subject: Place,
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

    /// How many stored edges of a list the body removes.
    pub(super) fn removed(&self, subject: &Place, predicate: &str) -> usize {
        let own = self.edges.iter().filter(|((of, _), change)| {
            of == subject
                && change.edge.predicate == predicate
                && change.kind == EdgeChangeKind::Remove
        });
        own.count()
    }

    /// The outgoing edges of a subject as the body sees them, given those that are stored.
    pub(super) fn outgoing(
        &self,
        subject: &Place,
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

    /// The incoming edges of an object as the body sees them, given those that are stored.
    pub(super) fn incoming(&self, object: &Place, stored: Vec<Edge>) -> Vec<Edge> {
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

    /// By how much the number of stored edges to an entity changes.
    pub(super) fn incoming_change(&self, object: &EntityKey, scope: &str) -> (i64, i64) {
        let own = self.changes_to(object, scope);
        own.fold((0, 0), |(all, held), change| {
            let is_holding = change.kind != EdgeChangeKind::Remove && change.edge.is_holding;
            let holds = i64::from(is_holding) - i64::from(change.was_holding);
            (all + change.kind as i64, held + holds)
        })
    }

    /// Leaves the entries of an entity for later if they do not fit into a commit of so many items that writes the entity
    /// alone. Returns whether it does so.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when a function cannot read the entity.
    pub(super) fn defer_entries(
        &mut self,
        schema: &GraphSchema,
        place: &Place,
        items_max: usize,
    ) -> Result<bool> {
        let state = self.state(place);
        let indexed = state.index(schema, place)?;
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

    /// What must be written so that the indexes hold what the entity is to be.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when a function cannot read the entity.
    pub(super) fn index(&self, schema: &GraphSchema, place: &Place) -> Result<Indexed> {
        if let Some(indexed) = &self.indexed {
            return Ok(indexed.clone());
        }
        let read = self.read.as_ref().and_then(Option::as_ref);
        match &self.write {
            Write::Create(node) => index_entries(schema, place, None, Some(node)),
            Write::Update(node) => index_entries(schema, place, read, Some(node)),
            Write::Delete => index_entries(schema, place, read, None),
            Write::Nothing => Ok(Indexed::default()),
        }
    }
}

fn created(node: &Node) -> Stored {
    Stored {
        node: node.clone(),
        version: 0,
        edges: 0,
        incoming: 0,
        held: 0,
        is_leaving: false,
        busy: None,
        is_behind: false,
        has_meta: true,
        entries: crate::graph::stored::Entries::new(),
    }
}

pub(super) fn exists(place: &Place) -> Error {
    place.error(ErrorKind::AlreadyExists, "the entity exists already")
}
