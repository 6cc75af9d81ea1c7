//! The stored key of an item, and numbers in text keys.

use std::fmt;

use floe_store::{Item, Number, Value, hex};

/// The attribute of the partition key in every table of models.
pub const PARTITION_ATTRIBUTE: &str = "_id";

/// The attribute of the sort key.
pub const SORT_ATTRIBUTE: &str = "_sk";

/// A stored key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EncodedKey {
    pub(crate) id: Value,
    pub(crate) sort: Option<Value>,
}

impl EncodedKey {
    /// `_id`: text, or a number where the key is a single number.
    pub const fn id(&self) -> &Value {
        &self.id
    }

    /// `_sk`, if the model has a sort key.
    pub const fn sort(&self) -> Option<&Value> {
        self.sort.as_ref()
    }

    /// The attributes of the key.
    pub fn to_item(&self) -> Item {
        let mut item = Item::with_capacity(1 + usize::from(self.sort.is_some()));
        item.insert(PARTITION_ATTRIBUTE, self.id.clone());
        if let Some(sort) = &self.sort {
            item.insert(SORT_ATTRIBUTE, sort.clone());
        }
        item
    }
}

impl fmt::Display for EncodedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = &self.id;
        match &self.sort {
            Some(sort) => write!(f, "{id:?}/{sort:?}"),
            None => write!(f, "{id:?}"),
        }
    }
}

/// A number as text that sorts like the number: its ordered bytes in hex.
pub(crate) fn ordered_number(number: &Number) -> String {
    let mut bytes = Vec::new();
    number.encode_ordered(&mut bytes);
    hex::encode(&bytes)
}

/// Reads the text of [`ordered_number`]; `None` if it is not one.
pub(crate) fn read_ordered_number(text: &str) -> Option<Number> {
    let bytes = hex::decode(text)?;
    let (number, length) = Number::decode_ordered(&bytes)?;
    (length == bytes.len()).then_some(number)
}
