//! The packed form of an item: the bytes in which an engine stores it.
//!
//! | bytes | content |
//! |---|---|
//! | varint | number of attributes |
//! | per attribute | name with its length in front, value |
//!
//! A value starts with a byte whose low four bits are the type and whose high four bits are the length (of text or
//! bytes) or the count (of elements); 15 means that a varint with the length follows. Numbers have their own compact
//! encoding. Attributes are sorted by name, and elements of sets in ascending order, so equal items have equal bytes,
//! and unpacking only appends.
//!
//! Bytes are untrusted until [`Packed::check`] has validated all of them. It accepts exactly what [`pack`] writes, so
//! unpacking cannot fail later.

use std::sync::OnceLock;

use super::{Container, Item, ItemVisitor, Scalar};
use crate::limits::NESTING_LEVELS_MAX;
use crate::number::Number;
use crate::text::{Name, Text};
use crate::value::{Set, Value};

pub(crate) use change::AttributeChange;
use slots::Slots;
pub(crate) use stats::ItemStats;

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

/// The length in the type byte which means that the length follows.
const LENGTH_FOLLOWS: usize = 15;

/// Number of attributes whose offsets are recorded. Most items have fewer; later attributes are found by skipping from
/// the last recorded one.
const OFFSETS_MAX: usize = 16;

/// Bytes that were validated as an item, and its attributes once they were accessed.
pub(super) struct Packed {
    bytes: Box<[u8]>,
    /// The offsets of the first attributes. 0 means none: the first byte is the count.
    offsets: [u32; OFFSETS_MAX],
    slots: OnceLock<Slots>,
    stats: OnceLock<ItemStats>,
    attributes: OnceLock<Vec<(Name, Value)>>,
}

impl Packed {
    /// Validates the bytes. Returns `None` if [`pack`] never writes them.
    pub(super) fn check(bytes: &[u8]) -> Option<Self> {
        let mut offsets = [0; OFFSETS_MAX];
        PackedReader(bytes).check_item(&mut offsets)?;
        Some(Self::new(bytes.into(), offsets))
    }

    /// Wraps valid bytes with the offsets of their first attributes.
    const fn new(bytes: Box<[u8]>, offsets: [u32; OFFSETS_MAX]) -> Self {
        Self {
            bytes,
            offsets,
            slots: OnceLock::new(),
            stats: OnceLock::new(),
            attributes: OnceLock::new(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn attributes(&self) -> &[(Name, Value)] {
        self.attributes.get_or_init(|| expect_valid(self.unpack()))
    }

    pub(super) fn into_attributes(mut self) -> Vec<(Name, Value)> {
        let unpacked = self.attributes.take();
        unpacked.unwrap_or_else(|| expect_valid(self.unpack()))
    }

    /// The number of attributes.
    pub(super) fn len(&self) -> usize {
        expect_valid(PackedReader(&self.bytes).count())
    }

    /// Calls a visitor for everything, without unpacking.
    pub(super) fn visit(&self, visitor: &mut impl ItemVisitor) {
        let (mut reader, count) = self.attributes_reader();
        expect_valid(reader.visit_attributes(count, visitor));
    }

    /// Returns a reader at the first attribute, and the number of attributes.
    pub(super) fn attributes_reader(&self) -> (PackedReader<'_>, usize) {
        let mut reader = PackedReader(&self.bytes);
        let count = expect_valid(reader.count());
        (reader, count)
    }

    /// Returns a reader at the attribute with this index, if its offset is recorded.
    #[inline]
    pub(super) fn reader_at(&self, index: usize) -> Option<PackedReader<'_>> {
        let start = self.offsets.get(index).filter(|start| **start > 0)?;
        self.bytes.get(*start as usize..).map(PackedReader)
    }

    fn unpack(&self) -> Option<Vec<(Name, Value)>> {
        let (mut reader, count) = self.attributes_reader();
        let attributes = reader.attributes::<Unpack>(count, 0)?;
        reader.0.is_empty().then_some(attributes)
    }
}

/// Unwraps a result of reading bytes that [`Packed::check`] has accepted.
#[expect(
    clippy::expect_used,
    reason = "the same code has already read these bytes"
)]
fn expect_valid<T>(read: Option<T>) -> T {
    read.expect("validated bytes decode")
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
            let texts = set.iter();
            texts.for_each(|text| push_prefixed(out, text.as_bytes()));
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

/// Appends a number with seven bits per byte, least significant first.
fn push_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is built while packed bytes are read. Validation and unpacking share the reading code, so that everything that
/// passes validation can be unpacked.
trait Build {
    type Output<T>;

    /// Returns the text of these bytes, if they are UTF-8.
    fn text(bytes: &[u8]) -> Option<&str>;
    fn build<T>(build: impl FnOnce() -> T) -> Self::Output<T>;
    fn attribute(name: &str, value: Self::Output<Value>) -> Self::Output<(Name, Value)>;
    /// Builds a whole from its parts.
    fn join<T, W>(parts: Vec<Self::Output<T>>, build: impl FnOnce(Vec<T>) -> W) -> Self::Output<W>;
}

/// Builds nothing and does not allocate: a vector of units only counts.
enum Validate {}

impl Build for Validate {
    type Output<T> = ();

    #[inline(always)]
    fn text(bytes: &[u8]) -> Option<&str> {
        // Most text is short and ASCII, which is checked much faster than UTF-8. The returned text is unused.
        if is_ascii(bytes) {
            return Some("");
        }
        std::str::from_utf8(bytes).ok()
    }
    fn build<T>(_: impl FnOnce() -> T) {}
    fn attribute(_: &str, (): ()) {}
    fn join<T, W>(_: Vec<()>, _: impl FnOnce(Vec<T>) -> W) {}
}

/// Builds the values.
enum Unpack {}

impl Build for Unpack {
    type Output<T> = T;

    fn text(bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes).ok()
    }
    fn build<T>(build: impl FnOnce() -> T) -> T {
        build()
    }
    fn attribute(name: &str, value: Value) -> (Name, Value) {
        (Name::from(name), value)
    }
    fn join<T, W>(parts: Vec<T>, build: impl FnOnce(Vec<T>) -> W) -> W {
        build(parts)
    }
}

/// Whether one name sorts before another. The first bytes usually decide.
#[inline]
fn precedes(one: &[u8], other: &[u8]) -> bool {
    match (one.first(), other.first()) {
        (Some(a), Some(b)) if a != b => a < b,
        _ => one < other,
    }
}

/// Whether all bytes are ASCII. Reads whole words; if the length is not a multiple, the first and the last word
/// overlap.
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
        let at = |offset: usize| bytes.get(offset).copied().unwrap_or(0);
        u64::from(at(0) | at(1) | at(2))
    };
    all & 0x8080_8080_8080_8080 == 0
}

/// Reads packed bytes front to back. Every method returns `None` for bytes that [`pack`] never writes.
#[derive(Clone, Copy)]
pub(super) struct PackedReader<'a>(&'a [u8]);

impl<'a> PackedReader<'a> {
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

    /// Reads the number of following bytes or elements. An element takes at least a byte, so more than the remaining
    /// bytes is invalid.
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
        // No length in an item needs more than four bytes.
        for shift in [7, 14, 21] {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // A last byte of zero is invalid: a shorter encoding exists.
                return (byte > 0).then_some(number);
            }
        }
        None
    }

    /// The length or count in a type byte, or in the varint after it.
    #[inline]
    fn length(&mut self, head: u8) -> Option<usize> {
        match usize::from(head >> 4) {
            LENGTH_FOLLOWS => self.count().filter(|length| *length >= LENGTH_FOLLOWS),
            length => (length <= self.0.len()).then_some(length),
        }
    }

    /// Validates an item and records the offsets of its first attributes.
    fn check_item(mut self, offsets: &mut [u32; OFFSETS_MAX]) -> Option<()> {
        let whole = self.0.len();
        let count = self.count()?;
        let mut offsets = offsets.iter_mut();
        let mut before: Option<&[u8]> = None;
        for _ in 0..count {
            if let Some(offset) = offsets.next() {
                *offset = u32::try_from(whole - self.0.len()).ok()?;
            }
            let name = self.prefixed()?;
            if before.is_some_and(|before| !precedes(before, name)) {
                return None;
            }
            before = Some(name);
            Validate::text(name)?;
            self.value::<Validate>(0)?;
        }
        self.0.is_empty().then_some(())
    }

    /// Reads the attributes of an item or of a map.
    fn attributes<B: Build>(
        &mut self,
        count: usize,
        depth: usize,
    ) -> Option<Vec<B::Output<(Name, Value)>>> {
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

    /// Reads a value. Strings and binaries are inlined into the caller.
    #[inline(always)]
    fn value<B: Build>(&mut self, depth: usize) -> Option<B::Output<Value>> {
        let head = self.byte()?;
        match head & 0x0f {
            STRING => {
                let length = self.length(head)?;
                let text = B::text(self.bytes(length)?)?;
                Some(B::build(|| Value::S(text.into())))
            }
            BINARY => {
                let length = self.length(head)?;
                let bytes = self.bytes(length)?;
                Some(B::build(|| Value::B(bytes.to_vec())))
            }
            _ => self.other_value::<B>(head, depth),
        }
    }

    fn other_value<B: Build>(&mut self, head: u8, depth: usize) -> Option<B::Output<Value>> {
        match head {
            NULL => Some(B::build(|| Value::Null)),
            FALSE => Some(B::build(|| Value::Bool(false))),
            TRUE => Some(B::build(|| Value::Bool(true))),
            NUMBER => self.number().map(|number| B::build(|| Value::N(number))),
            _ => self.container::<B>(head, depth),
        }
    }
    fn container<B: Build>(&mut self, head: u8, depth: usize) -> Option<B::Output<Value>> {
        let length = self.length(head)?;
        match head & 0x0f {
            // A container is one level deeper than its parent, and its elements are one level deeper still.
            MAP | LIST if depth + 1 >= NESTING_LEVELS_MAX && length > 0 => None,
            MAP => {
                let attributes = self.attributes::<B>(length, depth + 1)?;
                Some(B::join(attributes, |a| Value::M(Item::from_sorted(a))))
            }
            LIST => {
                let mut elements = Vec::with_capacity(length);
                for _ in 0..length {
                    elements.push(self.value::<B>(depth + 1)?);
                }
                Some(B::join(elements, Value::L))
            }
            kind => self.set::<B>(kind, length),
        }
    }

    fn number(&mut self) -> Option<Number> {
        let (number, length) = Number::decode_compact(self.0)?;
        self.bytes(length)?;
        Some(number)
    }

    fn set<B: Build>(&mut self, kind: u8, count: usize) -> Option<B::Output<Value>> {
        match kind {
            STRING_SET => {
                let text = |bytes| B::text(bytes).map(|text| B::build(|| Text::from(text)));
                let elements = self.ascending(count, Self::prefixed, text)?;
                Some(B::join(elements, |e| Value::Ss(Set::from_sorted(e))))
            }
            NUMBER_SET => {
                let number = |number| Some(B::build(|| number));
                let elements = self.ascending(count, Self::number, number)?;
                Some(B::join(elements, |e| Value::Ns(Set::from_sorted(e))))
            }
            BINARY_SET => {
                let bytes = |bytes: &[u8]| Some(B::build(|| bytes.to_vec()));
                let elements = self.ascending(count, Self::prefixed, bytes)?;
                Some(B::join(elements, |e| Value::Bs(Set::from_sorted(e))))
            }
            _ => None,
        }
    }

    /// Reads the elements of a set: at least one, strictly ascending.
    fn ascending<R: Ord + Copy, T>(
        &mut self,
        count: usize,
        read: impl Fn(&mut Self) -> Option<R>,
        build: impl Fn(R) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut elements = Vec::with_capacity(count);
        let mut before: Option<R> = None;
        for _ in 0..count {
            let element = read(self)?;
            if before.is_some_and(|before| before >= element) {
                return None;
            }
            before = Some(element);
            elements.push(build(element)?);
        }
        (count > 0).then_some(elements)
    }

    fn text(&mut self, length: usize) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(length)?).ok()
    }

    fn prefixed_text(&mut self) -> Option<&'a str> {
        let length = self.count()?;
        self.text(length)
    }

    fn visit_attributes(&mut self, count: usize, visitor: &mut impl ItemVisitor) -> Option<()> {
        for _ in 0..count {
            visitor.name(self.prefixed_text()?);
            self.visit_value(visitor)?;
        }
        Some(())
    }

    /// Calls a visitor for a value. The bytes have been validated, including their nesting.
    fn visit_value(&mut self, visitor: &mut impl ItemVisitor) -> Option<()> {
        let head = self.byte()?;
        match head {
            NULL => visitor.scalar(Scalar::Null),
            FALSE => visitor.scalar(Scalar::Bool(false)),
            TRUE => visitor.scalar(Scalar::Bool(true)),
            NUMBER => visitor.scalar(Scalar::N(self.number()?)),
            _ => {
                let length = self.length(head)?;
                match head & 0x0f {
                    STRING => visitor.scalar(Scalar::S(self.text(length)?)),
                    BINARY => visitor.scalar(Scalar::B(self.bytes(length)?)),
                    kind => self.visit_container(kind, length, visitor)?,
                }
            }
        }
        Some(())
    }

    fn visit_container(
        &mut self,
        kind: u8,
        count: usize,
        visitor: &mut impl ItemVisitor,
    ) -> Option<()> {
        let container = match kind {
            MAP => Container::M,
            LIST => Container::L,
            STRING_SET => Container::Ss,
            NUMBER_SET => Container::Ns,
            BINARY_SET => Container::Bs,
            _ => return None,
        };
        visitor.begin(container);
        if container == Container::M {
            self.visit_attributes(count, visitor)?;
        } else {
            for _ in 0..count {
                self.visit_element(container, visitor)?;
            }
        }
        visitor.end(container);
        Some(())
    }

    fn visit_element(
        &mut self,
        container: Container,
        visitor: &mut impl ItemVisitor,
    ) -> Option<()> {
        match container {
            Container::M | Container::L => self.visit_value(visitor)?,
            Container::Ss => visitor.element(Scalar::S(self.prefixed_text()?)),
            Container::Ns => visitor.element(Scalar::N(self.number()?)),
            Container::Bs => visitor.element(Scalar::B(self.prefixed()?)),
        }
        Some(())
    }
}

mod change;
mod peek;
mod slots;
mod stats;
#[cfg(test)]
mod tests;
