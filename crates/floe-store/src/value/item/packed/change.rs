//! Packed bytes with some attributes changed: what stays is copied as it is, without a look at what is in it.

use std::borrow::Cow;

use super::{
    Input, LIST, PLACES_MAX, Packed, checked, push_prefixed, push_type, push_value, push_varint,
};
use crate::text::Name;
use crate::value::Value;
use crate::value::size::value_size;

/// Room for what stands before a name or a value.
const ROOM_BYTES: usize = 8;

/// What becomes of one attribute.
#[derive(Debug)]
pub(crate) enum Change<'v> {
    /// It has this value from then on.
    Set(Cow<'v, Value>),
    /// These come behind the list that it is.
    Append(&'v [Value]),
    /// It is gone, if it was there.
    Remove,
}

impl Change<'_> {
    /// About how many bytes it adds.
    fn room(&self, name: &Name) -> usize {
        let room = |value: &Value| value_size(value) + ROOM_BYTES;
        let value = match self {
            Self::Set(value) => room(value),
            Self::Append(tail) => tail.iter().map(room).sum(),
            Self::Remove => 0,
        };
        name.len() + ROOM_BYTES + value
    }
}

impl Packed {
    /// The item with these attributes changed, each name greater than the one before.
    pub(in crate::value::item) fn changed(&self, changes: &[(&Name, Change<'_>)]) -> Self {
        let added = changes.iter().map(|(name, change)| change.room(name));
        let mut output = Output::with_capacity(self.bytes.len() + added.sum::<usize>());
        let mut changes = changes.iter().peekable();
        let (mut input, count) = self.attributes_input();
        for at in 0..count {
            let attribute = Attribute::take(self, &mut input, at, count);
            while let Some((name, change)) =
                changes.next_if(|(name, _)| name.as_bytes() < attribute.name)
            {
                output.add(name, change);
            }
            match changes.next_if(|(name, _)| name.as_bytes() == attribute.name) {
                Some((name, change)) => output.replace(name, change, &attribute),
                None => output.keep(&attribute),
            }
        }
        for (name, change) in changes {
            output.add(name, change);
        }
        output.finish()
    }
}

/// An attribute as it stands.
struct Attribute<'a> {
    name: &'a [u8],
    value: Input<'a>,
    /// Its name and its value.
    bytes: &'a [u8],
    /// What comes behind it.
    rest: usize,
}

impl<'a> Attribute<'a> {
    /// The attribute of this place, with which the input begins.
    fn take(packed: &'a Packed, input: &mut Input<'a>, at: usize, count: usize) -> Self {
        let start = *input;
        let name = input.take_name_bytes();
        let value = *input;
        *input = match packed.input_at(at + 1) {
            Some(next) => next,
            None if at + 1 == count => Input(&[]),
            None => {
                input.pass();
                *input
            }
        };
        let rest = input.0.len();
        let (bytes, _) = start.0.split_at(start.0.len() - rest);
        Self {
            name,
            value,
            bytes,
            rest,
        }
    }

    /// The elements of the list that it is, and how many they are.
    fn elements(&self) -> Option<(&'a [u8], usize)> {
        let (elements, count) = self.value.peek_list()?;
        Some((elements.0.split_at(elements.0.len() - self.rest).0, count))
    }
}

/// The bytes of the changed item, without the number of attributes in front.
struct Output {
    bytes: Vec<u8>,
    places: [u32; PLACES_MAX],
    count: usize,
}

impl Output {
    fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        // The number of attributes, which mostly takes a byte.
        bytes.push(0);
        Self {
            bytes,
            places: [0; PLACES_MAX],
            count: 0,
        }
    }

    /// An attribute comes next.
    fn begin(&mut self) {
        if let Some(place) = self.places.get_mut(self.count) {
            *place = checked(u32::try_from(self.bytes.len()).ok());
        }
        self.count += 1;
    }

    fn keep(&mut self, attribute: &Attribute<'_>) {
        self.begin();
        self.bytes.extend_from_slice(attribute.bytes);
    }

    /// An attribute that was not there.
    fn add(&mut self, name: &Name, change: &Change<'_>) {
        match change {
            Change::Set(value) => self.set(name, value),
            Change::Append(tail) => self.append(name, (&[], 0), tail),
            Change::Remove => {}
        }
    }

    fn replace(&mut self, name: &Name, change: &Change<'_>, old: &Attribute<'_>) {
        match change {
            Change::Append(tail) => self.append(name, old.elements().unwrap_or_default(), tail),
            change => self.add(name, change),
        }
    }

    fn set(&mut self, name: &Name, value: &Value) {
        self.begin();
        push_prefixed(&mut self.bytes, name.as_bytes());
        push_value(&mut self.bytes, value);
    }

    fn append(&mut self, name: &Name, (elements, count): (&[u8], usize), tail: &[Value]) {
        self.begin();
        push_prefixed(&mut self.bytes, name.as_bytes());
        push_type(&mut self.bytes, LIST, count + tail.len());
        self.bytes.extend_from_slice(elements);
        tail.iter()
            .for_each(|value| push_value(&mut self.bytes, value));
    }

    fn finish(mut self) -> Packed {
        let mut head = Vec::with_capacity(2);
        push_varint(&mut head, self.count);
        let longer = checked(u32::try_from(head.len() - 1).ok());
        for place in self.places.iter_mut().filter(|place| **place > 0) {
            *place += longer;
        }
        self.bytes.splice(..1, head);
        Packed::new(self.bytes.into_boxed_slice(), self.places)
    }
}
