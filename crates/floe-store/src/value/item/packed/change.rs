//! Changes attributes of packed bytes. Unchanged attributes are copied as bytes, without decoding.

use std::borrow::Cow;

use super::{
    LIST, OFFSETS_MAX, Packed, PackedReader, expect_valid, push_prefixed, push_type, push_value,
    push_varint,
};
use crate::text::Name;
use crate::value::Value;
use crate::value::size::value_size;

/// Estimated bytes of the type and length in front of a name or a value.
const PREFIX_BYTES: usize = 8;

/// The change of one attribute.
#[derive(Debug)]
pub(crate) enum AttributeChange<'v> {
    /// Sets the value.
    Set(Cow<'v, Value>),
    /// Appends to the list that is the value.
    Append(&'v [Value]),
    /// Removes the attribute, if it exists.
    Remove,
}

impl AttributeChange<'_> {
    /// Estimates how many bytes the change adds.
    fn added_bytes(&self, name: &Name) -> usize {
        let size = |value: &Value| value_size(value) + PREFIX_BYTES;
        let value = match self {
            Self::Set(value) => size(value),
            Self::Append(tail) => tail.iter().map(size).sum(),
            Self::Remove => 0,
        };
        name.len() + PREFIX_BYTES + value
    }
}

impl Packed {
    /// Returns the item after these changes, which have strictly ascending names.
    pub(in crate::value::item) fn changed(&self, changes: &[(&Name, AttributeChange<'_>)]) -> Self {
        let added = changes
            .iter()
            .map(|(name, change)| change.added_bytes(name));
        let mut writer = PackedWriter::with_capacity(self.bytes.len() + added.sum::<usize>());
        let mut changes = changes.iter().peekable();
        let (mut reader, count) = self.attributes_reader();
        for at in 0..count {
            let attribute = Attribute::take(self, &mut reader, at, count);
            while let Some((name, change)) =
                changes.next_if(|(name, _)| name.as_bytes() < attribute.name)
            {
                writer.add(name, change);
            }
            match changes.next_if(|(name, _)| name.as_bytes() == attribute.name) {
                Some((name, change)) => writer.replace(name, change, &attribute),
                None => writer.keep(&attribute),
            }
        }
        for (name, change) in changes {
            writer.add(name, change);
        }
        writer.finish()
    }
}

/// An attribute before the changes.
struct Attribute<'a> {
    name: &'a [u8],
    value: PackedReader<'a>,
    /// Name and value.
    bytes: &'a [u8],
    /// The number of bytes after it.
    rest: usize,
}

impl<'a> Attribute<'a> {
    /// Reads the attribute with this index, which is next in the reader.
    fn take(packed: &'a Packed, reader: &mut PackedReader<'a>, at: usize, count: usize) -> Self {
        let start = *reader;
        let name = reader.take_name_bytes();
        let value = *reader;
        *reader = match packed.reader_at(at + 1) {
            Some(next) => next,
            None if at + 1 == count => PackedReader(&[]),
            None => {
                reader.skip();
                *reader
            }
        };
        let rest = reader.0.len();
        let (bytes, _) = start.0.split_at(start.0.len() - rest);
        Self {
            name,
            value,
            bytes,
            rest,
        }
    }

    /// Returns the bytes and the number of elements, if the value is a list.
    fn elements(&self) -> Option<(&'a [u8], usize)> {
        let (elements, count) = self.value.peek_list()?;
        Some((elements.0.split_at(elements.0.len() - self.rest).0, count))
    }
}

/// Writes the bytes of the changed item, with room for the number of attributes in front.
struct PackedWriter {
    bytes: Vec<u8>,
    offsets: [u32; OFFSETS_MAX],
    count: usize,
}

impl PackedWriter {
    fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity);
        // The number of attributes usually takes one byte.
        bytes.push(0);
        Self {
            bytes,
            offsets: [0; OFFSETS_MAX],
            count: 0,
        }
    }

    /// Starts the next attribute.
    fn begin(&mut self) {
        if let Some(offset) = self.offsets.get_mut(self.count) {
            *offset = expect_valid(u32::try_from(self.bytes.len()).ok());
        }
        self.count += 1;
    }

    fn keep(&mut self, attribute: &Attribute<'_>) {
        self.begin();
        self.bytes.extend_from_slice(attribute.bytes);
    }

    /// Adds an attribute that did not exist.
    fn add(&mut self, name: &Name, change: &AttributeChange<'_>) {
        match change {
            AttributeChange::Set(value) => self.set(name, value),
            AttributeChange::Append(tail) => self.append(name, (&[], 0), tail),
            AttributeChange::Remove => {}
        }
    }

    fn replace(&mut self, name: &Name, change: &AttributeChange<'_>, old: &Attribute<'_>) {
        match change {
            AttributeChange::Append(tail) => {
                self.append(name, old.elements().unwrap_or_default(), tail);
            }
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
        let longer = expect_valid(u32::try_from(head.len() - 1).ok());
        for offset in self.offsets.iter_mut().filter(|offset| **offset > 0) {
            *offset += longer;
        }
        self.bytes.splice(..1, head);
        Packed::new(self.bytes.into_boxed_slice(), self.offsets)
    }
}
