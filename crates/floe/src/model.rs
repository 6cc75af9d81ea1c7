//! Models: validated structs in tables.
//!
//! `#[derive(Model)]` keeps the struct as the plain value and generates beside it a key (`OrderKey`) and a
//! row (`OrderRow`): the same fields, each a [`Field`] that knows whether it was read or written.

mod blind;
pub(crate) mod changes;
pub(crate) mod compile;
pub mod constraint;
pub mod field;
pub mod json_schema;
pub mod keys;
pub mod many;
pub(crate) mod part;
pub mod patch;
pub mod query;
mod report;
pub mod row;
pub mod schema;
#[doc(hidden)]
pub mod support;
pub mod tables;
pub mod transaction;
mod watched;

pub use crate::attribute::document::Json;
pub use crate::attribute::{self, Attribute, Bytes, Expiry, Invalid, document, expiry};
pub use field::{Field, KeyField};
pub use keys::{self as key, IntoKey, Key};
pub use patch::Patch;
pub use schema::Schema;

use floe_store::Item;

use crate::error::Result;
use row::{Row, RowCore};

/// A struct whose values are items of a table. Derived, not written by hand.
pub trait Model: Sized + Send + Sync + 'static {
    /// What is known of the model when the program is compiled.
    const SCHEMA: &'static Schema;

    /// The row of the model inside a transaction.
    type Row<'tx>: Row<'tx, Model = Self>;

    /// The fields of the model as they stand in conditions of queries.
    type Fields: Send + Sync + 'static;

    /// The fields, for conditions.
    #[doc(hidden)]
    fn fields() -> &'static Self::Fields;

    /// The key of a value.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a component is not allowed.
    fn key_of(&self) -> Result<Key<Self>>;

    /// The item of a value, validated, with its key.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a field is not allowed.
    fn to_item(&self) -> Result<Item>;

    /// The value of a stored item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is of another form.
    fn from_item(item: &Item) -> Result<Self>;

    /// The JSON Schema of the values.
    fn json_schema() -> Json {
        json_schema::json_schema(Self::SCHEMA)
    }

    /// The row of a value.
    #[doc(hidden)]
    fn into_row(self, core: RowCore<'_>) -> Self::Row<'_>;
}
