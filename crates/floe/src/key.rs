//! The key of an item as it is stored, and numbers in keys that are text.

use std::fmt;

use floe_store::{Item, Number, Value, hex};

/// The attribute of the partition key in every table of models.
pub const PARTITION_ATTRIBUTE: &str = "_id";

/// The attribute of the sort key.
pub const SORT_ATTRIBUTE: &str = "_sk";

/// A key as it is stored.
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

    /// `_sk`, where the model has a sort key.
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

/// A number as text whose order is the order of the numbers: the bytes of its ordered form in hex.
pub(crate) fn ordered_number(number: &Number) -> String {
    let mut bytes = Vec::new();
    number.encode_ordered(&mut bytes);
    hex::encode(&bytes)
}

/// The number of such a text; `None` if it is none.
pub(crate) fn read_ordered_number(text: &str) -> Option<Number> {
    let bytes = hex::decode(text)?;
    let (number, length) = Number::decode_ordered(&bytes)?;
    (length == bytes.len()).then_some(number)
}
