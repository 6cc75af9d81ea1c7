//! DynamoDB's JSON as the server reads and writes it, for programs beside it: the command line does.

use floe_store::{Error, Item};

pub use crate::wire::json::{Malformed, Reader, Token, Writer};
pub use crate::wire::table::describe::{Moment, write as write_table};
pub use crate::wire::write::{write_item, write_item_hashed, write_items};

use crate::wire::read::{Place, Read};
use crate::wire::refusal::Refusal;
use crate::wire::value::Attributes;
use crate::wire::value_fault::Layer;

/// Why JSON is not an item.
#[derive(Debug)]
#[non_exhaustive]
pub enum ItemError {
    /// The item is one that DynamoDB refuses.
    Refused(Error),
    /// It is JSON, and not DynamoDB's: a value has no type, or not the form of its type.
    Shape(String),
    /// It is not JSON.
    Malformed,
}

impl From<Malformed> for ItemError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<Refusal> for ItemError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Store(error) => Self::Refused(error),
            Refusal::Serialization(Some(message)) => Self::Shape(message),
            _ => Self::Malformed,
        }
    }
}

/// Reads an item or a key, in which each value stands with its type: `{"id":{"S":"a"},"n":{"N":"5"}}`.
///
/// # Errors
///
/// [`ItemError`]. The reader stands where reading ended.
pub fn read_item(reader: &mut Reader<'_>) -> Result<Item, ItemError> {
    let attributes = Attributes::read(reader, Place::Member)?;
    Ok(attributes.sound(Layer::Current)?)
}
