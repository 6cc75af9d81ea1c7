//! References to values inside an item, which do not unpack it.
//!
//! Reading a few values of a large item, or a part of a long list, only costs those. To read everything once, use
//! [`ItemVisitor`](super::ItemVisitor).

use std::slice;

use super::packed::{Packed, PackedReader};
use super::{Form, Item};
use crate::number::Number;
use crate::text::Name;
use crate::value::size::{CONTAINER_BYTES, ENTRY_BYTES, value_size};
use crate::value::{Value, ValueType};

/// A reference to a value inside an item, packed or not. Cheap to copy.
///
/// ```
/// use floe_store::{Item, Value};
///
/// let list = vec![Value::from("a"), Value::from(7)];
/// let item = Item::new().with("id", "o-1").with("list", list);
/// let mut bytes = Vec::new();
/// item.pack_into(&mut bytes);
/// let packed = Item::from_packed(&bytes).ok_or("not packed")?;
///
/// let (name, list) = packed.value_refs().last().ok_or("no attribute")?;
/// let mut elements = list.elements().ok_or("no list")?;
/// assert_eq!((name, elements.len()), ("list", 2));
/// assert_eq!(elements.next().and_then(|first| first.as_s()), Some("a"));
/// assert_eq!(elements.next().map(|second| second.to_value()), Some(Value::from(7)));
/// # Ok::<(), &'static str>(())
/// ```
#[derive(Clone, Copy)]
pub struct ValueRef<'i>(Source<'i>);

#[derive(Clone, Copy)]
enum Source<'i> {
    Unpacked(&'i Value),
    /// The remaining bytes start with the value.
    Packed(PackedReader<'i>),
}

impl Item {
    /// Iterates over references to the attributes in the order of their names.
    pub fn value_refs(&self) -> Attributes<'_> {
        match &self.form {
            Form::Unpacked(attributes) => Attributes {
                entries: Entries::Unpacked(attributes.iter()),
                packed_item: None,
            },
            Form::Packed(packed) => Attributes {
                entries: Entries::packed(packed.attributes_reader()),
                packed_item: Some((packed, 0)),
            },
        }
    }

    /// Returns a reference to the value of an attribute.
    pub fn value_ref(&self, name: &str) -> Option<ValueRef<'_>> {
        match &self.form {
            Form::Unpacked(_) => self
                .get(name)
                .map(|value| ValueRef(Source::Unpacked(value))),
            Form::Packed(packed) => packed
                .find(name)
                .map(|(_, value)| ValueRef(Source::Packed(value))),
        }
    }
}

/// Accessors that packed and unpacked values share.
macro_rules! ref_accessors {
    ($( $(#[$doc:meta])* $name:ident -> $type:ty: $packed:ident; )+) => {$(
        $(#[$doc])*
        pub fn $name(self) -> $type {
            match self.0 {
                Source::Unpacked(value) => value.$name(),
                Source::Packed(reader) => reader.$packed(),
            }
        }
    )+};
}

impl<'i> ValueRef<'i> {
    ref_accessors! {
        /// The type of the value.
        value_type -> ValueType: value_type;
        /// The text, if it is a string.
        as_s -> Option<&'i str>: peek_text;
        /// The number, if it is one.
        as_n -> Option<Number>: peek_number;
        /// The bytes, if it is binary.
        as_b -> Option<&'i [u8]>: peek_bytes;
    }

    /// Returns the attributes in the order of their names, if the value is a map.
    pub fn attributes(self) -> Option<Attributes<'i>> {
        match self.0 {
            Source::Unpacked(value) => value.as_m().map(Item::value_refs),
            Source::Packed(reader) => Some(Attributes {
                entries: Entries::packed(reader.peek_map()?),
                packed_item: None,
            }),
        }
    }

    /// Returns the elements, if the value is a list.
    pub fn elements(self) -> Option<Elements<'i>> {
        Some(Elements(match self.0 {
            Source::Unpacked(value) => Entries::Unpacked(value.as_l()?.iter()),
            Source::Packed(reader) => Entries::packed(reader.peek_list()?),
        }))
    }

    /// Returns the size of the value, like [`value_size`].
    pub fn size(self) -> usize {
        if let Source::Unpacked(value) = self.0 {
            return value_size(value);
        }
        match self.value_type() {
            ValueType::S => self.as_s().map_or(0, str::len),
            ValueType::B => self.as_b().map_or(0, <[u8]>::len),
            ValueType::N => self.as_n().map_or(0, |number| number.size_bytes()),
            ValueType::M => self.attributes().map_or(0, |attributes| {
                let sizes = attributes.map(|(name, value)| ENTRY_BYTES + name.len() + value.size());
                CONTAINER_BYTES + sizes.sum::<usize>()
            }),
            ValueType::L => self.elements().map_or(0, |elements| {
                let sizes = elements.map(|value| ENTRY_BYTES + value.size());
                CONTAINER_BYTES + sizes.sum::<usize>()
            }),
            _ => value_size(&self.to_value()),
        }
    }

    /// Decodes or clones the value.
    pub fn to_value(self) -> Value {
        match self.0 {
            Source::Unpacked(value) => value.clone(),
            Source::Packed(reader) => reader.unpack(),
        }
    }
}

/// An iterator over the entries of a container.
#[derive(Clone)]
enum Entries<'i, T> {
    Unpacked(slice::Iter<'i, T>),
    Packed {
        reader: PackedReader<'i>,
        left: usize,
    },
}

impl<'i, T> Entries<'i, T> {
    const fn packed((reader, left): (PackedReader<'i>, usize)) -> Self {
        Self::Packed { reader, left }
    }

    fn len(&self) -> usize {
        match self {
            Self::Unpacked(rest) => rest.len(),
            Self::Packed { left, .. } => *left,
        }
    }
}

/// Iterator over references to attributes: see [`Item::value_refs`].
#[derive(Clone)]
pub struct Attributes<'i> {
    entries: Entries<'i, (Name, Value)>,
    /// The item whose attributes these are, and how many were taken. It may know the offset of the next one.
    packed_item: Option<(&'i Packed, usize)>,
}

impl<'i> Iterator for Attributes<'i> {
    type Item = (&'i str, ValueRef<'i>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.entries {
            Entries::Unpacked(rest) => {
                let (name, value) = rest.next()?;
                Some((name, ValueRef(Source::Unpacked(value))))
            }
            Entries::Packed { reader, left } => {
                *left = left.checked_sub(1)?;
                let name = reader.take_name();
                let value = *reader;
                let next = self.packed_item.as_mut().and_then(|(packed, taken)| {
                    *taken += 1;
                    packed.reader_at(*taken)
                });
                match next {
                    Some(next) => *reader = next,
                    None if *left == 0 => {}
                    None => reader.skip(),
                }
                Some((name, ValueRef(Source::Packed(value))))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.len(), Some(self.entries.len()))
    }
}

impl ExactSizeIterator for Attributes<'_> {}

/// Iterator over references to the elements of a list: see [`ValueRef::elements`].
#[derive(Clone)]
pub struct Elements<'i>(Entries<'i, Value>);

impl<'i> Iterator for Elements<'i> {
    type Item = ValueRef<'i>;

    #[inline]
    fn next(&mut self) -> Option<ValueRef<'i>> {
        match &mut self.0 {
            Entries::Unpacked(rest) => rest.next().map(|value| ValueRef(Source::Unpacked(value))),
            Entries::Packed { reader, left } => {
                *left = left.checked_sub(1)?;
                let value = *reader;
                if *left > 0 {
                    reader.skip();
                }
                Some(ValueRef(Source::Packed(value)))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl ExactSizeIterator for Elements<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;
    use crate::value::Set;

    fn packed(item: &Item) -> Item {
        let mut bytes = Vec::new();
        item.pack_into(&mut bytes);
        Item::from_packed(&bytes).unwrap()
    }

    fn every_type() -> Item {
        let inner = Item::new()
            .with("b", vec![1_u8; 300])
            .with("n", -12)
            .with("s", "häß");
        let set = |texts: [&str; 2]| Set::new(texts.map(Text::from)).unwrap();
        Item::new()
            .with("bool", true)
            .with("empty", Value::L(Vec::new()))
            .with(
                "list",
                vec![Value::M(inner.clone()), Value::Null, Value::from("x")],
            )
            .with("map", inner)
            .with("ns", Set::new([1, 2].map(Number::from)).unwrap())
            .with("ss", set(["a", "b"]))
            .with("bs", Set::new([vec![1_u8], vec![2_u8]]).unwrap())
            .with("text", "long text, ".repeat(9))
    }

    fn elements(peek: ValueRef<'_>) -> Option<Vec<Value>> {
        Some(peek.elements()?.map(ValueRef::to_value).collect())
    }

    fn attributes(peek: ValueRef<'_>) -> Option<Vec<(&str, Value)>> {
        let attributes = peek.attributes()?;
        let attributes = attributes.map(|(name, value)| (name, value.to_value()));
        Some(attributes.collect())
    }

    #[test]
    fn packed_and_unpacked_items_have_equal_value_refs() {
        let open = every_type();
        let packed = packed(&open);
        assert_eq!(open.value_refs().len(), packed.value_refs().len());
        for ((a, x), (b, y)) in open.value_refs().zip(packed.value_refs()) {
            assert_eq!((a, x.to_value()), (b, y.to_value()));
            assert_eq!(x.value_type(), y.value_type());
            let size = value_size(&x.to_value());
            assert_eq!((x.size(), y.size()), (size, size));
            assert_eq!(
                (x.as_s(), x.as_n(), x.as_b()),
                (y.as_s(), y.as_n(), y.as_b())
            );
            assert_eq!(elements(x), elements(y));
            assert_eq!(attributes(x), attributes(y));
        }
    }

    #[test]
    fn attributes_beyond_the_recorded_offsets_are_found() {
        let item: Item = (0..40)
            .map(|n| (format!("{n:02}"), vec![Value::from(n); n as usize]))
            .collect();
        let packed = packed(&item);
        let seen: Item = packed
            .value_refs()
            .map(|(n, v)| (n, v.to_value()))
            .collect();
        assert_eq!(seen, item);
    }

    #[test]
    fn accessors_return_none_for_other_types() {
        for item in [every_type(), packed(&every_type())] {
            for (name, value) in item.value_refs() {
                let kind = value.value_type();
                assert_eq!(value.as_s().is_some(), kind == ValueType::S, "{name}");
                assert_eq!(value.as_n().is_some(), kind == ValueType::N, "{name}");
                assert_eq!(value.as_b().is_some(), kind == ValueType::B, "{name}");
                assert_eq!(value.elements().is_some(), kind == ValueType::L, "{name}");
                assert_eq!(value.attributes().is_some(), kind == ValueType::M, "{name}");
            }
        }
    }
}
