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

use std::sync::OnceLock;

use super::{Container, Item, ItemVisitor, Scalar};
use crate::limits::NESTING_LEVELS_MAX;
use crate::number::Number;
use crate::text::{Name, Text};
use crate::value::{Set, Value};

pub(crate) use change::Change;
pub(crate) use measure::Measure;
use slots::Slots;

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

/// Of how many attributes an item remembers where they begin. Most items have fewer; what comes after them is found by
/// going through the last of them.
const PLACES_MAX: usize = 16;

/// Bytes that are known to be an item, and its attributes once someone has asked for them.
pub(super) struct Packed {
    bytes: Box<[u8]>,
    /// Where the first attributes begin. Each takes at least a byte, so that 0 is none.
    places: [u32; PLACES_MAX],
    slots: OnceLock<Slots>,
    measure: OnceLock<Measure>,
    attributes: OnceLock<Vec<(Name, Value)>>,
}

impl Packed {
    /// Goes through the bytes; `None` if [`pack`] never writes them.
    pub(super) fn check(bytes: &[u8]) -> Option<Self> {
        let mut places = [0; PLACES_MAX];
        Input(bytes).check_item(&mut places)?;
        Some(Self::new(bytes.into(), places))
    }

    /// Bytes that are an item, of whose first attributes each begins at its place.
    const fn new(bytes: Box<[u8]>, places: [u32; PLACES_MAX]) -> Self {
        Self {
            bytes,
            places,
            slots: OnceLock::new(),
            measure: OnceLock::new(),
            attributes: OnceLock::new(),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn attributes(&self) -> &[(Name, Value)] {
        self.attributes.get_or_init(|| checked(self.unpack()))
    }

    pub(super) fn into_attributes(mut self) -> Vec<(Name, Value)> {
        let made = self.attributes.take();
        made.unwrap_or_else(|| checked(self.unpack()))
    }

    /// The number of attributes.
    pub(super) fn len(&self) -> usize {
        checked(Input(&self.bytes).count())
    }

    /// Tells a visitor of everything, without unpacking.
    pub(super) fn visit(&self, visitor: &mut impl ItemVisitor) {
        let (mut input, count) = self.attributes_input();
        checked(input.visit_attributes(count, visitor));
    }

    /// The attributes, to be taken from the front, and how many there are.
    pub(super) fn attributes_input(&self) -> (Input<'_>, usize) {
        let mut input = Input(&self.bytes);
        let count = checked(input.count());
        (input, count)
    }

    /// What begins with the attribute of this place, if it is remembered where that is.
    #[inline]
    pub(super) fn input_at(&self, place: usize) -> Option<Input<'_>> {
        let start = self.places.get(place).filter(|start| **start > 0)?;
        self.bytes.get(*start as usize..).map(Input)
    }

    fn unpack(&self) -> Option<Vec<(Name, Value)>> {
        let (mut input, count) = self.attributes_input();
        let attributes = input.attributes::<Make>(count, 0)?;
        input.0.is_empty().then_some(attributes)
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
    type Made<T>;

    /// The text of these bytes, if they are text.
    fn text(bytes: &[u8]) -> Option<&str>;
    fn make<T>(make: impl FnOnce() -> T) -> Self::Made<T>;
    fn attribute(name: &str, value: Self::Made<Value>) -> Self::Made<(Name, Value)>;
    /// A whole of these parts.
    fn join<T, W>(parts: Vec<Self::Made<T>>, make: impl FnOnce(Vec<T>) -> W) -> Self::Made<W>;
}

/// Makes nothing, and allocates nothing: vectors of nothing only count.
enum Check {}

impl Build for Check {
    type Made<T> = ();

    #[inline(always)]
    fn text(bytes: &[u8]) -> Option<&str> {
        // Most text is short and ASCII, which is told much faster than that it is UTF-8. Nobody looks
        // at the text.
        if is_ascii(bytes) {
            return Some("");
        }
        std::str::from_utf8(bytes).ok()
    }
    fn make<T>(_: impl FnOnce() -> T) {}
    fn attribute(_: &str, (): ()) {}
    fn join<T, W>(_: Vec<()>, _: impl FnOnce(Vec<T>) -> W) {}
}

/// Makes the values.
enum Make {}

impl Build for Make {
    type Made<T> = T;

    fn text(bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes).ok()
    }
    fn make<T>(make: impl FnOnce() -> T) -> T {
        make()
    }
    fn attribute(name: &str, value: Value) -> (Name, Value) {
        (Name::from(name), value)
    }
    fn join<T, W>(parts: Vec<T>, make: impl FnOnce(Vec<T>) -> W) -> W {
        make(parts)
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
#[derive(Clone, Copy)]
pub(super) struct Input<'a>(&'a [u8]);

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

    /// Goes through an item, and tells where its first attributes begin.
    fn check_item(mut self, places: &mut [u32; PLACES_MAX]) -> Option<()> {
        let whole = self.0.len();
        let count = self.count()?;
        let mut places = places.iter_mut();
        let mut before: Option<&[u8]> = None;
        for _ in 0..count {
            if let Some(place) = places.next() {
                *place = u32::try_from(whole - self.0.len()).ok()?;
            }
            let name = self.prefixed()?;
            if before.is_some_and(|before| !precedes(before, name)) {
                return None;
            }
            before = Some(name);
            Check::text(name)?;
            self.value::<Check>(0)?;
        }
        self.0.is_empty().then_some(())
    }

    /// All attributes of an item, and nothing behind them.
    fn attributes<B: Build>(
        &mut self,
        count: usize,
        depth: usize,
    ) -> Option<Vec<B::Made<(Name, Value)>>> {
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

    /// A value. What holds no others is read where it is called for, without a call for each.
    #[inline(always)]
    fn value<B: Build>(&mut self, depth: usize) -> Option<B::Made<Value>> {
        let head = self.byte()?;
        match head & 0x0f {
            STRING => {
                let length = self.length(head)?;
                let text = B::text(self.bytes(length)?)?;
                Some(B::make(|| Value::S(text.into())))
            }
            BINARY => {
                let length = self.length(head)?;
                let bytes = self.bytes(length)?;
                Some(B::make(|| Value::B(bytes.to_vec())))
            }
            _ => self.other_value::<B>(head, depth),
        }
    }

    fn other_value<B: Build>(&mut self, head: u8, depth: usize) -> Option<B::Made<Value>> {
        match head {
            NULL => Some(B::make(|| Value::Null)),
            FALSE => Some(B::make(|| Value::Bool(false))),
            TRUE => Some(B::make(|| Value::Bool(true))),
            NUMBER => self.number().map(|number| B::make(|| Value::N(number))),
            _ => self.container::<B>(head, depth),
        }
    }
    fn container<B: Build>(&mut self, head: u8, depth: usize) -> Option<B::Made<Value>> {
        let length = self.length(head)?;
        match head & 0x0f {
            // A container is one level deeper than what it stands in, and its elements deeper again.
            MAP | LIST if depth + 1 >= NESTING_LEVELS_MAX && length > 0 => None,
            MAP => {
                let attributes = self.attributes::<B>(length, depth + 1)?;
                Some(B::join(attributes, |a| Value::M(Item::of_sorted(a))))
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

    fn set<B: Build>(&mut self, kind: u8, count: usize) -> Option<B::Made<Value>> {
        match kind {
            STRING_SET => {
                let text = |bytes| B::text(bytes).map(|text| B::make(|| Text::from(text)));
                let elements = self.ascending(count, Self::prefixed, text)?;
                Some(B::join(elements, |e| Value::Ss(Set::of_sorted(e))))
            }
            NUMBER_SET => {
                let number = |number| Some(B::make(|| number));
                let elements = self.ascending(count, Self::number, number)?;
                Some(B::join(elements, |e| Value::Ns(Set::of_sorted(e))))
            }
            BINARY_SET => {
                let bytes = |bytes: &[u8]| Some(B::make(|| bytes.to_vec()));
                let elements = self.ascending(count, Self::prefixed, bytes)?;
                Some(B::join(elements, |e| Value::Bs(Set::of_sorted(e))))
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

    /// Tells a visitor of a value of bytes that have been checked, for instance as to their depth.
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
mod measure;
mod peek;
mod slots;
#[cfg(test)]
mod tests;
