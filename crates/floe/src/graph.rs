//! The entity graph: entities in scopes, ordered relationships, and indexes made by functions.
//!
//! ```
//! use floe::graph::{Emit, GraphSchema, Include, MapIndex, Relation};
//! use floe::{Db, Entity, Error};
//!
//! #[derive(Clone, Debug, PartialEq, Entity)]
//! struct Author {
//!     id: String,
//!     name: String,
//! }
//!
//! #[derive(Clone, Debug, PartialEq, Entity)]
//! struct Article {
//!     id: String,
//!     title: String,
//!     tags: Vec<String>,
//! }
//!
//! /// What an author wrote, in the order in which it is listed.
//! enum Wrote {}
//!
//! impl Relation for Wrote {
//!     const PREDICATE: &'static str = "wrote";
//!     type Subject = Author;
//!     type Object = Article;
//!     type Attributes = ();
//! }
//!
//! /// Articles by their tags.
//! enum ByTag {}
//!
//! impl MapIndex for ByTag {
//!     type Of = Article;
//!     type Key = String;
//!     const NAME: &'static str = "by_tag";
//!
//!     fn map(article: &Article, emit: &mut Emit<String>) {
//!         article.tags.iter().for_each(|tag| emit.key(tag.to_lowercase()));
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?.with_graph(GraphSchema::new().relation::<Wrote>().index::<ByTag>());
//! db.ensure_graph().await?;
//! let graph = db.graph("library");
//!
//! let ann = Author { id: "ann".to_owned(), name: "Ann".to_owned() };
//! let rust = Article { id: "a-1".to_owned(), title: "Rust".to_owned(), tags: vec!["Code".to_owned()] };
//! graph.create(&ann).await?;
//! graph.create(&rust).await?;
//! graph.related::<Wrote>(&ann).link(&rust).await?;
//!
//! assert_eq!(graph.get::<Author>("ann").await?, Some(ann.clone()));
//! assert_eq!(graph.find::<ByTag>().eq("code").load().await?, [rust.clone()]);
//! let loaded = graph.include(&ann, &[Include::relation::<Wrote>()]).await?.expect("she is there");
//! assert_eq!(loaded.values::<Wrote>()?, [rust.clone()]);
//!
//! // The edge and the entry of the index go with the article.
//! graph.delete(&rust).await?;
//! assert!(graph.related::<Wrote>(&ann).keys().await?.is_empty());
//! assert!(graph.find::<ByTag>().eq("code").keys().await?.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # One change, one commit
//!
//! A call that changes something is one transaction: the entity, its entries in the indexes, the edges and what they join.
//! [`Tx::graph`] makes the same calls part of a larger one, beside models and streams. What was read there is checked
//! when it commits, and calls see what those before them have changed; queries of indexes, of referrers, of pages and of all
//! of a type tell what is committed.
//!
//! What is wider than a transaction is done in steps, and if it is interrupted, [`resume`](Graph::resume) ends it:
//!
//! - of a [deletion](Graph::delete), readers see nothing from its first step on;
//! - a [list](List) is seen on its way, but what stays in it is always there;
//! - an entity with very many [keys in indexes](MapIndex) is there with all its attributes at once, and found by each key
//!   when that is written.
//!
//! # What is stored
//!
//! Three tables: `entities_master`, `relationship_entries`, `index_entries`. `stored.rs` tells every attribute.
//! Attributes whose names begin with an underscore are the graph's own.
//!
//! # What is where
//!
//! | module | what it holds |
//! |---|---|
//! | [`node`] | entities, typed and dynamic |
//! | [`key`] | what names them, and keys of indexes |
//! | [`relation`], [`list`] | what edges mean; the edges of a subject and what they lead to |
//! | [`index`], [`lookup`], [`rebuild`] | functions that make indexes; finding by them; bringing them up to date |
//! | [`mod@include`], [`referrers`], [`all`] | an entity with what is around it; what leads to it; all of a type |
//! | [`jobs`] | deletions in steps |
//! | [`difference`] | whether the three tables agree, which [`Graph::check`] tells and [`Graph::repair`] mends |
//! | [`schema`] | what a database knows of its graph |

pub mod all;
pub(crate) mod changes;
mod check;
mod compile;
mod delete;
pub mod difference;
mod entities;
mod entries;
pub mod include;
pub mod index;
pub mod jobs;
pub mod key;
mod leaving;
pub mod list;
mod load;
pub mod lookup;
mod moment;
pub mod node;
mod order;
mod read;
mod rearrange;
pub mod rebuild;
pub mod referrers;
pub mod relation;
mod removal;
mod repair;
pub mod schema;
mod scopes;
mod steps;
mod stored;
#[doc(hidden)]
pub mod support;
mod wide_entries;
mod wide_list;
mod work;

use std::fmt;
use std::marker::PhantomData;

pub use all::All;
pub use difference::{Difference, InSteps, Report};
pub use include::{Include, Included, IncludedEdge};
pub use index::{Emit, IndexDef, MapIndex};
pub use jobs::{Deleted, Progress};
pub use key::{EntityKey, Id, IndexKey, ToId, ToIndexKey};
pub use list::{List, Related};
pub use lookup::{IndexEntry, Lookup};
pub use node::{Entity, FromNode, Node, ToKey, ToNode};
pub use rebuild::Rebuilding;
pub use referrers::Referrers;
pub use relation::{OnDelete, Relation, RelationDef};
pub use schema::GraphSchema;
pub use stored::Edge;

use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::model::document::Json;
use crate::tx::{Tx, TxOptions};
use jobs::Job;
use key::Place;
use read::Reads;
use work::{Done, Op};

/// How often a change is tried again because somebody else was faster.
const RETRIES: u32 = 50;
/// The first pause before that.
const PAUSE_MS_INITIAL: u64 = 2;
/// The longest pause before that.
const PAUSE_MS_MAX: u64 = 100;

/// The graph of a scope: see the [module](self). In a transaction, all calls are part of it.
#[derive(Clone)]
pub struct Graph<'tx> {
    db: Db,
    scope: String,
    tx: Option<&'tx Tx>,
}

impl Db {
    /// The graph of a scope. What is in one scope is not seen from another.
    pub fn graph(&self, scope: impl Into<String>) -> Graph<'static> {
        Graph {
            db: self.clone(),
            scope: scope.into(),
            tx: None,
        }
    }
}

impl Tx {
    /// The graph of a scope, as part of the transaction.
    pub fn graph(&self, scope: impl Into<String>) -> Graph<'_> {
        Graph {
            db: self.db().clone(),
            scope: scope.into(),
            tx: Some(self),
        }
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl<'tx> Graph<'tx> {
    /// The scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Deletes an entity, with its edges in both directions, its entries in the indexes, and what goes with it as its
    /// relations say. If that does not fit into one transaction it is done in steps, and the entity is gone for readers
    /// with the first of them.
    ///
    /// # Errors
    ///
    /// [`Restricted`](ErrorKind::Restricted) when a relation refuses it; in a transaction,
    /// [`TooLarge`](ErrorKind::TooLarge) when it does not fit.
    pub async fn delete(&self, key: &impl ToKey) -> Result<Deleted> {
        self.delete_with(key, |_| {}).await
    }

    /// As [`delete`](Self::delete), and tells how far it is, if it is done in steps.
    ///
    /// # Errors
    ///
    /// As for [`delete`](Self::delete).
    pub async fn delete_with(
        &self,
        key: &impl ToKey,
        progress: impl Fn(&Progress) + Send + Sync,
    ) -> Result<Deleted> {
        let key = key.to_key();
        match self.run(&Op::Delete(key.clone())).await {
            Ok(done) => Ok(Deleted {
                entities: done.count,
                edges: done.edges,
                kept: Vec::new(),
            }),
            Err(error) if error.kind() == ErrorKind::TooLarge && self.tx.is_none() => {
                let place = self.place(&key)?;
                Job::new(&self.db, &self.scope, &progress)
                    .delete(&place)
                    .await
            }
            Err(error) => Err(error),
        }
    }

    /// Ends what was begun in the scope and not ended: deletions, changes of lists, and entries of entities with very many,
    /// that take more than one transaction. Several may do so at once. Tells what was deleted.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) when the store cannot answer,
    /// [`TransactionFailed`](ErrorKind::TransactionFailed) when the index of reversed edges does not show all yet: try
    /// again later.
    pub async fn resume(&self, progress: impl Fn(&Progress) + Send + Sync) -> Result<Deleted> {
        self.check_outside()?;
        key::check_scope(&self.scope)?;
        self.resume_lists().await?;
        self.resume_entries().await?;
        Job::new(&self.db, &self.scope, &progress).resume().await
    }

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
                .and_then(|predicate| key::check_part("predicate", predicate).err()),
            predicate,
            types: PhantomData,
        }
    }

    /// What leads to an object, as far as the index of reversed edges knows.
    pub fn referrers(&self, object: &impl ToKey) -> Referrers<'_, 'tx> {
        Referrers::new(self, object.to_key())
    }

    /// Finds entities by an index.
    pub fn find<I: MapIndex>(&self) -> Lookup<'_, 'tx, I::Of, <I::Key as key::Borrowed>::Form> {
        Lookup::new(self, I::NAME)
    }

    /// Finds entities by the name of an index, without types.
    pub fn find_by(&self, index: &str) -> Lookup<'_, 'tx, Node, IndexKey> {
        Lookup::new(self, index)
    }

    /// The [entries](Lookup::entries) that are stored under the name of an index, for tools that do not have its function:
    /// the index need not be declared, and nobody asks whether it is complete.
    pub fn find_stored(&self, index: &str) -> Lookup<'_, 'tx, Node, IndexKey> {
        Lookup::stored(self, index)
    }

    /// All entities of a type, by when they were updated.
    pub fn all<E: Entity>(&self) -> All<'_, 'tx, E> {
        All::new(self, E::TYPE)
    }

    /// All entities of a type, without a Rust type.
    pub fn all_of(&self, type_name: &str) -> All<'_, 'tx, Node> {
        All::new(self, type_name)
    }

    /// Brings an index up to date, while others go on reading and writing. Interrupted, it goes on where it was when it
    /// is called again. Where indexes of the store are behind at times, as in DynamoDB, all of the table of entities is
    /// read, so that nothing is missed.
    ///
    /// # Errors
    ///
    /// [`Conflict`](ErrorKind::Conflict) when the index is unique and two entities have the same key,
    /// [`InvalidUse`](ErrorKind::InvalidUse) when it is not declared.
    pub async fn rebuild<I: MapIndex>(
        &self,
        progress: impl Fn(&Rebuilding) + Send + Sync,
    ) -> Result<Rebuilding> {
        self.rebuild_by(I::NAME, progress).await
    }

    /// As [`rebuild`](Self::rebuild), by the name of the index.
    ///
    /// # Errors
    ///
    /// As for [`rebuild`](Self::rebuild).
    pub async fn rebuild_by(
        &self,
        index: &str,
        progress: impl Fn(&Rebuilding) + Send + Sync,
    ) -> Result<Rebuilding> {
        self.check_outside()?;
        key::check_scope(&self.scope)?;
        let index = self.db.graph_schema().index_named(index)?;
        rebuild::rebuild(&self.reads(), &self.scope, index, &progress).await
    }

    fn check_outside(&self) -> Result<()> {
        match self.tx {
            None => Ok(()),
            Some(_) => Err(Error::new(
                ErrorKind::InvalidUse,
                "this is done in many steps, which no transaction can hold",
            )),
        }
    }

    async fn run(&self, op: &Op<'_>) -> Result<Done> {
        if let Some(tx) = self.tx {
            return op.apply(tx, &self.scope).await;
        }
        self.options()
            .run(async |tx: &Tx| op.apply(tx, &self.scope).await)
            .await
    }

    /// How a call is made that is a transaction of its own.
    fn options(&self) -> TxOptions<'_> {
        let options = self.db.tx().retries(RETRIES).label("graph");
        options
            .initial_backoff_ms(PAUSE_MS_INITIAL)
            .max_backoff_ms(PAUSE_MS_MAX)
    }

    fn reads(&self) -> Reads<'_> {
        Reads {
            db: &self.db,
            tx: self.tx,
        }
    }

    fn place(&self, key: &EntityKey) -> Result<Place> {
        Place::new(&self.scope, key.clone())
    }
}
