//! Relations: the meaning of edges, and the rules for deletions.

use std::any::TypeId;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attribute::Invalid;
use crate::attribute::document::Json;
use crate::error::{Error, Result};
use crate::graph::node::Entity;
use crate::graph::stored::Edge;

/// A kind of edge between two types of entities.
///
/// ```
/// use floe::Entity;
/// use floe::graph::{OnDelete, Relation};
///
/// #[derive(Entity)]
/// struct Author { id: String, name: String }
///
/// #[derive(Entity)]
/// struct Article { id: String, title: String }
///
/// /// The articles of an author, in listing order. They are deleted with the author.
/// enum Wrote {}
///
/// impl Relation for Wrote {
///     const PREDICATE: &'static str = "wrote";
///     type Subject = Author;
///     type Object = Article;
///     type Attributes = ();
///     const OWNS: bool = true;
/// }
///
/// /// The articles that an article cites. A cited article cannot be deleted.
/// enum Cites {}
///
/// impl Relation for Cites {
///     const PREDICATE: &'static str = "cites";
///     type Subject = Article;
///     type Object = Article;
///     type Attributes = ();
///     const ON_DELETE: OnDelete = OnDelete::Restrict;
/// }
/// ```
pub trait Relation: 'static {
    /// The predicate of the edges.
    const PREDICATE: &'static str;

    /// The type of the subjects.
    type Subject: Entity;

    /// The type of the objects.
    type Object: Entity;

    /// The attributes of an edge; `()` for none.
    type Attributes: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// What happens to the edges when their object is deleted.
    const ON_DELETE: OnDelete = OnDelete::Detach;

    /// Whether the objects of a subject are deleted with it.
    const OWNS: bool = false;
}

/// Attributes that an edge may lack: `()`, for relations without attributes, and those of untyped lists. Only for such
/// lists are there calls without attributes, like [`link`](crate::graph::List::link).
#[diagnostic::on_unimplemented(
    message = "the edges of this relation have attributes",
    label = "the call sets no attributes",
    note = "call the method whose name ends in `_with`: `link_with`, `link_at_with`, `link_once_with`, `append_with`, \
            `replace_with`"
)]
pub trait WithoutAttributes: sealed::Sealed {}

impl WithoutAttributes for () {}

impl WithoutAttributes for Json {}

mod sealed {
    /// Only the graph implements it.
    pub trait Sealed {}

    impl Sealed for () {}

    impl Sealed for super::Json {}
}

/// What happens when an entity with incoming edges is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDelete {
    /// The edges are removed.
    #[default]
    Detach,
    /// The deletion is refused.
    Restrict,
    /// The subjects of the edges are deleted as well.
    Cascade,
}

/// The definition of a relation: from a [`Relation`], or untyped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelationDef {
    /// The type of the subjects.
    pub subject_type: String,
    /// The predicate of the edges.
    pub predicate: String,
    /// The type of the objects.
    pub object_type: String,
    /// What happens to the edges when their object is deleted.
    pub on_delete: OnDelete,
    /// Whether the objects of a subject are deleted with it.
    pub owns: bool,
    /// The attributes of its edges; `None` if it is untyped and they are not checked.
    attributes: Option<EdgeAttributes>,
}

/// The type of the attributes of a relation.
#[derive(Clone, Copy)]
struct EdgeAttributes {
    id: TypeId,
    name: &'static str,
    check: fn(&Edge) -> Result<()>,
}

impl PartialEq for EdgeAttributes {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for EdgeAttributes {}

impl fmt::Debug for EdgeAttributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl RelationDef {
    /// Defines a relation whose edges are removed when their object is deleted.
    pub fn new(
        subject_type: impl Into<String>,
        predicate: impl Into<String>,
        object_type: impl Into<String>,
    ) -> Self {
        Self {
            subject_type: subject_type.into(),
            predicate: predicate.into(),
            object_type: object_type.into(),
            on_delete: OnDelete::Detach,
            owns: false,
            attributes: None,
        }
    }

    /// Returns the definition of a [`Relation`].
    pub fn of<R: Relation>() -> Self {
        Self {
            on_delete: R::ON_DELETE,
            owns: R::OWNS,
            attributes: Some(EdgeAttributes {
                id: TypeId::of::<R::Attributes>(),
                name: std::any::type_name::<R::Attributes>(),
                check: |edge| edge.read_attributes::<R::Attributes>().map(drop),
            }),
            ..Self::new(R::Subject::TYPE, R::PREDICATE, R::Object::TYPE)
        }
    }

    /// Sets what happens when an object is deleted.
    #[must_use]
    pub const fn on_delete(mut self, on_delete: OnDelete) -> Self {
        self.on_delete = on_delete;
        self
    }

    /// Deletes the objects of a subject with it.
    #[must_use]
    pub const fn owns(mut self) -> Self {
        self.owns = true;
        self
    }

    /// Whether this declaration, typed or untyped, declares a relation.
    pub(crate) fn declares(&self, relation: &Self) -> bool {
        // An untyped declaration fits any type of attributes.
        let attributes = self.attributes.and(relation.attributes);
        let wanted = Self {
            attributes,
            ..relation.clone()
        };
        *self == wanted
    }

    /// Rejects an edge with attributes that typed calls could not read.
    pub(crate) fn check_attributes(&self, edge: &Edge) -> Result<()> {
        let Some(attributes) = &self.attributes else {
            return Ok(());
        };
        (attributes.check)(edge).map_err(|error| unreadable(edge, attributes.name, &error))
    }
}

fn unreadable(edge: &Edge, expected: &str, error: &Error) -> Error {
    let what = "the attributes of the edge do not match its relation: pass those that it declares";
    let (subject, object, reason) = (&edge.subject, &edge.object, error.to_string());
    let reason =
        format!("{what}: subject={subject} object={object} expected={expected} reason={reason:?}");
    Error::invalid("edge", &edge.predicate, &Invalid::new(reason))
}
