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

use super::{Reader, damaged, push_prefixed, push_varint};

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
    decode_like(bytes, None)
}

/// The item of these bytes with its size. Where its names are those of another item, as they are
/// throughout a page, they are taken from there, which is quicker than reading them.
pub(crate) fn decode_like(bytes: &[u8], like: Option<&Item>) -> Result<(usize, Item)> {
    let mut input = Input(bytes);
    let decoded = input.size().zip(input.item(like));
    decoded
        .filter(|_| input.0.is_empty())
        .ok_or_else(|| damaged("item"))
}

/// The size of an item as DynamoDB counts it, without decoding the rest.
pub(crate) fn decode_size(bytes: &[u8]) -> Result<usize> {
    Input(bytes).size().ok_or_else(|| damaged("item"))
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
            set.iter()
                .for_each(|text| push_prefixed(out, text.as_bytes()));
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

/// Encoded bytes, read from the front. `None` for what the encoder never writes: half of the time of a
/// query goes into decoding, and small results are passed on much faster than ones with an error.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    #[inline]
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    #[inline]
    fn text(&mut self, count: usize) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(count)?).ok()
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        match self.0.split_first()? {
            (byte @ 0..0x80, rest) => {
                self.0 = rest;
                Some(u64::from(*byte))
            }
            _ => {
                let mut reader = Reader::new(self.0, "item");
                let number = reader.varint().ok()?;
                self.0 = reader.rest();
                Some(number)
            }
        }
    }

    /// A number of bytes or elements to come. Each element takes at least a byte, so that it is never
    /// more than what is left.
    #[inline]
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.varint()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    /// The length or count in a type byte, or behind it.
    #[inline]
    fn length(&mut self, head: u8) -> Option<usize> {
        match usize::from(head >> 4) {
            LENGTH_FOLLOWS => self.count().filter(|length| *length >= LENGTH_FOLLOWS),
            length => (length <= self.0.len()).then_some(length),
        }
    }

    fn size(&mut self) -> Option<usize> {
        let size = usize::try_from(self.varint()?).ok()?;
        // Nothing weighs more than four times what it takes here: that is an empty list in a list.
        (size <= self.0.len().saturating_mul(4)).then_some(size)
    }

    fn item(&mut self, like: Option<&Item>) -> Option<Item> {
        let count = self.count()?;
        match like {
            Some(like) => self.item_like(count, like),
            None => self.map(count, 0),
        }
    }

    fn item_like(&mut self, count: usize, like: &Item) -> Option<Item> {
        let mut known = like.iter().map(|(name, _)| name).peekable();
        let mut attributes = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.count()?;
            let name = self.bytes(length)?;
            let mut same = known.next_if(|known| known.as_bytes() == name);
            if same.is_none() {
                // Mostly it is the very next one; else the other item has some that this one lacks.
                while known.next_if(|known| known.as_bytes() < name).is_some() {}
                same = known.next_if(|known| known.as_bytes() == name);
            }
            let name = match same {
                Some(known) => known.clone(),
                None => Name::from(std::str::from_utf8(name).ok()?),
            };
            attributes.push((name, self.value(0)?));
        }
        Item::from_sorted(attributes)
    }

    fn map(&mut self, count: usize, depth: usize) -> Option<Item> {
        let mut attributes = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.count()?;
            let name = Name::from(self.text(length)?);
            attributes.push((name, self.value(depth)?));
        }
        Item::from_sorted(attributes)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let head = self.byte()?;
        match head {
            NULL => return Some(Value::Null),
            FALSE => return Some(Value::Bool(false)),
            TRUE => return Some(Value::Bool(true)),
            NUMBER => return self.number().map(Value::N),
            _ => {}
        }
        let length = self.length(head)?;
        match head & 0x0f {
            STRING => Some(Value::S(self.text(length)?.into())),
            BINARY => Some(Value::B(self.bytes(length)?.to_vec())),
            // A container is one level deeper than what it stands in, and its elements deeper again.
            MAP | LIST if depth + 1 >= NESTING_LEVELS_MAX && length > 0 => None,
            MAP => self.map(length, depth + 1).map(Value::M),
            LIST => self
                .all(length, |input| input.value(depth + 1))
                .map(Value::L),
            STRING_SET => self.set(length, Self::set_text).map(Value::Ss),
            NUMBER_SET => self.set(length, Self::number).map(Value::Ns),
            BINARY_SET => self.set(length, Self::set_bytes).map(Value::Bs),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Number> {
        let (number, length) = Number::decode_compact(self.0)?;
        self.bytes(length)?;
        Some(number)
    }

    fn set_text(&mut self) -> Option<Text> {
        let length = self.count()?;
        self.text(length).map(Text::from)
    }

    fn set_bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.count()?;
        self.bytes(length).map(<[u8]>::to_vec)
    }

    fn all<T>(
        &mut self,
        count: usize,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(read(self)?);
        }
        Some(elements)
    }

    fn set<T: Ord>(
        &mut self,
        count: usize,
        read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Set<T>> {
        let elements = self.all(count, read)?;
        let sorted = elements.is_sorted();
        Set::new(elements).ok().filter(|_| sorted)
    }
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
            .with(
                "strings",
                Set::new(["".to_owned(), "b".to_owned()]).unwrap(),
            )
            .with("numbers", Set::new((0..20).map(Number::from)).unwrap())
            .with("binaries", Set::new([vec![], vec![0_u8]]).unwrap())
    }

    #[test]
    fn items_come_back_with_their_size() {
        for item in [
            Item::new(),
            one_of_each(),
            Item::new().with("d", nested(32)),
        ] {
            let bytes = encode(&item);
            assert_eq!(decode_size(&bytes).unwrap(), item_size(&item));
            assert_eq!(decode_sized(&bytes).unwrap(), (item_size(&item), item));
        }
    }

    #[test]
    fn names_are_taken_from_an_item_that_is_alike() {
        let item = one_of_each();
        let mut others = vec![Item::new(), item.clone(), Item::new().with("zzz", 1)];
        others.extend(item.iter().map(|(name, _)| {
            let mut other = item.clone().with("a", 1).with("m", 2);
            other.remove(name);
            other
        }));
        let bytes = encode(&item);
        for other in &others {
            assert_eq!(
                decode_like(&bytes, Some(other)).unwrap().1,
                item,
                "{other:?}"
            );
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
