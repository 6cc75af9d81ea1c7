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
//! There is no `save`: when the body returns, Floe writes the changes, on the condition that no other writer has
//! changed what the body read. Otherwise the body runs again. The second transaction of the example is one read and
//! one write: `SET quantity = 2` if the item exists, `product = "coffee"` and `quantity = 1`.
//!
//! # What a commit depends on
//!
//! | the body | the commit writes | the commit fails if |
//! |---|---|---|
//! | reads a field: `*order.quantity`, `order.quantity > 1`, prints it | | the field has changed |
//! | changes it: `order.quantity += 1`, `set(3)?` | the new value | the field has changed |
//! | increments it: `order.quantity.increment_by(1)?` | the sum, computed by the store | the sum exceeds the type, `min` or `max` |
//! | overwrites it: `order.quantity.overwrite(3)?` | the new value | |
//! | peeks at it: `order.quantity.peek()` | | |
//!
//! An item that was read must still exist and not be expired, and an item that was missing must still be missing. If nothing is
//! written, no request is sent, unless [`verified`](tx::TxOptions::verified) requires that everything read was true
//! at one moment. A single item is sent as a plain write, several as one transaction.
//!
//! # Errors
//!
//! The [kind](ErrorKind) of an [`Error`] says what to do: fix the value (`InvalidField`), choose another key
//! (`AlreadyExists`), retry later (`TransactionFailed`), read the item and decide (`OutcomeUnknown`). A body can
//! return any error type that implements `From<Error>`; then nothing is written.
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
//! # Lost responses
//!
//! Every commit has an id, which is stamped on each item that it writes (`_tx`). A transaction carries the id as its
//! idempotency token, so that resending it applies it once. DynamoDB has no tokens for plain writes: a plain write
//! whose response was lost is reconciled by the stamp. If another writer has changed the item since, the outcome
//! cannot be determined, and the caller gets `OutcomeUnknown` instead of a second run.
//! [`exactly_once`](tx::TxOptions::exactly_once) rules that out.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`db`] | opening a database |
//! | [`attribute`] | field types and their stored form |
//! | [`tables`] | table definitions: created in a store, or written as infrastructure code |
//! | [`model`] | structs stored as items: keys, rows, fields, tables |
//! | [`model::query`] | finding items by key or index, and reading whole tables |
//! | [`tx`] | transactions: their options and hooks |
//! | [`cache`] | the read cache: eventually consistent reads served from memory |
//! | [`events`] | event streams, and states derived from them |
//! | [`graph`] | entities, ordered relations, and indexes computed by functions |
//! | [`registry`] | numbered versions with a pointer to the latest, lists of deployed versions, expiry |
//! | [`changes`] | reacting to commits: the change router and the outbox |
//! | [`deploy`] | CloudFormation templates: tables, Lambda functions, their permissions and alarms |
//! | [`error`] | the error type, and what a caller can do about each kind |
//! | [`telemetry`] | spans and metrics with OpenTelemetry's names, and their export |
//! | `http` | a transaction for each request of an HTTP server, with the feature `axum` |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `aws` | `Db::connect`: Amazon DynamoDB, or any server that speaks its protocol |
//! | `aws-sso` | `Db::connect` with profiles that sign in through IAM Identity Center |
//! | `axum` | `floe::http`: a transaction for each request |
//! | `eventbridge` | `db::EventBridge`: publishes changes to an Amazon EventBridge bus |
//! | `json-schema` | `#[model(json_schema = "..")]`: validates documents against a JSON Schema |
//! | `lambda` | `changes::lambda::run`: runs a program as an AWS Lambda function |
//! | `otlp` | `telemetry::otlp`: exports spans and metrics to an OpenTelemetry collector |
//! | `webhook` | `changes::sink::Webhook`: posts changes to a server |
//! | `zstd` | `events::Compression::Zstd`: reads and writes event bodies compressed with zstd |

#![forbid(unsafe_code)]

#[macro_use]
mod setters;

pub mod attribute;
#[cfg(doctest)]
mod book;
pub mod cache;
pub mod changes;
mod concurrent;
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
