//! Lists: the edges of a subject under a predicate, in their order, and what they lead to.
//!
//! A change of a list has a [plan](plan): the list as it is to be. What differs is changed by one of two executors: in one
//! [commit](commit), which may be the caller's, or where it is more than fits into one, in [steps](steps).

mod commit;
mod difference;
mod order;
mod plan;
mod steps;

use std::fmt;
use std::marker::PhantomData;

use floe_store::{Item, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::handle::Graph;
use super::keys::{self, EntityKey, Place};
use super::node::{FromNode, Node, ToKey};
use super::reads;
use super::schema::Relation;
use super::stored::{Edge, PREDICATE_KEY, SUBJECT_KEY};
use crate::attribute::document::{self, Json};
use crate::cursor::Page;
use crate::error::{Error, ErrorKind, Result};
use commit::Change;
use plan::{ListChange, NewEdge};

/// The edges of a subject under a predicate, in their order: see [`Graph::related`].
pub struct List<'g, 'tx, O, A> {
    graph: &'g Graph<'tx>,
    subject: EntityKey,
    /// `None` for all, which can only be read.
    predicate: Option<String>,
    /// Why it cannot be used, if it cannot.
    refused: Option<Error>,
    types: PhantomData<fn() -> (O, A)>,
}

/// An edge with what it leads to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Related<O, A = Json> {
    /// The edge.
    pub edge: Edge,
    /// What is told of it.
    pub attributes: A,
    /// What it leads to; `None` if that is not there, which only happens where others write into the tables.
    pub object: Option<O>,
}

impl<'tx> Graph<'tx> {
    /// The edges of a subject under a relation, in their order.
    pub fn related<R: Relation>(
        &self,
        subject: &impl ToKey,
    ) -> List<'_, 'tx, R::Object, R::Attributes> {
        let schema = self.db.graph_schema();
        List {
            refused: schema.check_relation::<R>().err(),
            ..self.list(subject, Some(R::PREDICATE.to_owned()))
        }
    }

    /// The edges of a subject under a predicate, without types.
    pub fn related_by(
        &self,
        subject: &impl ToKey,
        predicate: impl Into<String>,
    ) -> List<'_, 'tx, Node, Json> {
        self.list(subject, Some(predicate.into()))
    }

    /// All edges of a subject, to be read.
    pub fn related_all(&self, subject: &impl ToKey) -> List<'_, 'tx, Node, Json> {
        self.list(subject, None)
    }

    fn list<O, A>(&self, subject: &impl ToKey, predicate: Option<String>) -> List<'_, 'tx, O, A> {
        List {
            graph: self,
            subject: subject.to_key(),
            refused: predicate
                .as_ref()
                .and_then(|predicate| keys::check_part("predicate", predicate).err()),
            predicate,
            types: PhantomData,
        }
    }
}

impl<O, A> fmt::Debug for List<'_, '_, O, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("subject", &self.subject)
            .field("predicate", &self.predicate)
            .finish_non_exhaustive()
    }
}

impl<O, A> List<'_, '_, O, A>
where
    O: FromNode,
    A: Serialize + DeserializeOwned,
{
    /// Adds an object at the end.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when the subject or the object is not there.
    pub async fn link(&self, object: &impl ToKey) -> Result<()> {
        let new = NewEdge::plain(object);
        self.put(ListChange::Append(vec![new])).await
    }

    /// Adds an object at the end, and tells something of the edge.
    ///
    /// # Errors
    ///
    /// As for [`link`](Self::link), and [`InvalidField`](ErrorKind::InvalidField) when the attributes are no map of names
    /// to values that can be stored.
    pub async fn link_with(&self, object: &impl ToKey, attributes: &A) -> Result<()> {
        let new = NewEdge::with(object, attributes)?;
        self.put(ListChange::Append(vec![new])).await
    }

    /// Adds an object before the one at this position, counted from 0; at the end if there are not so many.
    ///
    /// # Errors
    ///
    /// As for [`link`](Self::link).
    pub async fn link_at(&self, position: usize, object: &impl ToKey) -> Result<()> {
        let change = ListChange::Insert(position, NewEdge::plain(object));
        self.put(change).await
    }

    /// Adds objects at the end, in their order.
    ///
    /// # Errors
    ///
    /// As for [`link`](Self::link). More than fit into one commit are added in steps, and readers see the list grow; in a
    /// transaction, and for some thousands, that is [`TooLarge`](ErrorKind::TooLarge).
    pub async fn append<K: ToKey>(&self, objects: impl IntoIterator<Item = K>) -> Result<()> {
        let new = objects.into_iter().map(|object| NewEdge::plain(&object));
        self.put(ListChange::Append(new.collect())).await
    }

    /// Makes the list this one. Edges that stay in their order are not written. What does not fit into one commit is done in
    /// steps: readers see what is new come and what is gone go, and all that stays meanwhile.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub async fn replace<K: ToKey>(&self, objects: impl IntoIterator<Item = K>) -> Result<()> {
        let new = objects.into_iter().map(|object| NewEdge::plain(&object));
        self.put(ListChange::Replace(new.collect())).await
    }

    /// As [`replace`](Self::replace), and tells something of each edge.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub async fn replace_with<K: ToKey>(
        &self,
        objects: impl IntoIterator<Item = (K, A)>,
    ) -> Result<()> {
        let new = objects.into_iter();
        let new = new.map(|(object, attributes)| NewEdge::with(&object, &attributes));
        let new = new.collect::<Result<_>>()?;
        self.put(ListChange::Replace(new)).await
    }

    /// Removes an object from the list, wherever it stands. Tells how many edges there were.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when the subject is not there.
    pub async fn unlink(&self, object: &impl ToKey) -> Result<u64> {
        self.change(ListChange::Unlink(object.to_key())).await
    }

    /// Brings the objects of the list into this order. What does not fit into one commit is done in steps: readers see all
    /// objects, some of them at their old places.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when these are not the objects of the list, each as often as it stands there.
    pub async fn reorder<K: ToKey>(&self, objects: impl IntoIterator<Item = K>) -> Result<()> {
        let keys = objects.into_iter().map(|object| object.to_key());
        self.put(ListChange::Reorder(keys.collect())).await
    }

    /// Moves the object at one position to another.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when there are not so many.
    pub async fn move_to(&self, from: usize, to: usize) -> Result<()> {
        self.put(ListChange::Move(from, to)).await
    }

    async fn put(&self, change: ListChange) -> Result<()> {
        self.change(change).await.map(drop)
    }

    /// Changes the list. Returns how many edges are removed.
    async fn change(&self, change: ListChange) -> Result<u64> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        let Some(predicate) = self.predicate.clone() else {
            let message = "the edges of all predicates are no list that could be changed";
            return Err(Error::new(ErrorKind::InvalidUse, message));
        };
        let change = Change {
            subject: self.subject.clone(),
            predicate,
            change,
        };
        let steps = self.graph.change_in_steps(&change);
        let graph = self.graph;
        graph.run_or_step(&change, &self.subject, steps).await
    }

    /// The edges, in their order, without what they lead to.
    ///
    /// One query; and where there are edges, another that tells whether what they join is being
    /// [deleted](Graph::delete) in steps, so that they are left out. In a transaction, an edge that goes because its object
    /// is deleted does not count as a change of the list.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) when the store cannot answer.
    pub async fn keys(&self) -> Result<Vec<Edge>> {
        let edges = self.edges(&self.subject()?).await?;
        self.graph.without_leaving(edges).await
    }

    /// The edges with what they lead to, in their order: one query, and one batch for each 100 objects.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) when the store cannot answer, [`InvalidField`](ErrorKind::InvalidField) when an object
    /// or an edge is of another form.
    pub async fn objects(&self) -> Result<Vec<Related<O, A>>> {
        let subject = self.subject()?;
        let edges = self.edges(&subject).await?;
        self.loaded(&subject, edges).await
    }

    async fn edges(&self, subject: &Place) -> Result<Vec<Edge>> {
        let predicate = self.predicate.as_deref();
        self.graph.outgoing(subject, predicate).await
    }

    /// A page of edges with what they lead to, behind a cursor if there is one.
    ///
    /// # Errors
    ///
    /// As for [`objects`](Self::objects), and [`InvalidCursor`](ErrorKind::InvalidCursor).
    pub async fn page(&self, limit: usize, after: Option<&str>) -> Result<Page<Related<O, A>>> {
        let subject = self.subject()?;
        let (reads, predicate) = (self.graph.reads(), self.predicate.as_deref());
        let query = reads::outgoing_query(reads.schema(), &subject, predicate);
        let query = query.consistent().limit(limit.max(1));
        let asked = Item::new()
            .with("subject", subject.text())
            .with("predicate", predicate.unwrap_or_default());
        let names = [SUBJECT_KEY, PREDICATE_KEY];
        let (items, next) = reads.page_after(query, &asked, after, &names).await?;
        let rows = self.loaded(&subject, reads::edges(&items)?).await?;
        Ok(Page { rows, next })
    }

    fn subject(&self) -> Result<Place> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        self.graph.place(&self.subject)
    }

    /// What the edges lead to. Edges of what is being deleted are left out.
    async fn loaded(&self, subject: &Place, edges: Vec<Edge>) -> Result<Vec<Related<O, A>>> {
        let joined = self.graph.joined(edges, subject, |edge| &edge.object);
        let (is_there, edges) = joined.await?;
        let rows = edges.into_iter().filter(|_| is_there);
        let rows = rows.map(|(edge, object)| {
            let object = object.map(O::from_node);
            Ok(Related {
                attributes: read_attributes(&edge)?,
                object: object.transpose()?,
                edge,
            })
        });
        rows.collect()
    }
}

fn read_attributes<A: DeserializeOwned>(edge: &Edge) -> Result<A> {
    let map = Value::M(edge.attributes.clone());
    let mut read = document::from_value(Some(&map));
    if edge.attributes.is_empty() {
        read = read.or_else(|error| document::from_value(Some(&Value::Null)).map_err(|_| error));
    }
    read.map_err(|invalid| Error::invalid("edge", &edge.predicate, &invalid))
}
