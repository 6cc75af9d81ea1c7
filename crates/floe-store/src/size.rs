//! Sizes of data, as DynamoDB counts them for its limits and charges.
//!
//! | data | bytes |
//! |---|---|
//! | attribute | the UTF-8 bytes of its name, plus its value |
//! | S | UTF-8 bytes |
//! | N | [`Number::size_bytes`](crate::Number::size_bytes): 1, one per two digits of the whole part and of the fraction, one for a sign |
//! | B | bytes |
//! | BOOL, NULL | 1 |
//! | SS, NS, BS | the sum over the elements |
//! | L | 3, plus 1 and the value for each element |
//! | M | 3, plus 1, the name and the value for each entry |
//!
//! These are sizes in DynamoDB's data model, not on disk.

use crate::item::Item;

pub use crate::value::size::{CONTAINER_BYTES, ENTRY_BYTES, attribute_size, value_size};

/// Returns the size of an item: the sum over its attributes.
///
/// ```
/// use floe_store::{Item, size::item_size};
///
/// let item = Item::new().with("id", "o-1").with("quantity", 12);
/// assert_eq!(item_size(&item), 2 + 3 + 8 + 2);
/// ```
pub fn item_size(item: &Item) -> usize {
    if let Some(stats) = item.stats() {
        return stats.bytes;
    }
    let sizes = item.iter().map(|(name, value)| attribute_size(name, value));
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Number;
    use crate::value::{Set, Value};

    fn check(value: impl Into<Value>, size: usize) {
        let value = value.into();
        assert_eq!(value_size(&value), size, "{value:?}");
        // A name adds its bytes, and nothing else.
        let item = Item::new().with("naïve", value);
        assert_eq!(item_size(&item), 6 + size, "{item:?}");
    }

    fn number(text: &str) -> Value {
        Value::N(text.parse().unwrap())
    }

    #[test]
    fn size_of_strings_binaries_booleans_and_null() {
        check("", 0);
        check("abc", 3);
        check("日本", 6);
        check(vec![0u8; 7], 7);
        check(true, 1);
        check(false, 1);
        check(Value::Null, 1);
    }

    #[test]
    fn size_of_numbers_depends_on_their_digits() {
        for (text, size) in [
            ("0", 1),
            ("1", 2),
            ("42", 2),
            ("-42", 3),
            ("100", 2),
            ("0.0001", 2),
            ("123.45", 4),
        ] {
            check(number(text), size);
        }
    }

    #[test]
    fn size_of_sets_is_the_sum_of_their_elements() {
        check(Set::new(["a", "bcd"].map(crate::Text::from)).unwrap(), 4);
        check(Set::new([Number::from(1), Number::from(-42)]).unwrap(), 5);
        check(Set::new([vec![1u8], vec![]]).unwrap(), 1);
    }

    #[test]
    fn containers_add_three_bytes_and_one_per_entry() {
        check(Value::L(vec![]), 3);
        check(Item::new(), 3);
        check(Value::L(vec![Value::from("ab"), Value::Null]), 3 + 3 + 2);
        check(Item::new().with("k", "v").with("key", 1), 3 + 3 + 6);
        check(
            Value::L(vec![Value::M(Item::new().with("a", Value::L(vec![])))]),
            3 + 1 + (3 + 1 + 1 + 3),
        );
    }

    #[test]
    fn size_of_an_empty_item_is_zero() {
        assert_eq!(item_size(&Item::new()), 0);
    }
}
