//! Relations: the meaning of edges, and the rules for deletions.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::graph::node::Entity;

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
        }
    }

    /// Returns the definition of a [`Relation`].
    pub fn of<R: Relation>() -> Self {
        Self {
            on_delete: R::ON_DELETE,
            owns: R::OWNS,
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
}
