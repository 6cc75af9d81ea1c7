//! Relations: what edges mean, and what becomes of them when what they join is deleted.

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
/// /// What an author wrote, in the order in which it is listed. Articles go with their author.
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
/// /// What an article is about. A subject that is cited cannot be deleted.
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
    /// What the edges say.
    const PREDICATE: &'static str;

    /// What they lead from.
    type Subject: Entity;

    /// What they lead to.
    type Object: Entity;

    /// What is told of each; `()` for nothing.
    type Attributes: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// What happens when an object is deleted to which such edges lead.
    const ON_DELETE: OnDelete = OnDelete::Detach;

    /// Whether the objects of a subject are deleted with it.
    const OWNS: bool = false;
}

/// What happens when an entity is deleted to which edges lead.
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

/// A relation as the graph knows it: of a [`Relation`], or described for data without types.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelationDef {
    /// The type that its edges lead from.
    pub subject_type: String,
    /// What they say.
    pub predicate: String,
    /// The type that they lead to.
    pub object_type: String,
    /// What happens when an object is deleted.
    pub on_delete: OnDelete,
    /// Whether the objects of a subject are deleted with it.
    pub owns: bool,
}

impl RelationDef {
    /// A relation that is detached when its object is deleted.
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

    /// The relation of this type.
    pub fn of<R: Relation>() -> Self {
        Self {
            on_delete: R::ON_DELETE,
            owns: R::OWNS,
            ..Self::new(R::Subject::TYPE, R::PREDICATE, R::Object::TYPE)
        }
    }

    /// Says what happens when an object is deleted.
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
