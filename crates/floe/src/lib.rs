//! Floe: a data layer for DynamoDB applications, embedded by default.
//!
//! ```
//! use floe::{Db, Error, Model};
//! use uuid::Uuid;
//!
//! #[derive(Model)]
//! struct Order {
//!     id: Uuid,
//!     product: String,
//!     #[model(min = 1)]
//!     quantity: u32,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_tables(&[Order::SCHEMA]).await?;
//!
//! let id = Uuid::from_u128(1);
//! db.transact(async |tx| {
//!     tx.create(Order { id, product: "coffee".to_owned(), quantity: 1 })?;
//!     Ok::<_, Error>(())
//! })
//! .await?;
//!
//! let quantity = db
//!     .transact(async |tx| {
//!         let mut order = tx.get::<Order>(id).await?.expect("just created");
//!         if order.product == "coffee" {
//!             order.quantity += 1;
//!         }
//!         Ok::<_, Error>(*order.quantity)
//!     })
//!     .await?;
//! assert_eq!(quantity, 2);
//! # Ok(())
//! # }
//! ```
//!
//! There is no `save`: when the body ends, what was changed is written, on the condition that nothing the
//! body has read was changed by somebody else meanwhile. Otherwise the body runs again. In the example that
//! is one read and one write: `SET quantity = 2` if the item exists, `product = "coffee"` and
//! `quantity = 1`.
//!
//! # What is where
//!
//! | module | what it holds |
//! |---|---|
//! | [`db`] | opening a database |
//! | [`model`] | what a struct becomes: its key, its row, its fields, its tables |
//! | [`tx`] | what a body can do, and how it is committed |
//! | [`cache`] | the read cache: eventual reads answered from memory |
//! | [`changes`] | what a commit leaves behind for others to act on: the outbox |
//! | [`error`] | the error, by what a caller can do about it |
//! | `http` | a transaction for each request of an HTTP server, with the feature `axum` |

#![forbid(unsafe_code)]

pub mod cache;
pub mod changes;
pub mod db;
pub mod error;
#[cfg(feature = "axum")]
pub mod http;
pub mod model;
pub mod tx;

pub use db::Db;
pub use error::{Error, ErrorKind, Result};
pub use floe_derive::Model;
pub use model::{Attribute, Field, Key, KeyField, Model};
pub use tx::Tx;
pub use tx::hooks::Outcome;
