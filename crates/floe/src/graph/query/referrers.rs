//! Referrers of an entity: its incoming edges, from the index of reversed edges.

use std::marker::PhantomData;

use floe_store::expr::{Condition, Path};
use floe_store::{Item, Value};

use crate::cursor::Page;
use crate::error::Result;
use crate::graph::handle::Graph;
use crate::graph::keys::{EntityKey, ScopedKey};
use crate::graph::node::{Entity, FromNode, Node, ToKey, ToKeyOf};
use crate::graph::reads;
use crate::graph::schema::Relation;
use crate::graph::stored::{
    Edge, INDEX, OBJECT_KEY, PREDICATE, PREDICATE_KEY, SUBJECT_KEY, SUBJECT_TYPE,
};

/// A query of the referrers of an object, which is given as a `K`; see [`Graph::referrers`].
#[derive(Clone, Debug)]
pub struct Referrers<'g, 'tx, K> {
    graph: &'g Graph<'tx>,
    object: EntityKey,
    predicate: Option<String>,
    subject_type: Option<&'static str>,
    key: PhantomData<fn() -> K>,
}

/// An edge with its subject.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Referrer<S> {
    /// The edge.
    pub edge: Edge,
    /// The subject; `None` if it does not exist, which only happens if another program writes to the tables.
    pub subject: Option<S>,
}

impl<'tx> Graph<'tx> {
    /// Queries the referrers of an object, from the index of reversed edges, which may lag.
    pub fn referrers<K: ToKey>(&self, object: &K) -> Referrers<'_, 'tx, K> {
        Referrers {
            graph: self,
            object: object.to_key(),
            predicate: None,
            subject_type: None,
            key: PhantomData,
        }
    }
}

impl<K> Referrers<'_, '_, K> {
    /// Selects one predicate.
    #[must_use]
    pub fn by(mut self, predicate: impl Into<String>) -> Self {
        self.predicate = Some(predicate.into());
        self
    }

    /// Returns the edges without their subjects. Edges of entities under deletion are left out, as in
    /// [`List::keys`](crate::graph::List::keys).
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable.
    pub async fn keys(&self) -> Result<Vec<Edge>> {
        self.graph.hide_deleting(self.stored().await?).await
    }

    async fn stored(&self) -> Result<Vec<Edge>> {
        let object = self.graph.scoped_key(&self.object)?;
        let query = self.query(&object);
        reads::edges(&self.graph.reads().query(query, None).await?)
    }

    /// Returns the edges with their subjects: one query, and one batch for each 100 subjects.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable.
    pub async fn subjects(&self) -> Result<Vec<Referrer<Node>>> {
        self.loaded(self.stored().await?).await
    }

    /// Returns the referrers of one relation, with typed subjects, like [`subjects`](Self::subjects).
    ///
    /// # Errors
    ///
    /// As for [`subjects`](Self::subjects).
    pub async fn of<R: Relation>(self) -> Result<Vec<Referrer<R::Subject>>>
    where
        K: ToKeyOf<R::Object>,
    {
        let mut by = self.by(R::PREDICATE);
        by.subject_type = Some(R::Subject::TYPE);
        by.loaded(by.stored().await?).await
    }

    /// Returns a page of edges with their subjects, after a cursor if there is one.
    ///
    /// # Errors
    ///
    /// As for [`subjects`](Self::subjects), and [`InvalidCursor`](crate::ErrorKind::InvalidCursor).
    pub async fn page(&self, limit: usize, after: Option<&str>) -> Result<Page<Referrer<Node>>> {
        let object = self.graph.scoped_key(&self.object)?;
        let parameters = Item::new()
            .with("object", object.text())
            .with("predicate", self.predicate.as_deref().unwrap_or_default());
        let query = self.query(&object).limit(limit.max(1));
        let names = [OBJECT_KEY, INDEX, SUBJECT_KEY, PREDICATE_KEY];
        let reads = self.graph.reads();
        let (items, next) = reads.page_after(query, &parameters, after, &names).await?;
        Ok(Page {
            rows: self.loaded(reads::edges(&items)?).await?,
            next,
        })
    }

    fn query(&self, object: &ScopedKey) -> floe_store::op::Query {
        let mut query = reads::incoming_query(self.graph.db.graph_schema(), object);
        let is = |name, text: &str| Condition::eq(Path::attribute(name), Value::from(text));
        let predicate = self.predicate.as_deref().map(|text| is(PREDICATE, text));
        let subjects = self.subject_type.map(|text| is(SUBJECT_TYPE, text));
        query.filter = predicate.into_iter().chain(subjects).reduce(Condition::and);
        query
    }

    async fn loaded<S: FromNode>(&self, edges: Vec<Edge>) -> Result<Vec<Referrer<S>>> {
        let object = self.graph.scoped_key(&self.object)?;
        let joined = self.graph.join_ends(edges, &object, |edge| &edge.subject);
        let (_, edges) = joined.await?;
        let rows = edges.into_iter().map(|(edge, subject)| {
            let subject = subject.map(S::from_node).transpose()?;
            Ok(Referrer { edge, subject })
        });
        rows.collect()
    }
}
