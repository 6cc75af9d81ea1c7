//! The vocabulary of Floe: DynamoDB's data model and operations, without any I/O.
//!
//! Everything that talks about data in Floe talks in the types of this crate: a [`Value`] in an
//! [`Item`], kept in a table that a [`TableDef`] describes, read and written by the operations in
//! [`op`] with the [expressions](expr) they carry, through an [`Engine`].
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
//! # What is where
//!
//! | module | what it holds |
//! |---|---|
//! | [`value`], [`number`], [`item`] | the data: ten types of value, 38-digit decimals, items |
//! | [`size`], [`limits`], [`capacity`] | what data weighs, how much is allowed, what it costs |
//! | [`table`] | keys, indexes, streams and expiry of a table |
//! | [`expr`] | conditions, updates, key conditions and projections: parse, check, evaluate, render |
//! | [`op`] | one file per operation: input, output, validation |
//! | [`json`] | DynamoDB's JSON: items and change records, read and written in one pass |
//! | [`engine`] | the trait that stores implement |
//! | [`forward`] | macros for engines around engines |
//! | [`bus`] | the trait that event buses implement |
//! | [`error`] | errors shaped as DynamoDB's |
//! | [`env`](mod@env), [`calendar`] | the only door for time and randomness; dates of moments |
//! | [`hash`], [`hex`] | a hash that never changes; bytes as text |
//!
//! # The way of a request
//!
//! ```text
//! text, JSON ──parse──▶ op::PutItem ──validate──▶ ──check against TableDef──▶ ──apply to Item──▶ new Item
//! code ────────────────▶             the request    keys, indexes               condition, update
//! ```
//!
//! All of it is pure: an [`Engine`] brings the tables, the items and the durability. [`op`] tells the
//! steps and their order, which is DynamoDB's, down to the words of the errors.
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
//! What is not here: bytes on disk (`floe-local`), the SDK (`floe-aws`), requests and answers of the wire
//! (`floe-server`). The crate depends on no runtime and no storage.

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
