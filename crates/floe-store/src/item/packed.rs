//! The packed form of an item: the bytes in which an engine stores it.
//!
//! | bytes | what |
//! |---|---|
//! | varint | number of attributes |
//! | per attribute | name behind its length, value |
//!
//! A value begins with a byte of which the low four bits are the type and the high four bits the
//! length (of text or bytes) or count (of elements); 15 there means that a varint follows. Numbers
//! follow in their own compact form. Attributes stand in the order of their names and elements of sets
//! in ascending order, so that equal items have equal bytes and unpacking only ever appends.
//!
//! Bytes are foreign until [`Packed::check`] has gone through all of them. What it lets through is
//! what [`pack`] writes, nothing else, so that unpacking later cannot fail.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::Item;
use crate::limits::NESTING_LEVELS_MAX;
use crate::number::Number;
use crate::text::{Name, Text};
use crate::value::{Set, Value};

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

/// Bytes that are known to be an item, and its attributes once someone has asked for them.
pub(super) struct Packed {
    bytes: Box<[u8]>,
    attributes: OnceLock<Vec<(Name, Value)>>,
}

impl Packed {
    /// Goes through the bytes; `None` if [`pack`] never writes them.
    pub(super) fn check(bytes: &[u8]) -> Option<Self> {
        Input(bytes).item::<Check>()?;
        Some(Self {
            bytes: bytes.into(),
            attributes: OnceLock::new(),
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn attributes(&self) -> &[(Name, Value)] {
        self.attributes.get_or_init(|| checked(self.unpack()))
    }

    pub(super) fn into_attributes(mut self) -> Vec<(Name, Value)> {
        match self.attributes.take() {
            Some(attributes) => attributes,
            None => checked(self.unpack()),
        }
    }

    /// The number of attributes.
    pub(super) fn len(&self) -> usize {
        checked(Input(&self.bytes).count())
    }

    /// A copy of one value, without unpacking the others.
    pub(super) fn value(&self, name: &str) -> Option<Value> {
        checked(Input(&self.bytes).find(name))
    }

    fn unpack(&self) -> Option<Vec<(Name, Value)>> {
        Input(&self.bytes).item::<Make>()
    }
}

/// What was read of bytes that [`Packed::check`] has let through.
#[expect(
    clippy::expect_used,
    reason = "the same code has read the same bytes before"
)]
fn checked<T>(read: Option<T>) -> T {
    read.expect("checked bytes are an item")
}

/// Appends the packed form of an item.
pub(super) fn pack(out: &mut Vec<u8>, attributes: &[(Name, Value)]) {
    push_varint(out, attributes.len());
    push_attributes(out, attributes.iter().map(|(name, value)| (name, value)));
}

fn push_attributes<'a>(out: &mut Vec<u8>, attributes: impl Iterator<Item = (&'a Name, &'a Value)>) {
    for (name, value) in attributes {
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
            push_attributes(out, map.iter());
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
        push_varint(out, length);
    }
}

fn push_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends a number in seven bits per byte, lowest first.
fn push_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is made of packed bytes while they are read. It is one code that reads, so that what passes
/// the check can be unpacked.
trait Build {
    type Value;
    type Attribute;
    type Element<T>;

    /// The text of these bytes, if they are text.
    fn text(bytes: &[u8]) -> Option<&str>;
    fn scalar(make: impl FnOnce() -> Value) -> Self::Value;
    fn attribute(name: &str, value: Self::Value) -> Self::Attribute;
    fn map(attributes: Vec<Self::Attribute>) -> Self::Value;
    fn list(elements: Vec<Self::Value>) -> Self::Value;
    fn element<T>(make: impl FnOnce() -> T) -> Self::Element<T>;
    fn set<T>(elements: Vec<Self::Element<T>>, make: fn(Set<T>) -> Value) -> Self::Value;
}

/// Makes nothing, and allocates nothing: vectors of nothing only count.
enum Check {}

impl Build for Check {
    type Value = ();
    type Attribute = ();
    type Element<T> = ();

    #[inline(always)]
    fn text(bytes: &[u8]) -> Option<&str> {
        // Most text is short and ASCII, which is told much faster than that it is UTF-8. Nobody looks
        // at the text.
        match is_ascii(bytes) {
            true => Some(""),
            false => std::str::from_utf8(bytes).ok(),
        }
    }
    fn scalar(_: impl FnOnce() -> Value) {}
    fn attribute(_: &str, (): ()) {}
    fn map(_: Vec<()>) {}
    fn list(_: Vec<()>) {}
    fn element<T>(_: impl FnOnce() -> T) {}
    fn set<T>(_: Vec<()>, _: fn(Set<T>) -> Value) {}
}

/// Makes the values.
enum Make {}

impl Build for Make {
    type Value = Value;
    type Attribute = (Name, Value);
    type Element<T> = T;

    fn text(bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes).ok()
    }
    fn scalar(make: impl FnOnce() -> Value) -> Value {
        make()
    }
    fn attribute(name: &str, value: Value) -> (Name, Value) {
        (Name::from(name), value)
    }
    fn map(attributes: Vec<(Name, Value)>) -> Value {
        Value::M(Item::of_sorted(attributes))
    }
    fn list(elements: Vec<Value>) -> Value {
        Value::L(elements)
    }
    fn element<T>(make: impl FnOnce() -> T) -> T {
        make()
    }
    fn set<T>(elements: Vec<T>, make: fn(Set<T>) -> Value) -> Value {
        make(Set::of_sorted(elements))
    }
}

/// Whether one name comes before another. Mostly their first letters tell.
#[inline]
fn precedes(one: &[u8], other: &[u8]) -> bool {
    match (one.first(), other.first()) {
        (Some(a), Some(b)) if a != b => a < b,
        _ => one < other,
    }
}

/// Whether all bytes are ASCII. Words are read whole; where they do not come out even, the first and
/// the last overlap.
#[inline(always)]
fn is_ascii(bytes: &[u8]) -> bool {
    let all = if let Some(last) = bytes.last_chunk::<8>() {
        let words = bytes.as_chunks::<8>().0.iter();
        words.fold(u64::from_ne_bytes(*last), |all, word| {
            all | u64::from_ne_bytes(*word)
        })
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        u64::from(u32::from_ne_bytes(*first) | u32::from_ne_bytes(*last))
    } else {
        let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
        u64::from(at(0) | at(1) | at(2))
    };
    all & 0x8080_8080_8080_8080 == 0
}

/// Packed bytes, read from the front. Every read gives `None` for what [`pack`] never writes.
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
    fn prefixed(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// A number of bytes or elements to come. Each element takes at least a byte, so that it is never
    /// more than what is left.
    #[inline]
    fn count(&mut self) -> Option<usize> {
        let count = match self.byte()? {
            byte @ 0..0x80 => usize::from(byte),
            byte => self.long_varint(byte)?,
        };
        (count <= self.0.len()).then_some(count)
    }

    fn long_varint(&mut self, first: u8) -> Option<usize> {
        let mut number = usize::from(first & 0x7f);
        // No item comes near four bytes of length.
        for shift in [7, 14, 21] {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // A last byte of zero says nothing: there is a shorter form.
                return (byte > 0).then_some(number);
            }
        }
        None
    }

    /// The length or count in a type byte, or behind it.
    #[inline]
    fn length(&mut self, head: u8) -> Option<usize> {
        match usize::from(head >> 4) {
            LENGTH_FOLLOWS => self.count().filter(|length| *length >= LENGTH_FOLLOWS),
            length => (length <= self.0.len()).then_some(length),
        }
    }

    /// All attributes of an item, and nothing behind them.
    fn item<B: Build>(mut self) -> Option<Vec<B::Attribute>> {
        let count = self.count()?;
        let attributes = self.attributes::<B>(count, 0)?;
        self.0.is_empty().then_some(attributes)
    }

    fn attributes<B: Build>(&mut self, count: usize, depth: usize) -> Option<Vec<B::Attribute>> {
        let mut attributes = Vec::with_capacity(count);
        let mut before: Option<&[u8]> = None;
        for _ in 0..count {
            let name = self.prefixed()?;
            if before.is_some_and(|before| !precedes(before, name)) {
                return None;
            }
            before = Some(name);
            let (name, value) = (B::text(name)?, self.value::<B>(depth)?);
            attributes.push(B::attribute(name, value));
        }
        Some(attributes)
    }

    fn value<B: Build>(&mut self, depth: usize) -> Option<B::Value> {
        let head = self.byte()?;
        match head {
            NULL => return Some(B::scalar(|| Value::Null)),
            FALSE => return Some(B::scalar(|| Value::Bool(false))),
            TRUE => return Some(B::scalar(|| Value::Bool(true))),
            NUMBER => {
                let number = self.number()?;
                return Some(B::scalar(|| Value::N(number)));
            }
            _ => {}
        }
        let length = self.length(head)?;
        match head & 0x0f {
            STRING => {
                let text = B::text(self.bytes(length)?)?;
                Some(B::scalar(|| Value::S(text.into())))
            }
            BINARY => {
                let bytes = self.bytes(length)?;
                Some(B::scalar(|| Value::B(bytes.to_vec())))
            }
            // A container is one level deeper than what it stands in, and its elements deeper again.
            MAP | LIST if depth + 1 >= NESTING_LEVELS_MAX && length > 0 => None,
            MAP => self.attributes::<B>(length, depth + 1).map(B::map),
            LIST => {
                let mut elements = Vec::with_capacity(length);
                for _ in 0..length {
                    elements.push(self.value::<B>(depth + 1)?);
                }
                Some(B::list(elements))
            }
            _ => self.set::<B>(head & 0x0f, length),
        }
    }

    fn number(&mut self) -> Option<Number> {
        let (number, length) = Number::decode_compact(self.0)?;
        self.bytes(length)?;
        Some(number)
    }

    fn set<B: Build>(&mut self, kind: u8, count: usize) -> Option<B::Value> {
        match kind {
            STRING_SET => {
                let text = |bytes| {
                    let text = B::text(bytes)?;
                    Some(B::element(|| Text::from(text)))
                };
                let elements = self.ascending(count, Self::prefixed, text)?;
                Some(B::set(elements, Value::Ss))
            }
            NUMBER_SET => {
                let number = |number| Some(B::element(|| number));
                let elements = self.ascending(count, Self::number, number)?;
                Some(B::set(elements, Value::Ns))
            }
            BINARY_SET => {
                let bytes = |bytes: &[u8]| Some(B::element(|| bytes.to_vec()));
                let elements = self.ascending(count, Self::prefixed, bytes)?;
                Some(B::set(elements, Value::Bs))
            }
            _ => None,
        }
    }

    /// The elements of a set: at least one, each greater than the one before.
    fn ascending<R: Ord + Copy, T>(
        &mut self,
        count: usize,
        read: impl Fn(&mut Self) -> Option<R>,
        make: impl Fn(R) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut elements = Vec::with_capacity(count);
        let mut before: Option<R> = None;
        for _ in 0..count {
            let element = read(self)?;
            if before.is_some_and(|before| before >= element) {
                return None;
            }
            before = Some(element);
            elements.push(make(element)?);
        }
        (count > 0).then_some(elements)
    }

    /// The value of a name, passing over the others.
    fn find(mut self, name: &str) -> Option<Option<Value>> {
        for _ in 0..self.count()? {
            match self.prefixed()?.cmp(name.as_bytes()) {
                Ordering::Less => self.value::<Check>(0)?,
                Ordering::Equal => return self.value::<Make>(0).map(Some),
                Ordering::Greater => break,
            }
        }
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::{Random, SeededRandom};

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

    fn packed(item: &Item) -> Vec<u8> {
        let mut bytes = Vec::new();
        item.pack_into(&mut bytes);
        bytes
    }

    #[test]
    fn items_come_back() {
        for item in [
            Item::new(),
            one_of_each(),
            Item::new().with("d", nested(32)),
            (0..200).map(|n| (format!("{n:03}"), n)).collect(),
        ] {
            let bytes = packed(&item);
            let back = Item::from_packed(&bytes).unwrap();
            assert_eq!(back.len(), item.len());
            assert_eq!(packed(&back), bytes);
            assert_eq!(back, Item::from_packed(&bytes).unwrap());
            assert_eq!(back, item);
            assert_eq!(packed(&back), bytes);
        }
    }

    #[test]
    fn a_packed_item_is_changed_like_any_other_and_its_copies_are_not() {
        let item = Item::from_packed(&packed(&one_of_each())).unwrap();
        let mut changed = item.clone();
        assert_eq!(changed.insert("short", 1), Some(Value::from("abc")));
        assert_eq!(changed.remove("no"), Some(Value::from(false)));
        *changed.get_mut("yes").unwrap() = Value::Null;
        assert_eq!(item, one_of_each());
        let expected: Item = one_of_each()
            .into_iter()
            .filter(|(name, _)| name != "no")
            .map(|(name, value)| match name.as_str() {
                "short" => (name, Value::from(1)),
                "yes" => (name, Value::Null),
                _ => (name, value),
            })
            .collect();
        assert_eq!(changed, expected);
        // Once of an item that has copies, and once of one that has none.
        let copy = item.clone();
        assert!(item.into_iter().eq(one_of_each()));
        assert!(copy.into_iter().eq(one_of_each()));
    }

    #[test]
    fn each_value_is_found_without_the_others() {
        let (item, all) = (one_of_each(), one_of_each());
        let item = Item::from_packed(&packed(&item)).unwrap();
        for (name, value) in all.iter() {
            assert_eq!(item.pick([name]).get(name), Some(value));
        }
        for absent in ["", "b", "list2", "zzz"] {
            assert!(item.pick([&Name::from(absent)]).is_empty(), "{absent}");
        }
    }

    #[test]
    fn nesting_beyond_the_limit_is_refused() {
        let bytes = packed(&Item::new().with("d", nested(33)));
        assert_eq!(Item::from_packed(&bytes), None);
        let bottomless = [&[1, 1, b'd'][..], &[LIST | 1 << 4; 100_000]].concat();
        assert_eq!(Item::from_packed(&bottomless), None);
    }

    #[test]
    fn every_prefix_and_every_tail_is_refused() {
        let bytes = packed(&one_of_each());
        for length in 0..bytes.len() {
            assert_eq!(Item::from_packed(&bytes[..length]), None, "length={length}");
        }
        assert_eq!(Item::from_packed(&[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn what_has_another_form_is_refused() {
        for (what, bytes) in [
            ("names out of order", &[2, 1, b'b', NULL, 1, b'a', NULL][..]),
            ("a name twice", &[2, 1, b'a', NULL, 1, b'a', NULL]),
            ("a name that is no text", &[1, 1, 0xff, NULL]),
            ("a text that is none", &[1, 1, b'a', STRING | 1 << 4, 0xff]),
            ("an empty set", &[1, 1, b'a', BINARY_SET]),
            (
                "an element twice",
                &[1, 1, b'a', STRING_SET | 2 << 4, 1, b'x', 1, b'x'],
            ),
            (
                "elements out of order",
                &[1, 1, b'a', BINARY_SET | 2 << 4, 1, b'y', 1, b'x'],
            ),
            ("a length in the long form", &[1, 0x81, 0, b'a', NULL]),
            ("a type that is none", &[1, 1, b'a', 11]),
        ] {
            assert_eq!(Item::from_packed(bytes), None, "{what}");
        }
    }

    #[test]
    fn changed_bytes_are_refused_or_mean_another_item() {
        let random = SeededRandom::new(1);
        let (bytes, item) = (packed(&one_of_each()), one_of_each());
        for _ in 0..20_000 {
            let mut changed = bytes.clone();
            let at = random.below(bytes.len() as u64) as usize;
            changed[at] ^= 1 << random.below(8);
            if let Some(other) = Item::from_packed(&changed) {
                assert_ne!(other, item);
                // What can be read is canonical: it is written back as it was.
                assert_eq!(packed(&other.into_iter().collect()), changed);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        let random = SeededRandom::new(2);
        for _ in 0..20_000 {
            let length = random.below(64);
            let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            if let Some(item) = Item::from_packed(&bytes) {
                assert_eq!(packed(&item.into_iter().collect()), bytes);
            }
        }
    }
}
