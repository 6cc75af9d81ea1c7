//! Lists: the edges of a subject under a predicate, in order, and their objects.
//!
//! A change of a list has a [plan](plan): the new list. One of two executors applies the difference: one
//! [commit](commit), which may be the caller's, or [steps](steps), if it does not fit.

mod commit;
mod difference;
mod order;
mod plan;
mod record;
mod steps;

use std::fmt;
use std::marker::PhantomData;

use floe_store::Item;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::handle::Graph;
use super::keys::{self, EntityKey, ScopedKey};
use super::node::{FromNode, Node, ToKey, ToKeyOf};
use super::reads;
use super::schema::{Relation, WithoutAttributes};
use super::stored::{Edge, PREDICATE_KEY, SUBJECT_KEY};
use crate::attribute::document::Json;
use crate::cursor::Page;
use crate::error::{Error, ErrorKind, Result};
use commit::Change;
use plan::{ListChange, NewEdge};
pub use record::Record;

/// The edges of a subject under a predicate, in order; see [`Graph::related`].
pub struct List<'g, 'tx, O, A> {
    graph: &'g Graph<'tx>,
    subject: EntityKey,
    /// `None`: all predicates, read-only.
    predicate: Option<String>,
    /// The error of every call, if the list is invalid.
    invalid: Option<Error>,
    types: PhantomData<fn() -> (O, A)>,
}

/// An edge with its object.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Related<O, A = Json> {
    /// The edge.
    pub edge: Edge,
    /// The attributes of the edge.
    pub attributes: A,
    /// The object; `None` if it does not exist, which only happens if another program writes to the tables.
    pub object: Option<O>,
}

impl<'tx> Graph<'tx> {
    /// Returns the list of a subject's edges under a relation, in order.
    pub fn related<R: Relation>(
        &self,
        subject: &impl ToKeyOf<R::Subject>,
    ) -> List<'_, 'tx, R::Object, R::Attributes> {
        let schema = self.db.graph_schema();
        List {
            invalid: schema.check_relation::<R>().err(),
            ..self.list(subject, Some(R::PREDICATE.to_owned()))
        }
    }

    /// Returns the list of a subject's edges under a predicate, untyped. If relations are declared for the predicate,
    /// new edges must have the types and attributes of one of them.
    pub fn related_by(
        &self,
        subject: &impl ToKey,
        predicate: impl Into<String>,
    ) -> List<'_, 'tx, Node, Json> {
        self.list(subject, Some(predicate.into()))
    }

    /// Returns all edges of a subject, as a read-only list.
    pub fn related_all(&self, subject: &impl ToKey) -> List<'_, 'tx, Node, Json> {
        self.list(subject, None)
    }

    fn list<O, A>(&self, subject: &impl ToKey, predicate: Option<String>) -> List<'_, 'tx, O, A> {
        List {
            graph: self,
            subject: subject.to_key(),
            invalid: predicate
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
    /// Appends an object.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if the subject or the object does not exist. On an untyped list whose predicate
    /// has declared relations, [`InvalidUse`](ErrorKind::InvalidUse) if none of them has these types, and
    /// [`InvalidField`](ErrorKind::InvalidField) if its attributes cannot be missing.
    pub async fn link(&self, object: &impl ToKeyOf<O>) -> Result<()>
    where
        A: WithoutAttributes,
    {
        let new = NewEdge::plain(object);
        self.put(ListChange::Append(vec![new])).await
    }

    /// Appends an object, with attributes of the edge.
    ///
    /// # Errors
    ///
    /// As for [`link`](Self::link), and [`InvalidField`](ErrorKind::InvalidField) if the attributes are not a map from
    /// names to values that can be stored.
    pub async fn link_with(&self, object: &impl ToKeyOf<O>, attributes: &A) -> Result<()> {
        let new = NewEdge::with(object, attributes)?;
        self.put(ListChange::Append(vec![new])).await
    }

    /// Inserts an object at a position, counted from 0; at the end if the list is shorter.
    ///
    /// # Errors
    ///
    /// As for [`link`](Self::link).
    pub async fn link_at(&self, position: usize, object: &impl ToKeyOf<O>) -> Result<()>
    where
        A: WithoutAttributes,
    {
        let change = ListChange::Insert(position, NewEdge::plain(object));
        self.put(change).await
    }

    /// Inserts an object at a position like [`link_at`](Self::link_at), with attributes of the edge.
    ///
    /// # Errors
    ///
    /// As for [`link_with`](Self::link_with).
    pub async fn link_at_with(
        &self,
        position: usize,
        object: &impl ToKeyOf<O>,
        attributes: &A,
    ) -> Result<()> {
        let change = ListChange::Insert(position, NewEdge::with(object, attributes)?);
        self.put(change).await
    }

    /// Appends the objects that the list does not contain, in order, each once. Reads the whole list, and writes nothing
    /// if it contains all of them.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub async fn link_once<K: ToKeyOf<O>>(&self, objects: impl IntoIterator<Item = K>) -> Result<()>
    where
        A: WithoutAttributes,
    {
        self.put(ListChange::LinkOnce(plain(objects))).await
    }

    /// Appends the objects that the list does not contain like [`link_once`](Self::link_once), with attributes of each
    /// new edge. Present edges keep theirs.
    ///
    /// # Errors
    ///
    /// As for [`append_with`](Self::append_with).
    pub async fn link_once_with<K: ToKeyOf<O>>(
        &self,
        objects: impl IntoIterator<Item = (K, A)>,
    ) -> Result<()> {
        let new = with_attributes(objects)?;
        self.put(ListChange::LinkOnce(new)).await
    }

    /// Appends objects in order, also those that the list contains already.
    ///
    /// # Errors
    ///
    /// As for [`link`](Self::link). Objects that do not fit into one commit are added in steps, and readers see the
    /// list grow. In a transaction, or for some thousands, this is [`TooLarge`](ErrorKind::TooLarge).
    pub async fn append<K: ToKeyOf<O>>(&self, objects: impl IntoIterator<Item = K>) -> Result<()>
    where
        A: WithoutAttributes,
    {
        self.put(ListChange::Append(plain(objects))).await
    }

    /// Appends objects like [`append`](Self::append), with attributes of each edge.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append) and [`link_with`](Self::link_with).
    pub async fn append_with<K: ToKeyOf<O>>(
        &self,
        objects: impl IntoIterator<Item = (K, A)>,
    ) -> Result<()> {
        let new = with_attributes(objects)?;
        self.put(ListChange::Append(new)).await
    }

    /// Replaces the list. An edge to an object that stays keeps its attributes, and is not written if it keeps its
    /// order. A change that does not fit into one commit is made in steps: readers see edges appear and disappear one
    /// after the other, and all edges that remain.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    pub async fn replace<K: ToKeyOf<O>>(&self, objects: impl IntoIterator<Item = K>) -> Result<()>
    where
        A: WithoutAttributes,
    {
        self.put(ListChange::Replace(plain(objects))).await
    }

    /// Replaces the list like [`replace`](Self::replace), with attributes of each edge, also of those that stay.
    ///
    /// # Errors
    ///
    /// As for [`append_with`](Self::append_with).
    pub async fn replace_with<K: ToKeyOf<O>>(
        &self,
        objects: impl IntoIterator<Item = (K, A)>,
    ) -> Result<()> {
        let new = with_attributes(objects)?;
        self.put(ListChange::Replace(new)).await
    }

    /// Removes all edges to an object from the list. Returns their number.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) if the subject does not exist.
    pub async fn unlink(&self, object: &impl ToKeyOf<O>) -> Result<u64> {
        self.change(ListChange::Unlink(object.to_key())).await
    }

    /// Reorders the objects of the list. A change that does not fit into one commit is made in steps: readers see all
    /// objects, some of them at their old positions.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) unless these are exactly the objects of the list, each as often as the
    /// list contains it.
    pub async fn reorder<K: ToKeyOf<O>>(&self, objects: impl IntoIterator<Item = K>) -> Result<()> {
        let keys = objects.into_iter().map(|object| object.to_key());
        self.put(ListChange::Reorder(keys.collect())).await
    }

    /// Moves the object at one position to another.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if a position is beyond the end.
    pub async fn move_to(&self, from: usize, to: usize) -> Result<()> {
        self.put(ListChange::Move(from, to)).await
    }

    async fn put(&self, change: ListChange) -> Result<()> {
        self.change(change).await.map(drop)
    }

    /// Changes the list. Returns the number of removed edges.
    async fn change(&self, change: ListChange) -> Result<u64> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone());
        }
        let Some(predicate) = self.predicate.clone() else {
            let message = "the edges of all predicates are read-only: call related or related_by";
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

    /// Returns the edges in order, without their objects.
    ///
    /// One query; and if there are edges, another one that finds out which of their entities are being
    /// [deleted](Graph::delete) in steps, so that their edges are left out. Edges of entities whose deletion in steps has
    /// ended within the last ten minutes are read again, because it may have ended between the two queries. In a
    /// transaction, the removal of an edge because its object is deleted does not count as a change of the list.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if the store is unavailable.
    pub async fn keys(&self) -> Result<Vec<Edge>> {
        let edges = self.edges(&self.subject()?).await?;
        self.graph.hide_deleting(edges).await
    }

    /// Returns the edges with their objects, in order: one query, and one batch for each 100 objects.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if the store is unavailable, [`InvalidField`](ErrorKind::InvalidField) if an object
    /// or an edge does not match its type.
    pub async fn objects(&self) -> Result<Vec<Related<O, A>>> {
        let subject = self.subject()?;
        let edges = self.edges(&subject).await?;
        self.loaded(&subject, edges).await
    }

    async fn edges(&self, subject: &ScopedKey) -> Result<Vec<Edge>> {
        let predicate = self.predicate.as_deref();
        self.graph.outgoing(subject, predicate).await
    }

    /// Returns a page of edges with their objects, after a cursor if there is one.
    ///
    /// # Errors
    ///
    /// As for [`objects`](Self::objects), and [`InvalidCursor`](ErrorKind::InvalidCursor).
    pub async fn page(&self, limit: usize, after: Option<&str>) -> Result<Page<Related<O, A>>> {
        let subject = self.subject()?;
        let (reads, predicate) = (self.graph.reads(), self.predicate.as_deref());
        let query = reads::outgoing_query(reads.schema(), &subject, predicate);
        let query = query.consistent().limit(limit.max(1));
        let parameters = Item::new()
            .with("subject", subject.text())
            .with("predicate", predicate.unwrap_or_default());
        let names = [SUBJECT_KEY, PREDICATE_KEY];
        let (items, next) = reads.page_after(query, &parameters, after, &names).await?;
        let rows = self.loaded(&subject, reads::edges(&items)?).await?;
        Ok(Page { rows, next })
    }

    fn subject(&self) -> Result<ScopedKey> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone());
        }
        self.graph.scoped_key(&self.subject)
    }

    /// Loads the objects of the edges. Leaves out edges of entities under deletion.
    async fn loaded(&self, subject: &ScopedKey, edges: Vec<Edge>) -> Result<Vec<Related<O, A>>> {
        let joined = self.graph.join_ends(edges, subject, |edge| &edge.object);
        let (is_there, edges) = joined.await?;
        let rows = edges.into_iter().filter(|_| is_there);
        let rows = rows.map(|(edge, object)| {
            let object = object.map(O::from_node);
            Ok(Related {
                attributes: edge.read_attributes()?,
                object: object.transpose()?,
                edge,
            })
        });
        rows.collect()
    }
}

/// New edges without attributes.
fn plain<K: ToKey>(objects: impl IntoIterator<Item = K>) -> Vec<NewEdge> {
    let objects = objects.into_iter();
    objects.map(|object| NewEdge::plain(&object)).collect()
}

fn with_attributes<K: ToKey, A: Serialize>(
    objects: impl IntoIterator<Item = (K, A)>,
) -> Result<Vec<NewEdge>> {
    let objects = objects.into_iter();
    let new = objects.map(|(object, attributes)| NewEdge::with(&object, &attributes));
    new.collect()
}
