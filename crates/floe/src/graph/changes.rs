//! What a transaction has read and changed in the graph, until it commits.
//!
//! Every entity that a body touches has a [state](NodeState), every edge that it adds or removes a [change](EdgeChange).
//! Reading goes through here, so a body sees its own changes. `compile.rs` makes the writes of the commit of it.

use std::collections::BTreeMap;

use super::compile::GraphPart;
use super::key::{EntityKey, Place};
use super::node::Node;
use super::stored::{Edge, Stored};
use crate::error::{Error, ErrorKind, Result};
use crate::tx::part::Part;
use crate::tx::session::{self, PartContext, Session};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeChangeKind {
    /// It is new.
    Add,
    /// It is there, and its attributes change.
    Rewrite,
    /// It is there, and goes.
    Remove,
}

/// An entity as the body sees it.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// It has to be read.
    Unread,
    Absent,
    Present(Box<Stored>),
}

impl Changes {
    pub(super) fn state(&mut self, place: &Place) -> &mut NodeState {
        self.nodes.entry(place.clone()).or_default()
    }

    /// The entity with all that the body has done to it.
    pub(super) fn known(&self, place: &Place) -> Known {
        let Some(state) = self.nodes.get(place) else {
            return Known::Unread;
        };
        let read = state.read.as_ref().map(Option::as_ref);
        match (&state.write, read) {
            (Write::Delete, _) => Known::Absent,
            (Write::Create(node), _) => Known::Present(Box::new(created(node))),
            (Write::Update(node), Some(Some(stored))) => Known::Present(Box::new(Stored {
                node: node.clone(),
                ..stored.clone()
            })),
            (_, Some(Some(stored))) if !stored.is_leaving => {
                Known::Present(Box::new(stored.clone()))
            }
            (_, Some(_)) => Known::Absent,
            (_, None) => Known::Unread,
        }
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
        let is_deleted = matches!(self.state(place).write, Write::Delete);
        if is_deleted {
            return Err(Error::new(
                ErrorKind::InvalidUse,
                format!("the transaction deletes this entity: entity={place}"),
            ));
        }
        if let Known::Present(_) = self.known(place) {
            return Err(exists(place));
        }
        self.state(place).write = Write::Create(node);
        Ok(())
    }

    /// Sets the attributes of an entity that is there.
    pub(super) fn update(&mut self, place: &Place, node: Node) {
        let state = self.state(place);
        state.is_watched = true;
        state.write = match state.write {
            Write::Create(_) => Write::Create(node),
            _ => Write::Update(node),
        };
    }

    pub(super) fn delete(&mut self, place: &Place) {
        let state = self.state(place);
        (state.is_watched, state.is_list_watched) = (true, true);
        state.write = Write::Delete;
    }

    /// Takes note that the outcome depends on the outgoing edges of an entity.
    pub(super) fn watch_list(&mut self, place: &Place) {
        self.state(place).is_list_watched = true;
    }

    pub(super) fn is_created(&self, place: &Place) -> bool {
        let state = self.nodes.get(place);
        state.is_some_and(|state| matches!(state.write, Write::Create(_)))
    }

    /// Adds or rewrites an edge.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when its key is too long.
    pub(super) fn put_edge(&mut self, subject: &Place, edge: Edge, is_there: bool) -> Result<()> {
        self.state(subject).is_list_changed = true;
        let key = (subject.clone(), edge.predicate_key()?);
        let before = self.edges.get(&key);
        let kind = match before.map(|change| change.kind) {
            Some(EdgeChangeKind::Add) => EdgeChangeKind::Add,
            Some(_) => EdgeChangeKind::Rewrite,
            None if is_there => EdgeChangeKind::Rewrite,
            None => EdgeChangeKind::Add,
        };
        let was_holding = match before {
            Some(change) => change.was_holding,
            None => is_there && edge.is_holding,
        };
        let change = EdgeChange {
            edge,
            kind,
            was_holding,
        };
        self.edges.insert(key, change);
        Ok(())
    }

    /// Removes an edge that is there.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when its key is too long.
    pub(super) fn remove_edge(
        &mut self,
        scope: &str,
        edge: Edge,
        changes_list: bool,
    ) -> Result<()> {
        let subject = Place::new(scope, edge.subject.clone())?;
        self.state(&subject).is_list_changed |= changes_list;
        let key = (subject, edge.predicate_key()?);
        let kind = EdgeChangeKind::Remove;
        match self.edges.get(&key).map(|change| change.kind) {
            Some(EdgeChangeKind::Add) => {
                self.edges.remove(&key);
            }
            before => {
                let was_holding = match before {
                    Some(_) => self
                        .edges
                        .get(&key)
                        .is_some_and(|change| change.was_holding),
                    None => edge.is_holding,
                };
                let change = EdgeChange {
                    edge,
                    kind,
                    was_holding,
                };
                self.edges.insert(key, change);
            }
        }
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
        let own: Vec<_> = self
            .edges
            .iter()
            .filter(|((of, _), change)| {
                of.scope == object.scope && change.edge.object == object.key
            })
            .map(|(_, change)| change)
            .collect();
        let untouched = stored
            .into_iter()
            .filter(|edge| !own.iter().any(|change| is_same(edge, change)));
        let mut edges: Vec<Edge> = untouched.collect();
        let alive = own
            .iter()
            .filter(|change| change.kind != EdgeChangeKind::Remove);
        edges.extend(alive.map(|change| change.edge.clone()));
        edges
    }

    /// By how much the number of stored edges to an entity changes.
    pub(super) fn incoming_change(&self, object: &EntityKey, scope: &str) -> (i64, i64) {
        let own = self
            .edges
            .iter()
            .filter(|((of, _), change)| of.scope == scope && change.edge.object == *object);
        own.fold((0, 0), |(all, held), (_, change)| {
            let (by, is_holding) = match change.kind {
                EdgeChangeKind::Add => (1, change.edge.is_holding),
                EdgeChangeKind::Rewrite => (0, change.edge.is_holding),
                EdgeChangeKind::Remove => (-1, false),
            };
            let holds = i64::from(is_holding) - i64::from(change.was_holding);
            (all + by, held + holds)
        })
    }
}

impl session::Changes for Changes {
    fn into_parts(self, context: PartContext<'_>) -> Result<Vec<Box<dyn Part>>> {
        Ok(if self.nodes.is_empty() && self.edges.is_empty() {
            Vec::new()
        } else {
            vec![Box::new(GraphPart::new(&self, context.db, context.now))]
        })
    }
}

impl Session {
    /// Looks at what was read and changed in the graph, or adds to it.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the run has ended.
    pub(crate) fn graph<T>(&self, change: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        self.with(change)
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
        entries: super::stored::Entries::new(),
    }
}

pub(super) fn exists(place: &Place) -> Error {
    Error::new(
        ErrorKind::AlreadyExists,
        format!("the entity exists already: entity={place}"),
    )
}
