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
//! # What a commit depends on
//!
//! | what the body does with a field | what is sent | the commit fails if |
//! |---|---|---|
//! | reads it: `*order.quantity`, `order.quantity > 1` | | it has changed |
//! | changes it: `order.quantity += 1`, `set(3)?` | the new value | it has changed |
//! | adds to it: `order.quantity.increment_by(1)?` | the sum, made by the store | |
//! | `order.quantity.overwrite(3)?` | the new value | |
//! | looks at it: `order.quantity.peek()` | | |
//!
//! An item that was got must still be there, and one that was not there must still be missing. If nothing is
//! written, nothing is sent, unless [`verified`](tx::TxOptions::verified) asks that all that was read was true
//! at one moment. One item goes out as one write, several as one transaction.
//!
//! # Errors
//!
//! An [`Error`] has a [kind](ErrorKind) that tells what to do: fix the value (`InvalidField`), choose another
//! key (`AlreadyExists`), try later (`TransactionFailed`), look and decide (`OutcomeUnknown`). A body can
//! return an error of its own, if that can be made from [`Error`]; then nothing is written.
//!
//! ```
//! use floe::{Db, Error, Model};
//!
//! #[derive(Debug)]
//! enum ShopError { SoldOut, Floe(Error) }
//!
//! impl From<Error> for ShopError {
//!     fn from(error: Error) -> Self { Self::Floe(error) }
//! }
//!
//! #[derive(Model)]
//! struct Stock { #[model(key)] product: String, left: u32 }
//!
//! async fn sell(db: &Db, product: &str) -> Result<u32, ShopError> {
//!     db.transact(async |tx| {
//!         let mut stock = tx.get::<Stock>(product).await?.ok_or(ShopError::SoldOut)?;
//!         if stock.left == 0 {
//!             return Err(ShopError::SoldOut);
//!         }
//!         stock.left -= 1;
//!         Ok(*stock.left)
//!     })
//!     .await
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let db = Db::memory()?;
//! # db.ensure_tables(&[Stock::SCHEMA]).await?;
//! # assert!(matches!(sell(&db, "tea").await, Err(ShopError::SoldOut)));
//! # db.transact(async |tx| tx.create(Stock { product: "tea".to_owned(), left: 3 }).map(drop)).await?;
//! # assert!(matches!(sell(&db, "tea").await, Ok(2)));
//! # Ok(())
//! # }
//! ```
//!
//! # When the answer is lost
//!
//! Every commit has an id, which is stamped on each item that it writes (`_tx`). A transaction carries it as its
//! token, so sending it again applies it once. A plain write to a store without tokens, as DynamoDB is, is
//! settled by the stamp; where somebody else has written since, nobody can know, and the caller gets
//! `OutcomeUnknown` instead of a second run. [`exactly_once`](tx::TxOptions::exactly_once) rules that out.
//!
//! # What is where
//!
//! | module | what it holds |
//! |---|---|
//! | [`db`] | opening a database |
//! | [`attribute`] | what a field can hold, and how it is stored |
//! | [`tables`] | tables by their definitions: made in a store, or written as infrastructure code |
//! | [`model`] | what a struct becomes: its key, its row, its fields, its tables |
//! | [`model::query`] | finding items by key or index, and reading whole tables |
//! | [`tx`] | what a body can do, and how it is committed |
//! | [`cache`] | the read cache: eventual reads answered from memory |
//! | [`events`] | streams of events: what happened, and the states that follow from it |
//! | [`graph`] | entities, ordered relationships, and indexes made by functions |
//! | [`registry`] | numbered versions with a pointer to the latest, lists of what is deployed, expiry |
//! | [`changes`] | what a commit leaves behind for others to act on: the router of changes, the outbox |
//! | [`deploy`] | a template of CloudFormation: tables, functions of Lambda, their rights and alarms |
//! | [`error`] | the error, by what a caller can do about it |
//! | [`telemetry`] | spans and measurements, by OpenTelemetry's names, and their export |
//! | `http` | a transaction for each request of an HTTP server, with the feature `axum` |
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `aws` | `Db::connect`: Amazon DynamoDB, or anything that speaks its protocol |
//! | `aws-sso` | the same for profiles that sign in through IAM Identity Center |
//! | `axum` | `floe::http`: a transaction for each request |
//! | `eventbridge` | `db::EventBridge`: changes are put on a bus of Amazon EventBridge |
//! | `json-schema` | `#[model(json_schema = "..")]`: documents are checked against JSON Schema |
//! | `lambda` | `changes::lambda::run`: a program is a function of AWS Lambda |
//! | `otlp` | `telemetry::otlp`: spans and measurements are sent to a collector of OpenTelemetry |
//! | `webhook` | `changes::sink::Webhook`: changes are posted to a server |
//! | `zstd` | `events::Compression::Zstd`: bodies of events that are compressed with zstd are written and read |

#![forbid(unsafe_code)]

#[macro_use]
mod setters;

pub mod attribute;
#[cfg(doctest)]
mod book;
pub mod cache;
pub mod changes;
mod cursor;
pub mod db;
mod delivery;
pub mod deploy;
pub mod error;
pub mod events;
pub mod graph;
#[cfg(feature = "axum")]
pub mod http;
#[cfg(any(feature = "otlp", feature = "webhook"))]
mod https;
mod key;
mod lock;
pub mod model;
pub mod registry;
mod request;
mod settings;
mod side_by_side;
pub mod tables;
pub mod telemetry;
pub mod tx;
mod watched;

pub use attribute::Attribute;
pub use db::Db;
pub use error::{Error, ErrorItem, ErrorKind, Result};
pub use events::Event;
pub use floe_derive::{Entity, Event, Model, Registry};
pub use graph::Entity;
pub use model::{Field, Key, KeyField, Model};
pub use registry::Registry;
pub use tx::Tx;
pub use tx::hooks::Outcome;

/// The programs in the READMEs compile.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
