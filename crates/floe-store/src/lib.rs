//! The vocabulary of Floe: DynamoDB's data model and operations, without any I/O.
//!
//! All crates of Floe describe data with the types of this crate. An [`Item`] maps names to [`Value`]s and belongs to a
//! table defined by a [`TableDef`]. The operations in [`op`], with their [expressions](expr), read and write items
//! through an [`Engine`].
//!
//! ```
//! use floe_store::{Item, op::PutItem, expr::{Condition, Path}};
//!
//! let order = Item::new().with("id", "o-1").with("quantity", 3);
//! let put = PutItem::new("Orders", order)
//!     .condition(Condition::attribute_not_exists(Path::attribute("id")));
//! assert_eq!(put.table_name, "Orders");
//! ```
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`value`], [`number`], [`item`] | the data: ten types of value, 38-digit decimals, items |
//! | [`size`], [`limits`], [`capacity`] | sizes of data, limits, and the cost of operations |
//! | [`table`] | keys, indexes, streams and expiry of a table |
//! | [`expr`] | conditions, updates, key conditions and projections: parse, check, evaluate, render |
//! | [`op`] | one file per operation: input, output, validation |
//! | [`json`] | DynamoDB's JSON: items and change records, read and written in one pass |
//! | [`engine`] | the trait that stores implement |
//! | [`forward`] | macros for engines that wrap an engine |
//! | [`bus`] | the trait that event buses implement |
//! | [`error`] | errors modelled on DynamoDB's |
//! | [`env`](mod@env), [`calendar`] | the only source of time and randomness; calendar dates and ISO 8601 |
//! | [`hash`], [`hex`] | a hash that never changes; bytes as hexadecimal text |
//!
//! # How a request is processed
//!
//! ```text
//! text, JSON ──parse──▶ op::PutItem ──validate──▶ ──check against TableDef──▶ ──apply to Item──▶ new Item
//! code ────────────────▶             the request    keys, indexes               condition, update
//! ```
//!
//! All of these steps are pure functions; an [`Engine`] adds tables, items and durability. [`op`] documents the steps
//! and their order, which is DynamoDB's, including the wording of errors.
//!
//! ```
//! use floe_store::expr::Condition;
//! use floe_store::op::PutItem;
//! use floe_store::table::KeyKind;
//! use floe_store::{Error, Item, TableDef};
//!
//! let orders = TableDef::builder("Orders", "id", KeyKind::S).build()?;
//! let order = Item::new().with("id", "o-1").with("quantity", 3);
//! let mut put = PutItem::new("Orders", order.clone()).condition(Condition::attribute_not_exists("id"));
//! put.validate()?;
//! put.check(&orders)?;
//! assert_eq!(put.clone().apply(&orders, None)?.new, Some(order.clone()));
//! assert_eq!(
//!     put.apply(&orders, Some(&order)),
//!     Err(Error::ConditionalCheckFailed { item: None })
//! );
//!
//! let nameless = PutItem::new("Orders", Item::new().with("quantity", 3));
//! assert_eq!(
//!     nameless.check(&orders).unwrap_err().to_string(),
//!     "One or more parameter values were invalid: Missing the key id in the item"
//! );
//! # Ok::<(), floe_store::Error>(())
//! ```
//!
//! Not here: storage on disk (`floe-local`), the AWS SDK (`floe-aws`), and the wire protocol (`floe-server`). The crate
//! depends on no runtime and no storage.

pub mod bus;
pub mod calendar;
pub mod capacity;
mod declare;
pub mod engine;
pub mod env;
pub mod error;
pub mod expr;
pub mod forward;
mod future;
pub mod hash;
pub mod hex;
pub mod json;
mod key_length;
pub mod limits;
pub mod number;
pub mod op;
pub mod size;
pub mod table;
pub mod text;
pub mod value;

pub use capacity::{ConsumedCapacity, Units};
pub use engine::{Capabilities, Engine, Health};
pub use env::{Clock, Env, Timestamp};
pub use error::{CancellationReason, Error, Result};
pub use future::BoxFuture;
pub use number::{Number, NumberError};
pub use table::TableDef;
pub use text::{Name, Text};
pub use value::item::{self, Item};
pub use value::{Set, SetError, Value, ValueType};
