//! Models: validated structs in tables.
//!
//! `#[derive(Model)]` keeps the struct as the plain value and generates a key (`OrderKey`) and a row (`OrderRow`): the
//! same fields, each a [`Field`] that records whether it was read or written.

mod blind;
pub(crate) mod changes;
pub(crate) mod compile;
pub mod constraint;
mod expressions;
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

/// A struct whose values are items of a table. Derive it; do not implement it manually.
pub trait Model: Sized + Send + Sync + 'static {
    /// The compile-time description of the model.
    const SCHEMA: &'static Schema;

    /// The row of the model inside a transaction.
    type Row<'tx>: Row<'tx, Model = Self>;

    /// The fields of the model as columns of query conditions.
    type Fields: Send + Sync + 'static;

    /// Returns the columns.
    #[doc(hidden)]
    fn fields() -> &'static Self::Fields;

    /// Returns the key of a value.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a component is not allowed.
    fn key_of(&self) -> Result<Key<Self>>;

    /// Validates a value and converts it to an item with its key.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a field is not allowed.
    fn to_item(&self) -> Result<Item>;

    /// Reads the value of a stored item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the item has another form.
    fn from_item(item: &Item) -> Result<Self>;

    /// Returns the JSON Schema of the values.
    fn json_schema() -> Json {
        json_schema::json_schema(Self::SCHEMA)
    }

    /// Converts a value to a row.
    #[doc(hidden)]
    fn into_row(self, core: RowCore<'_>) -> Self::Row<'_>;
}
