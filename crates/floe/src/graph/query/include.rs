//! An entity with what it is related to, several levels deep, in one call.
//!
//! Edges of several subjects lie in several partitions, so a level takes one query for each of its entities and relations;
//! they are sent side by side, some at a time. What they lead to is read in batches of 100 that the whole level shares. An
//! entity that is met in several places of a level is read once, and its edges are asked for once.

use std::collections::BTreeMap;

use floe_store::BoxFuture;

use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::EntityKey;
use crate::graph::node::{FromNode, Node, ToKey};
use crate::graph::reads::REQUESTS_AT_ONCE;
use crate::graph::schema::Relation;
use crate::graph::stored::{Edge, Stored};
use crate::side_by_side;

/// A relation to follow: see [`Graph::include`].
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

    /// From what it leads to, follows another.
    #[must_use]
    pub fn with(mut self, nested: Self) -> Self {
        self.nested.push(nested);
        self
    }
}

/// An entity with what was included.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Included {
    /// The entity.
    pub node: Node,
    /// What it is related to, by predicate, in the order of the edges.
    pub related: BTreeMap<String, Vec<IncludedEdge>>,
}

/// An edge with what it leads to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IncludedEdge {
    /// The edge.
    pub edge: Edge,
    /// What it leads to; `None` if that is not there.
    pub object: Option<Included>,
}

impl Included {
    /// The entity as a value of its type.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is of another form.
    pub fn entity<E: FromNode>(&self) -> Result<E> {
        E::from_node(self.node.clone())
    }

    /// The edges of a predicate, if it was included.
    pub fn edges(&self, predicate: &str) -> &[IncludedEdge] {
        self.related.get(predicate).map_or(&[], Vec::as_slice)
    }

    /// What it is related to and is there, in the order of the edges.
    pub fn objects<R: Relation>(&self) -> impl Iterator<Item = &Self> {
        let edges = self.edges(R::PREDICATE).iter();
        edges.filter_map(|edge| edge.object.as_ref())
    }

    /// What it is related to as values of their type, in the order of the edges. What is not there is left out;
    /// [`edges`](Self::edges) tells it.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when one is of another form.
    pub fn values<R: Relation>(&self) -> Result<Vec<R::Object>> {
        let objects = self.objects::<R>();
        objects.map(|object| object.entity()).collect()
    }
}

/// An entity that was met, and where its edges lead.
struct Met<'i> {
    node: Node,
    follows: &'i [Include],
    /// The predicate, the edge, and the place of what it leads to among all that were met.
    edges: Vec<(&'i str, Edge, Option<usize>)>,
}

/// The edges of a subject, when they are there.
type Answer<'a> = BoxFuture<'a, Result<Vec<Edge>>>;

/// An edge that was found: who has it, and how it is followed.
type Found<'i> = (usize, &'i Include, Vec<Edge>);

impl Graph<'_> {
    /// An entity with what it is related to, several levels deep; `None` if it is not there.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer.
    pub async fn include(&self, key: &impl ToKey, follows: &[Include]) -> Result<Option<Included>> {
        let root = self.place(&key.to_key())?;
        let Some(stored) = self.load_place(&root).await? else {
            return Ok(None);
        };
        let mut met = vec![Met {
            node: stored.node,
            follows,
            edges: Vec::new(),
        }];
        let mut level = 0..1;
        while !level.is_empty() {
            let found = self.level(&met, level.clone()).await?;
            let end = met.len();
            self.meet(&mut met, found).await?;
            level = end..met.len();
        }
        Ok(tree(&met, 0))
    }

    /// The edges of a level.
    async fn level<'i>(
        &self,
        met: &[Met<'i>],
        level: std::ops::Range<usize>,
    ) -> Result<Vec<Found<'i>>> {
        let mut asked: BTreeMap<(&EntityKey, &str), Vec<(usize, &'i Include)>> = BTreeMap::new();
        for at in level {
            let Some(Met { node, follows, .. }) = met.get(at) else {
                continue;
            };
            for follow in *follows {
                let query = (&node.key, follow.predicate.as_str());
                asked.entry(query).or_default().push((at, follow));
            }
        }
        let queries = asked.keys().map(|(subject, predicate)| -> Answer<'_> {
            Box::pin(async move { self.outgoing(&self.place(subject)?, Some(predicate)).await })
        });
        let answers = side_by_side::all(REQUESTS_AT_ONCE, queries.collect()).await;
        let mut found = Vec::new();
        for (by, edges) in asked.into_values().zip(answers) {
            let (by, edges) = (by.into_iter(), edges?);
            found.extend(by.map(|(at, follow)| (at, follow, edges.clone())));
        }
        // In the order in which they were met.
        found.sort_by_key(|(at, ..)| *at);
        Ok(found)
    }

    /// Loads what edges lead to, and takes note of it.
    async fn meet<'i>(&self, met: &mut Vec<Met<'i>>, found: Vec<Found<'i>>) -> Result<()> {
        let edges = found.iter().flat_map(|(_, _, edges)| edges);
        let places = self.places(edges.map(|edge| &edge.object))?;
        let loaded = self.load_places(&places).await?;
        for (at, follow, edges) in found {
            let edges = self.confirmed(edges, &loaded, |edge| &edge.object);
            for edge in edges.await? {
                let stored = loaded.get(&self.place(&edge.object)?);
                if stored.is_some_and(|stored: &Stored| stored.is_leaving) {
                    continue;
                }
                let object = stored.map(|stored| {
                    met.push(Met {
                        node: stored.node.clone(),
                        follows: &follow.nested,
                        edges: Vec::new(),
                    });
                    met.len() - 1
                });
                if let Some(of) = met.get_mut(at) {
                    of.edges.push((&follow.predicate, edge, object));
                }
            }
        }
        Ok(())
    }
}

fn tree(met: &[Met<'_>], at: usize) -> Option<Included> {
    let of = met.get(at)?;
    let follows = of.follows.iter();
    let follows = follows.map(|follow| (follow.predicate.clone(), Vec::new()));
    let mut related: BTreeMap<String, Vec<IncludedEdge>> = follows.collect();
    for (predicate, edge, object) in &of.edges {
        let edges = related.entry((*predicate).to_owned()).or_default();
        edges.push(IncludedEdge {
            edge: edge.clone(),
            object: object.and_then(|object| tree(met, object)),
        });
    }
    let node = of.node.clone();
    Some(Included { node, related })
}
