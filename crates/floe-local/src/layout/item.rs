//! The item codec: the size of the item as DynamoDB counts it, then its
//! [packed form](floe_store::Item::pack_into).
//!
//! The size stands in front so that paging, capacity and the table's counters need not weigh an item
//! again, and need not unpack it at all where only its size counts.

use floe_store::size::item_size;
use floe_store::{Item, Result};

use super::{Reader, damaged, push_varint};

/// The bytes of an item.
pub(crate) fn encode(item: &Item) -> Vec<u8> {
    encode_sized(item, item_size(item))
}

/// The bytes of an item whose size is known.
pub(crate) fn encode_sized(item: &Item, size: usize) -> Vec<u8> {
    // Names and values take about what DynamoDB counts, with a byte or two each for their lengths.
    let mut out = Vec::with_capacity(size + 4 * item.len() + 8);
    push_varint(&mut out, size as u64);
    item.pack_into(&mut out);
    out
}

/// The item of these bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Item> {
    Ok(decode_sized(bytes)?.1)
}

/// The item of these bytes with its size as DynamoDB counts it.
pub(crate) fn decode_sized(bytes: &[u8]) -> Result<(usize, Item)> {
    let (size, packed) = split(bytes)?;
    let item = Item::from_packed(packed).ok_or_else(|| damaged("item"))?;
    Ok((size, item))
}

/// The size of an item as DynamoDB counts it, without looking at the rest.
pub(crate) fn decode_size(bytes: &[u8]) -> Result<usize> {
    Ok(split(bytes)?.0)
}

fn split(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let mut reader = Reader::new(bytes, "item");
    let size = reader.varint()?;
    match usize::try_from(size) {
        // Nothing weighs more than four times what it takes here: that is an empty list in a list.
        Ok(size) if size <= reader.remaining().saturating_mul(4) => Ok((size, reader.rest())),
        _ => Err(damaged("item")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_with_their_size() {
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
    fn a_small_item_takes_little_more_than_its_size() {
        let item = Item::new().with("pk", "user#1").with("n", 7);
        assert_eq!(encode(&item).len(), item_size(&item) + 6);
    }

    #[test]
    fn sizes_beyond_the_bytes_and_other_bytes_are_refused() {
        for bytes in [&[][..], &[0], &[5, 0], &[0x80, 0, 0], &[0, 0, 0], &[1, 9]] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
        assert_eq!(decode(&[0, 0]), Ok(Item::new()));
    }
}
