//! The entity graph: entities in scopes, ordered relations between them, and indexes computed by functions.
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
//! /// The articles of an author, in listing order.
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
//! let loaded = graph.include(&ann, &[Include::relation::<Wrote>()]).await?.expect("the entity exists");
//! assert_eq!(loaded.values::<Wrote>()?, [rust.clone()]);
//!
//! // Deleting the article removes its edge and its index entry.
//! graph.delete(&rust).await?;
//! assert!(graph.related::<Wrote>(&ann).keys().await?.is_empty());
//! assert!(graph.find::<ByTag>().eq("code").keys().await?.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Changes and commits
//!
//! Each changing call is one transaction: it writes the entity, its index entries, its edges, and the entities at their
//! other ends. [`Tx::graph`](crate::Tx::graph) makes the same calls part of a larger transaction, together with models
//! and streams. The commit checks what the transaction read, and calls see the changes of earlier calls. Queries of
//! indexes, referrers, pages and all entities of a type return committed data only.
//!
//! A change that does not fit into one transaction is made in steps. If it is interrupted, the next writer of the same
//! entity completes it, and [`resume`](Graph::resume) completes all of a scope:
//!
//! - An entity under [deletion](Graph::delete) is invisible to readers from the first step.
//! - Readers see intermediate states of a [list](List), but edges that remain in it are always visible.
//! - An entity with very many [index keys](MapIndex) is visible at once with all attributes, and each key finds it as
//!   soon as its entry is written.
//!
//! # What is stored
//!
//! Three tables: `entities_master`, `relationship_entries`, `index_entries`. `stored.rs` defines all attributes.
//! Attribute names that begin with an underscore are reserved for the graph.
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | `node`, `keys` | entities, typed and dynamic; their keys, and index keys |
//! | `schema` | the graph schema of a database: relations, indexes, table names |
//! | `stored`, `reads` | the attributes of the items; the requests that read them |
//! | `changes`, `compile` | the changes of an attempt; the conditional writes they become |
//! | `handle`, `operation`, `view` | [`Graph`]; a change as part of a transaction; the data that a call sees |
//! | `entity`, `list`, `delete` | changes of entities, changes of a subject's edges, deletion of both |
//! | `query` | all entities of a type, index lookups, includes, referrers |
//! | `index` | whether an index is complete, and how it is rebuilt |
//! | `steps`, `resume` | wide changes |
//! | `check` | compares and repairs the three tables |

pub(crate) mod changes;
mod check;
mod compile;
mod delete;
mod entity;
mod entries;
mod handle;
mod index;
mod keys;
mod list;
mod node;
mod operation;
mod query;
mod reads;
mod resume;
mod schema;
mod steps;
mod stored;
#[doc(hidden)]
pub mod support;
mod telemetry;
mod view;
mod writes;

pub use check::{CheckReport, Difference, WideChange};
pub use delete::{Deleted, DeletionProgress};
pub use handle::Graph;
pub use index::IndexRebuild;
pub use keys::{EntityKey, Id, IndexKey, IndexKeyRef, ToId, ToIndexKey};
pub use list::{List, Record, Related};
pub use node::{Entity, FromNode, KeyOf, Node, ToKey, ToKeyOf, ToNode};
pub use query::{All, Include, Included, IncludedEdge, IndexEntry, Lookup, Referrer, Referrers};
pub use schema::{
    Emit, GraphSchema, IndexDef, MapIndex, OnDelete, Relation, RelationDef, WithoutAttributes,
};
pub use stored::Edge;
