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
//! [`Tx::graph`](crate::Tx::graph) makes the same calls part of a larger one, beside models and streams. What was read there is checked
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
//! | `node`, `keys` | entities, typed and dynamic; what names them, and keys of indexes |
//! | `schema` | what a database knows of its graph: relations, indexes, names of tables |
//! | `stored`, `reads` | the attributes of the items; the requests that read them |
//! | `changes`, `compile` | what an attempt did; the conditional writes that it becomes |
//! | `handle`, `work`, `view` | [`Graph`]; a change as part of a transaction; what a call sees |
//! | `entity`, `list`, `delete` | changing entities, the edges of a subject, and deleting both |
//! | `query` | all of a type, lookups in indexes, includes, referrers |
//! | `index` | whether an index is complete, and how it is made so |
//! | `steps`, `resume` | what is wider than a transaction |
//! | `check` | whether the three tables agree, and making them |

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
mod work;
mod writes;

pub use check::{Difference, InSteps, Report};
pub use delete::{Deleted, Progress};
pub use handle::Graph;
pub use index::Rebuilding;
pub use keys::{Borrowed, EntityKey, Id, IndexKey, ToId, ToIndexKey};
pub use list::{List, Related};
pub use node::{Entity, FromNode, Node, ToKey, ToNode};
pub use query::{All, Include, Included, IncludedEdge, IndexEntry, Lookup, Referrer, Referrers};
pub use schema::{Emit, GraphSchema, IndexDef, MapIndex, OnDelete, Relation, RelationDef};
pub use stored::Edge;
