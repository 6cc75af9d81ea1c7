//! Loads an entity with its related entities, several levels deep, in one call.
//!
//! The edges of different subjects are in different partitions, so each level takes one query for each of its entities
//! and relations; a limited number of them runs concurrently. Then all objects are read in batches of 100. An entity that
//! occurs several times on a level is read once, and its edges are queried once.
//!
//! Entities are read after all edges: so an entity that is deleted during the calls is left out together with its edges,
//! and is not returned with a part of them.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::BoxFuture;

use crate::concurrent;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::handle::Graph;
use crate::graph::keys::EntityKey;
use crate::graph::node::{Entity, FromNode, Node, ToKey};
use crate::graph::reads::REQUESTS_AT_ONCE;
use crate::graph::schema::Relation;
use crate::graph::stored::{Edge, EdgeName, StoredEntity};

/// A relation to follow; see [`Graph::include`].
#[derive(Clone, Debug)]
pub struct Include {
    predicate: String,
    /// The types of the subjects and the objects, if they are known.
    types: Option<(&'static str, &'static str)>,
    nested: Vec<Include>,
}

impl Include {
    /// Follows a relation.
    pub fn relation<R: Relation>() -> Self {
        Self {
            types: Some((R::Subject::TYPE, R::Object::TYPE)),
            ..Self::predicate(R::PREDICATE)
        }
    }

    /// Follows the edges of a predicate.
    pub fn predicate(predicate: impl Into<String>) -> Self {
        Self {
            predicate: predicate.into(),
            types: None,
            nested: Vec::new(),
        }
    }

    /// Follows another relation from the objects of this one.
    #[must_use]
    pub fn with(mut self, nested: Self) -> Self {
        self.nested.push(nested);
        self
    }

    /// Whether an entity of this type can have its edges.
    fn is_of(&self, type_name: &str) -> bool {
        self.types.is_none_or(|(subjects, _)| subjects == type_name)
    }
}

/// Rejects relations that subjects of a known type cannot have. Objects of an untyped relation may have several types.
fn check_types(follows: &[Include], subjects: Option<&str>) -> Result<()> {
    for follow in follows {
        if let (Some((expected, _)), Some(actual)) = (follow.types, subjects)
            && expected != actual
        {
            let what = "the included relation has subjects of another type";
            let predicate = &follow.predicate;
            let message =
                format!("{what}: predicate={predicate} expected={expected} actual={actual}");
            return Err(Error::new(ErrorKind::InvalidUse, message));
        }
        check_types(&follow.nested, follow.types.map(|(_, objects)| objects))?;
    }
    Ok(())
}

/// An entity with its included relations.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Included {
    /// The entity.
    pub node: Node,
    /// Its included edges by predicate, in order.
    pub related: BTreeMap<String, Vec<IncludedEdge>>,
}

/// An edge with its object.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IncludedEdge {
    /// The edge.
    pub edge: Edge,
    /// The object; `None` if it does not exist.
    pub object: Option<Included>,
}

impl Included {
    /// Converts the entity to its type.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if it does not match the type.
    pub fn entity<E: FromNode>(&self) -> Result<E> {
        E::from_node(self.node.clone())
    }

    /// Returns the edges of a predicate, if it was included.
    pub fn edges(&self, predicate: &str) -> &[IncludedEdge] {
        self.related.get(predicate).map_or(&[], Vec::as_slice)
    }

    /// Returns the existing objects of a relation, in order.
    pub fn objects<R: Relation>(&self) -> impl Iterator<Item = &Self> {
        let edges = self.edges(R::PREDICATE).iter();
        edges.filter_map(|edge| edge.object.as_ref())
    }

    /// Returns the objects of a relation as values of their type, in order. Missing objects are left out;
    /// [`edges`](Self::edges) includes them.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if an object does not match its type.
    pub fn values<R: Relation>(&self) -> Result<Vec<R::Object>> {
        let objects = self.objects::<R>();
        objects.map(|object| object.entity()).collect()
    }
}

/// A visited entity and its followed edges.
struct Visited<'i> {
    key: EntityKey,
    follows: &'i [Include],
    /// The predicate, the edge, and the index of its object among the visited entities.
    edges: Vec<(&'i str, Edge, usize)>,
}

/// A query of the edges of a subject.
type EdgesFuture<'a> = BoxFuture<'a, Result<Vec<Edge>>>;

/// Edges found by a query: the index of their subject, and how they are followed.
type FollowedEdges<'i> = (usize, &'i Include, Vec<Edge>);

impl Graph<'_> {
    /// Returns an entity with its related entities, several levels deep; `None` if it does not exist. One query for each
    /// entity with followed relations and each of these relations, and one batch for each 100 objects of all levels.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable, [`InvalidUse`](crate::ErrorKind::InvalidUse) if
    /// an included relation has subjects of another type.
    pub async fn include(&self, key: &impl ToKey, follows: &[Include]) -> Result<Option<Included>> {
        let root = self.scoped_key(&key.to_key())?;
        check_types(follows, Some(root.key.type_name()))?;
        // A transaction reads each subject before its edges, and its commit checks both.
        if self.tx.is_some() && self.load_entity(&root).await?.is_none() {
            return Ok(None);
        }
        let mut visited = vec![Visited {
            key: root.key.clone(),
            follows,
            edges: Vec::new(),
        }];
        let mut level = 0..1;
        while !level.is_empty() {
            let found = self.level(&visited, level.clone()).await?;
            let end = visited.len();
            visit(&mut visited, found);
            level = end..visited.len();
            if self.tx.is_some() {
                let keys = visited.iter().skip(end).map(|visited| &visited.key);
                self.load_entities(&self.scoped_keys(keys)?).await?;
            }
        }
        let Some(stored) = self.load_entity(&root).await? else {
            return Ok(None);
        };
        let tree = self.loaded(visited).await?;
        Ok(Some(tree.included(stored.node, 0)))
    }

    /// Queries the edges of a level.
    async fn level<'i>(
        &self,
        visited: &[Visited<'i>],
        level: std::ops::Range<usize>,
    ) -> Result<Vec<FollowedEdges<'i>>> {
        let mut queries: BTreeMap<(&EntityKey, &str), Vec<(usize, &'i Include)>> = BTreeMap::new();
        for at in level {
            let Some(Visited { key, follows, .. }) = visited.get(at) else {
                continue;
            };
            for follow in follows
                .iter()
                .filter(|follow| follow.is_of(key.type_name()))
            {
                let query = (key, follow.predicate.as_str());
                queries.entry(query).or_default().push((at, follow));
            }
        }
        let futures = queries
            .keys()
            .map(|(subject, predicate)| -> EdgesFuture<'_> {
                Box::pin(async move {
                    self.outgoing(&self.scoped_key(subject)?, Some(predicate))
                        .await
                })
            });
        let results = concurrent::run_all(REQUESTS_AT_ONCE, futures.collect()).await;
        let mut found = Vec::new();
        for (by, edges) in queries.into_values().zip(results) {
            let (by, edges) = (by.into_iter(), edges?);
            found.extend(by.map(|(at, follow)| (at, follow, edges.clone())));
        }
        // In the order of the visited subjects.
        found.sort_by_key(|(at, ..)| *at);
        Ok(found)
    }

    /// Loads the visited entities.
    async fn loaded<'i>(&self, visited: Vec<Visited<'i>>) -> Result<Tree<'i>> {
        let objects = visited.iter().skip(1).map(|visited| &visited.key);
        let loaded = self.load_entities(&self.scoped_keys(objects)?).await?;
        let loaded = loaded.into_iter();
        let loaded: BTreeMap<EntityKey, StoredEntity> = loaded
            .map(|(scoped_key, stored)| (scoped_key.key, stored))
            .collect();
        let edges = visited.iter().flat_map(|visited| &visited.edges);
        let edges = edges.map(|(_, edge, _)| edge);
        let missing = edges.filter(|edge| !loaded.contains_key(&edge.object));
        let removed = self.removed_edges(missing.cloned().collect()).await?;
        Ok(Tree {
            visited,
            loaded,
            removed,
        })
    }
}

/// Adds the objects of edges to the visited entities.
fn visit<'i>(visited: &mut Vec<Visited<'i>>, found: Vec<FollowedEdges<'i>>) {
    for (at, follow, edges) in found {
        for edge in edges {
            visited.push(Visited {
                key: edge.object.clone(),
                follows: &follow.nested,
                edges: Vec::new(),
            });
            let object = visited.len() - 1;
            if let Some(of) = visited.get_mut(at) {
                of.edges.push((&follow.predicate, edge, object));
            }
        }
    }
}

/// The visited entities and their attributes.
struct Tree<'i> {
    visited: Vec<Visited<'i>>,
    loaded: BTreeMap<EntityKey, StoredEntity>,
    /// The edges that were removed after they were read.
    removed: BTreeSet<EdgeName>,
}

impl Tree<'_> {
    /// The visited entity at this index, with its edges.
    fn included(&self, node: Node, at: usize) -> Included {
        let mut related = BTreeMap::new();
        if let Some(of) = self.visited.get(at) {
            let follows = of.follows.iter();
            related = follows
                .map(|follow| (follow.predicate.clone(), Vec::new()))
                .collect();
            for (predicate, edge, object) in &of.edges {
                let edges: &mut Vec<IncludedEdge> =
                    related.entry((*predicate).to_owned()).or_default();
                edges.extend(self.edge(edge, *object));
            }
        }
        Included { node, related }
    }

    /// An edge with its object; `None` if the object is under deletion, or was deleted since the edge was read.
    fn edge(&self, edge: &Edge, object: usize) -> Option<IncludedEdge> {
        let stored = self.loaded.get(&edge.object);
        if stored.is_some_and(|stored| stored.is_deleting) {
            return None;
        }
        if stored.is_none() && edge.name().is_ok_and(|name| self.removed.contains(&name)) {
            return None;
        }
        Some(IncludedEdge {
            edge: edge.clone(),
            object: stored.map(|stored| self.included(stored.node.clone(), object)),
        })
    }
}
