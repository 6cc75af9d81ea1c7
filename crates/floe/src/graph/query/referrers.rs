//! What leads to an entity: its incoming edges, as far as the index of reversed edges knows them.

use floe_store::expr::{Condition, Path};
use floe_store::{Item, Value};

use crate::cursor::Page;
use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, Place};
use crate::graph::node::{FromNode, Node, ToKey};
use crate::graph::reads;
use crate::graph::schema::Relation;
use crate::graph::stored::{Edge, INDEX, OBJECT_KEY, PREDICATE, PREDICATE_KEY, SUBJECT_KEY};

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

impl<'tx> Graph<'tx> {
    /// What leads to an object, as far as the index of reversed edges knows.
    pub fn referrers(&self, object: &impl ToKey) -> Referrers<'_, 'tx> {
        Referrers {
            graph: self,
            object: object.to_key(),
            predicate: None,
        }
    }
}

impl Referrers<'_, '_> {
    /// Only by this predicate.
    #[must_use]
    pub fn by(mut self, predicate: impl Into<String>) -> Self {
        self.predicate = Some(predicate.into());
        self
    }

    /// The edges, without what they lead from. As for [`List::keys`](crate::graph::List::keys), those of what is being deleted are
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
        reads::edges(&self.graph.reads().query(query, None).await?)
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
        let query = self.query(&object).limit(limit.max(1));
        let names = [OBJECT_KEY, INDEX, SUBJECT_KEY, PREDICATE_KEY];
        let reads = self.graph.reads();
        let (items, next) = reads.page_after(query, &asked, after, &names).await?;
        Ok(Page {
            rows: self.loaded(reads::edges(&items)?).await?,
            next,
        })
    }

    fn query(&self, object: &Place) -> floe_store::op::Query {
        let mut query = reads::incoming_query(self.graph.db.graph_schema(), object);
        query.filter = self.predicate.as_ref().map(|predicate| {
            let predicate = Value::from(predicate.as_str());
            Condition::eq(Path::attribute(PREDICATE), predicate)
        });
        query
    }

    async fn loaded<S: FromNode>(&self, edges: Vec<Edge>) -> Result<Vec<Referrer<S>>> {
        let object = self.graph.place(&self.object)?;
        let joined = self.graph.joined(edges, &object, |edge| &edge.subject);
        let (_, edges) = joined.await?;
        let rows = edges.into_iter().map(|(edge, subject)| {
            let subject = subject.map(S::from_node).transpose()?;
            Ok(Referrer { edge, subject })
        });
        rows.collect()
    }
}
