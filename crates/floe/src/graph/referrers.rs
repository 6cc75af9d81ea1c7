//! What leads to an entity: its incoming edges, as far as the index of reversed edges knows them.

use floe_store::expr::{Condition, Path};
use floe_store::{Item, Name, Value};

use super::Graph;
use super::key::{EntityKey, Place};
use super::node::{FromNode, Node};
use super::read;
use super::relation::Relation;
use super::stored::{Edge, INDEX, OBJECT_KEY, PREDICATE_KEY, SUBJECT_KEY};
use crate::error::Result;
use crate::model::query::Page;

const PREDICATE: Name = Name::new_static("_predicate");

/// What leads to an object: see [`Graph::referrers`].
#[derive(Clone, Debug)]
pub struct Referrers<'g, 'tx> {
    graph: &'g Graph<'tx>,
    object: EntityKey,
    predicate: Option<String>,
}

/// An edge with what it leads from.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Referrer<S> {
    /// The edge.
    pub edge: Edge,
    /// What it leads from; `None` if that is not there, which only happens where others write into the tables.
    pub subject: Option<S>,
}

impl<'g, 'tx> Referrers<'g, 'tx> {
    pub(super) const fn new(graph: &'g Graph<'tx>, object: EntityKey) -> Self {
        Self {
            graph,
            object,
            predicate: None,
        }
    }

    /// Only by this predicate.
    #[must_use]
    pub fn by(mut self, predicate: impl Into<String>) -> Self {
        self.predicate = Some(predicate.into());
        self
    }

    /// The edges, without what they lead from. As for [`List::keys`](super::List::keys), those of what is being deleted are
    /// left out.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer.
    pub async fn keys(&self) -> Result<Vec<Edge>> {
        self.graph.without_leaving(self.stored().await?).await
    }

    async fn stored(&self) -> Result<Vec<Edge>> {
        let object = self.graph.place(&self.object)?;
        let query = self.query(&object);
        read::edges(&self.graph.reads().query(query, None).await?)
    }

    /// The edges with what they lead from: one query, and one batch for each 100 subjects.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer.
    pub async fn subjects(&self) -> Result<Vec<Referrer<Node>>> {
        self.loaded(self.stored().await?).await
    }

    /// As [`subjects`](Self::subjects), of one relation and as values of their type.
    ///
    /// # Errors
    ///
    /// As for [`subjects`](Self::subjects).
    pub async fn of<R: Relation>(self) -> Result<Vec<Referrer<R::Subject>>> {
        let by = self.by(R::PREDICATE);
        by.loaded(by.stored().await?).await
    }

    /// A page of edges with what they lead from, behind a cursor if there is one.
    ///
    /// # Errors
    ///
    /// As for [`subjects`](Self::subjects), and [`InvalidCursor`](crate::ErrorKind::InvalidCursor).
    pub async fn page(&self, limit: usize, after: Option<&str>) -> Result<Page<Referrer<Node>>> {
        let object = self.graph.place(&self.object)?;
        let asked = Item::new()
            .with("object", object.text())
            .with("predicate", self.predicate.as_deref().unwrap_or_default());
        let cursors = self.graph.db.cursor_key();
        let mut query = self.query(&object).limit(limit.max(1));
        if let Some(after) = after {
            query.start_key = Some(cursors.open(&asked, after)?);
        }
        let page = self.graph.reads().page(&query).await?;
        let next = page.last_key.map(|last| {
            let names = [OBJECT_KEY, INDEX, SUBJECT_KEY, PREDICATE_KEY];
            cursors.seal(&asked, &last.pick(&names))
        });
        Ok(Page {
            rows: self.loaded(read::edges(&page.items)?).await?,
            next: next.transpose()?,
        })
    }

    fn query(&self, object: &Place) -> floe_store::op::Query {
        let mut query = read::incoming_query(self.graph.db.graph_schema(), object);
        query.filter = self.predicate.as_ref().map(|predicate| {
            let predicate = Value::from(predicate.as_str());
            Condition::eq(Path::attribute(PREDICATE), predicate)
        });
        query
    }

    async fn loaded<S: FromNode>(&self, edges: Vec<Edge>) -> Result<Vec<Referrer<S>>> {
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let subjects = edges.iter().map(|edge| self.graph.place(&edge.subject));
        let mut places: Vec<Place> = subjects.collect::<Result<_>>()?;
        let object = self.graph.place(&self.object)?;
        places.push(object.clone());
        let found = self.graph.load_places(&places).await?;
        if found.get(&object).is_some_and(|object| object.is_leaving) {
            return Ok(Vec::new());
        }
        let edges = self.graph.confirmed(edges, &found, |edge| &edge.subject);
        let mut rows = Vec::new();
        for edge in edges.await? {
            let stored = found.get(&self.graph.place(&edge.subject)?);
            if stored.is_some_and(|stored| stored.is_leaving) {
                continue;
            }
            let subject = stored.map(|stored| S::from_node(stored.node.clone()));
            let subject = subject.transpose()?;
            rows.push(Referrer { edge, subject });
        }
        Ok(rows)
    }
}
