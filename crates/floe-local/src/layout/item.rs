//! The item codec: the size of the item by DynamoDB's rules, then its [packed form](floe_store::Item::pack_into).
//!
//! The size comes first so that paging, capacity and the table's counts need not compute it again, and need not unpack
//! the item where only its size matters.

use floe_store::size::item_size;
use floe_store::{Item, Result};

use super::{Reader, damaged, push_varint};

/// Encodes an item.
pub(crate) fn encode(item: &Item) -> Vec<u8> {
    encode_sized(item, item_size(item))
}

/// Encodes an item whose size is known.
pub(crate) fn encode_sized(item: &Item, size: usize) -> Vec<u8> {
    // Names and values take about their size by DynamoDB's rules, plus a byte or two each for their lengths.
    let mut out = Vec::with_capacity(size + 4 * item.len() + 8);
    push_varint(&mut out, size as u64);
    item.pack_into(&mut out);
    out
}

/// Decodes an item.
pub(crate) fn decode(bytes: &[u8]) -> Result<Item> {
    Ok(decode_sized(bytes)?.1)
}

/// Decodes an item with its size by DynamoDB's rules.
pub(crate) fn decode_sized(bytes: &[u8]) -> Result<(usize, Item)> {
    let (size, packed) = split(bytes)?;
    let item = Item::from_packed(packed).ok_or_else(|| damaged("item"))?;
    Ok((size, item))
}

/// Decodes only the size of an item.
pub(crate) fn decode_size(bytes: &[u8]) -> Result<usize> {
    Ok(split(bytes)?.0)
}

fn split(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let mut reader = Reader::new(bytes, "item");
    let size = reader.varint()?;
    match usize::try_from(size) {
        // The size is at most four times the number of bytes here, which an empty list in a list reaches.
        Ok(size) if size <= reader.remaining().saturating_mul(4) => Ok((size, reader.rest())),
        _ => Err(damaged("item")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_round_trips_with_its_size() {
        let list = floe_store::Value::L(vec![floe_store::Value::L(vec![]); 20]);
        for item in [
            Item::new(),
            Item::new().with("pk", "user#1").with("n", 7),
            Item::new().with("l", list),
        ] {
            let bytes = encode(&item);
            assert_eq!(decode_size(&bytes).unwrap(), item_size(&item));
            assert_eq!(decode_sized(&bytes).unwrap(), (item_size(&item), item));
        }
    }

    #[test]
    fn small_item_is_encoded_with_little_overhead() {
        let item = Item::new().with("pk", "user#1").with("n", 7);
        assert_eq!(encode(&item).len(), item_size(&item) + 6);
    }

    #[test]
    fn impossible_sizes_and_invalid_bytes_are_rejected() {
        for bytes in [&[][..], &[0], &[5, 0], &[0x80, 0, 0], &[0, 0, 0], &[1, 9]] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(decode(&[0, 0]), Ok(Item::new()));
    }
}
