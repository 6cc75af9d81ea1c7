//! The item codec.
//!
//! A stored item is its size as DynamoDB counts it, then its attributes:
//!
//! | bytes | what |
//! |---|---|
//! | varint | size of the item as DynamoDB counts it |
//! | varint | number of attributes |
//! | per attribute | name behind its length, value |
//!
//! A value begins with a byte of which the low four bits are the type and the high four bits the
//! length (of text or bytes) or count (of elements); 15 there means that a varint follows. Numbers
//! follow in their own compact form. Attributes stand in the order of their names and elements of sets
//! in ascending order, so that equal items have equal bytes and decoding only ever appends.
//!
//! The size stands in front so that paging, capacity and the table's counters need not weigh an item
//! again, and need not decode it at all where only its size counts.

use floe_store::limits::NESTING_LEVELS_MAX;
use floe_store::size::item_size;
use floe_store::{Item, Name, Number, Result, Set, Text, Value};

use super::{Reader, push_prefixed, push_varint};

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
const BINARY: u8 = 5;
const MAP: u8 = 6;
const LIST: u8 = 7;
const STRING_SET: u8 = 8;
const NUMBER_SET: u8 = 9;
const BINARY_SET: u8 = 10;

/// The length in the type byte that says that the length follows.
const LENGTH_FOLLOWS: usize = 15;

/// The bytes of an item.
pub(crate) fn encode(item: &Item) -> Vec<u8> {
    encode_sized(item, item_size(item))
}

/// The bytes of an item whose size is known.
pub(crate) fn encode_sized(item: &Item, size: usize) -> Vec<u8> {
    // Names and values take about what DynamoDB counts, with a byte or two each for their lengths.
    let mut out = Vec::with_capacity(size + 4 * item.len() + 8);
    push_varint(&mut out, size as u64);
    push_attributes(&mut out, item);
    out
}

/// The item of these bytes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Item> {
    Ok(decode_sized(bytes)?.1)
}

/// The item of these bytes with its size as DynamoDB counts it.
pub(crate) fn decode_sized(bytes: &[u8]) -> Result<(usize, Item)> {
    let mut reader = Reader::new(bytes, "item");
    let size = read_size(&mut reader)?;
    let item = read_attributes(&mut reader, 0)?;
    reader.finish()?;
    Ok((size, item))
}

/// The size of an item as DynamoDB counts it, without decoding the rest.
pub(crate) fn decode_size(bytes: &[u8]) -> Result<usize> {
    read_size(&mut Reader::new(bytes, "item"))
}

fn read_size(reader: &mut Reader<'_>) -> Result<usize> {
    let size = reader.varint()?;
    // Nothing weighs more than four times what it takes here: that is an empty list in a list.
    match usize::try_from(size) {
        Ok(size) if size <= reader.remaining().saturating_mul(4) => Ok(size),
        _ => Err(reader.damaged()),
    }
}

fn push_attributes(out: &mut Vec<u8>, item: &Item) {
    push_varint(out, item.len() as u64);
    for (name, value) in item.iter() {
        push_prefixed(out, name.as_bytes());
        push_value(out, value);
    }
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(NULL),
        Value::Bool(false) => out.push(FALSE),
        Value::Bool(true) => out.push(TRUE),
        Value::N(number) => {
            out.push(NUMBER);
            number.encode_compact(out);
        }
        Value::S(text) => push_scalar(out, STRING, text.as_bytes()),
        Value::B(bytes) => push_scalar(out, BINARY, bytes),
        Value::M(map) => {
            push_type(out, MAP, map.len());
            for (name, value) in map.iter() {
                push_prefixed(out, name.as_bytes());
                push_value(out, value);
            }
        }
        Value::L(list) => {
            push_type(out, LIST, list.len());
            list.iter().for_each(|value| push_value(out, value));
        }
        Value::Ss(set) => {
            push_type(out, STRING_SET, set.len());
            set.iter().for_each(|text| push_prefixed(out, text.as_bytes()));
        }
        Value::Ns(set) => {
            push_type(out, NUMBER_SET, set.len());
            set.iter().for_each(|number| number.encode_compact(out));
        }
        Value::Bs(set) => {
            push_type(out, BINARY_SET, set.len());
            set.iter().for_each(|bytes| push_prefixed(out, bytes));
        }
    }
}

fn push_scalar(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    push_type(out, kind, bytes.len());
    out.extend_from_slice(bytes);
}

fn push_type(out: &mut Vec<u8>, kind: u8, length: usize) {
    if length < LENGTH_FOLLOWS {
        out.push(kind | (length as u8) << 4);
    } else {
        out.push(kind | (LENGTH_FOLLOWS as u8) << 4);
        push_varint(out, length as u64);
    }
}

fn read_attributes(reader: &mut Reader<'_>, depth: usize) -> Result<Item> {
    let count = reader.count()?;
    read_named(reader, count, depth)
}

fn read_named(reader: &mut Reader<'_>, count: usize, depth: usize) -> Result<Item> {
    let mut item = Item::with_capacity(count);
    let mut previous = None;
    for _ in 0..count {
        let length = reader.count()?;
        let name = reader.text(length)?;
        if previous.is_some_and(|previous| previous >= name) {
            return Err(reader.damaged());
        }
        previous = Some(name);
        item.insert(Name::from(name), read_value(reader, depth)?);
    }
    Ok(item)
}

fn read_value(reader: &mut Reader<'_>, depth: usize) -> Result<Value> {
    let head = reader.byte()?;
    let kind = head & 0x0f;
    if kind <= NUMBER {
        return match head {
            NULL => Ok(Value::Null),
            FALSE => Ok(Value::Bool(false)),
            TRUE => Ok(Value::Bool(true)),
            NUMBER => read_number(reader).map(Value::N),
            _ => Err(reader.damaged()),
        };
    }
    let length = read_length(reader, head)?;
    match kind {
        STRING => Ok(Value::S(reader.text(length)?.into())),
        BINARY => Ok(Value::B(reader.bytes(length)?.to_vec())),
        // A container is one level deeper than what it stands in, and its elements one deeper again.
        MAP | LIST if depth + 1 >= NESTING_LEVELS_MAX && length > 0 => Err(reader.damaged()),
        MAP => read_named(reader, length, depth + 1).map(Value::M),
        LIST => read_all(reader, length, |r| read_value(r, depth + 1)).map(Value::L),
        STRING_SET => read_set(reader, length, |r| {
            let length = r.count()?;
            r.text(length).map(Text::from)
        })
        .map(Value::Ss),
        NUMBER_SET => read_set(reader, length, read_number).map(Value::Ns),
        BINARY_SET => read_set(reader, length, |r| r.prefixed().map(<[u8]>::to_vec)).map(Value::Bs),
        _ => Err(reader.damaged()),
    }
}

/// The length or count in a type byte, or behind it. Either way at most what is left to read, as each
/// element takes at least a byte.
fn read_length(reader: &mut Reader<'_>, head: u8) -> Result<usize> {
    match usize::from(head >> 4) {
        LENGTH_FOLLOWS => match reader.count()? {
            length if length >= LENGTH_FOLLOWS => Ok(length),
            _ => Err(reader.damaged()),
        },
        length if length <= reader.remaining() => Ok(length),
        _ => Err(reader.damaged()),
    }
}

fn read_number(reader: &mut Reader<'_>) -> Result<Number> {
    let decoded = Number::decode_compact(reader.rest());
    let (number, length) = decoded.ok_or_else(|| reader.damaged())?;
    reader.bytes(length)?;
    Ok(number)
}

fn read_all<'a, T>(
    reader: &mut Reader<'a>,
    count: usize,
    mut read: impl FnMut(&mut Reader<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut elements = Vec::with_capacity(count);
    for _ in 0..count {
        elements.push(read(reader)?);
    }
    Ok(elements)
}

fn read_set<'a, T: Ord>(
    reader: &mut Reader<'a>,
    count: usize,
    read: impl FnMut(&mut Reader<'a>) -> Result<T>,
) -> Result<Set<T>> {
    let elements = read_all(reader, count, read)?;
    if !elements.is_sorted() {
        return Err(reader.damaged());
    }
    Set::new(elements).map_err(|_| reader.damaged())
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_store::env::{Random, SeededRandom};

    fn nested(levels: usize) -> Value {
        (1..levels).fold(Value::from(1), |inner, level| {
            if level % 2 == 0 {
                Value::L(vec![inner])
            } else {
                Value::M(Item::new().with("a", inner))
            }
        })
    }

    fn one_of_each() -> Item {
        Item::new()
            .with("null", Value::Null)
            .with("no", false)
            .with("yes", true)
            .with("number", 300)
            .with("empty", "")
            .with("short", "abc")
            .with("long", "x".repeat(1000))
            .with("binary", vec![0_u8, 255])
            .with("map", Item::new().with("b", 1).with("a", "2"))
            .with("list", vec![Value::from(1), Value::Null])
            .with("strings", Set::new(["".to_owned(), "b".to_owned()]).unwrap())
            .with("numbers", Set::new((0..20).map(Number::from)).unwrap())
            .with("binaries", Set::new([vec![], vec![0_u8]]).unwrap())
    }

    #[test]
    fn items_come_back_with_their_size() {
        for item in [Item::new(), one_of_each(), Item::new().with("d", nested(32))] {
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
    fn nesting_beyond_the_limit_is_refused() {
        let bytes = encode(&Item::new().with("d", nested(33)));
        assert!(decode(&bytes).is_err());
        let bottomless = [&[1, 1, 1, b'd'][..], &[LIST | 1 << 4; 100_000]].concat();
        assert!(decode(&bottomless).is_err());
    }

    #[test]
    fn every_prefix_and_every_tail_is_refused() {
        let bytes = encode(&one_of_each());
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err(), "length={length}");
        }
        assert!(decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn changed_bytes_are_refused_or_mean_another_item() {
        let random = SeededRandom::new(1);
        let (bytes, item) = (encode(&one_of_each()), one_of_each());
        for _ in 0..20_000 {
            let mut changed = bytes.clone();
            let at = random.below(bytes.len() as u64) as usize;
            changed[at] ^= 1 << random.below(8);
            if let Ok((size, decoded)) = decode_sized(&changed) {
                // What can be read is canonical: it is written back as it was.
                assert_eq!(encode_sized(&decoded, size), changed);
                assert!(size != item_size(&item) || decoded != item);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        let random = SeededRandom::new(2);
        for _ in 0..20_000 {
            let length = random.below(64);
            let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            if let Ok((size, item)) = decode_sized(&bytes) {
                assert_eq!(encode_sized(&item, size), bytes);
            }
        }
    }
}
