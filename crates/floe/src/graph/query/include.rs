//! Loads an entity with its related entities, several levels deep, in one call.
//!
//! The edges of different subjects are in different partitions, so each level takes one query for each of its entities
//! and relations; a limited number of them runs concurrently. Their objects are read in batches of 100, shared by the
//! level. An entity that occurs several times on a level is read once, and its edges are queried once.

use std::collections::BTreeMap;

use floe_store::BoxFuture;

use crate::concurrent;
use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::EntityKey;
use crate::graph::node::{FromNode, Node, ToKey};
use crate::graph::reads::REQUESTS_AT_ONCE;
use crate::graph::schema::Relation;
use crate::graph::stored::{Edge, StoredEntity};

/// A relation to follow; see [`Graph::include`].
#[derive(Clone, Debug)]
pub struct Include {
    predicate: String,
    nested: Vec<Include>,
}

impl Include {
    /// Follows a relation.
    pub fn relation<R: Relation>() -> Self {
        Self::predicate(R::PREDICATE)
    }

    /// Follows the edges of a predicate.
    pub fn predicate(predicate: impl Into<String>) -> Self {
        Self {
            predicate: predicate.into(),
            nested: Vec::new(),
        }
    }

    /// Follows another relation from the objects of this one.
    #[must_use]
    pub fn with(mut self, nested: Self) -> Self {
        self.nested.push(nested);
        self
    }
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
    node: Node,
    follows: &'i [Include],
    /// The predicate, the edge, and the index of its object among the visited entities.
    edges: Vec<(&'i str, Edge, Option<usize>)>,
}

/// A query of the edges of a subject.
type EdgesFuture<'a> = BoxFuture<'a, Result<Vec<Edge>>>;

/// Edges found by a query: the index of their subject, and how they are followed.
type FollowedEdges<'i> = (usize, &'i Include, Vec<Edge>);

impl Graph<'_> {
    /// Returns an entity with its related entities, several levels deep; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable.
    pub async fn include(&self, key: &impl ToKey, follows: &[Include]) -> Result<Option<Included>> {
        let root = self.scoped_key(&key.to_key())?;
        let Some(stored) = self.load_entity(&root).await? else {
            return Ok(None);
        };
        let mut visited = vec![Visited {
            node: stored.node,
            follows,
            edges: Vec::new(),
        }];
        let mut level = 0..1;
        while !level.is_empty() {
            let found = self.level(&visited, level.clone()).await?;
            let end = visited.len();
            self.visit(&mut visited, found).await?;
            level = end..visited.len();
        }
        Ok(tree(&visited, 0))
    }

    /// Queries the edges of a level.
    async fn level<'i>(
        &self,
        visited: &[Visited<'i>],
        level: std::ops::Range<usize>,
    ) -> Result<Vec<FollowedEdges<'i>>> {
        let mut queries: BTreeMap<(&EntityKey, &str), Vec<(usize, &'i Include)>> = BTreeMap::new();
        for at in level {
            let Some(Visited { node, follows, .. }) = visited.get(at) else {
                continue;
            };
            for follow in *follows {
                let query = (&node.key, follow.predicate.as_str());
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

    /// Loads the objects of edges and adds them to the visited entities.
    async fn visit<'i>(
        &self,
        visited: &mut Vec<Visited<'i>>,
        found: Vec<FollowedEdges<'i>>,
    ) -> Result<()> {
        let edges = found.iter().flat_map(|(_, _, edges)| edges);
        let scoped_keys = self.scoped_keys(edges.map(|edge| &edge.object))?;
        let loaded = self.load_entities(&scoped_keys).await?;
        for (at, follow, edges) in found {
            let edges = self.confirmed(edges, &loaded, |edge| &edge.object);
            for edge in edges.await? {
                let stored = loaded.get(&self.scoped_key(&edge.object)?);
                if stored.is_some_and(|stored: &StoredEntity| stored.is_deleting) {
                    continue;
                }
                let object = stored.map(|stored| {
                    visited.push(Visited {
                        node: stored.node.clone(),
                        follows: &follow.nested,
                        edges: Vec::new(),
                    });
                    visited.len() - 1
                });
                if let Some(of) = visited.get_mut(at) {
                    of.edges.push((&follow.predicate, edge, object));
                }
            }
        }
        Ok(())
    }
}

fn tree(visited: &[Visited<'_>], at: usize) -> Option<Included> {
    let of = visited.get(at)?;
    let follows = of.follows.iter();
    let follows = follows.map(|follow| (follow.predicate.clone(), Vec::new()));
    let mut related: BTreeMap<String, Vec<IncludedEdge>> = follows.collect();
    for (predicate, edge, object) in &of.edges {
        let edges = related.entry((*predicate).to_owned()).or_default();
        edges.push(IncludedEdge {
            edge: edge.clone(),
            object: object.and_then(|object| tree(visited, object)),
        });
    }
    let node = of.node.clone();
    Some(Included { node, related })
}
