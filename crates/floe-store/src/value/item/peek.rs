//! Values looked at where they stand, without making them of what is packed.
//!
//! Who wants a few values of a large item, or a part of a long list, pays for those alone. Who wants everything once is
//! told by [`ItemVisitor`](super::ItemVisitor).

use std::slice;

use super::packed::{Input, Packed};
use super::{Form, Item};
use crate::number::Number;
use crate::text::Name;
use crate::value::size::{CONTAINER_BYTES, ENTRY_BYTES, value_size};
use crate::value::{Value, ValueType};

/// A value of an item, looked at where it stands. Cheap to copy.
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
/// let (name, list) = packed.peek().last().ok_or("no attribute")?;
/// let mut elements = list.elements().ok_or("no list")?;
/// assert_eq!((name, elements.len()), ("list", 2));
/// assert_eq!(elements.next().and_then(|first| first.as_s()), Some("a"));
/// assert_eq!(elements.next().map(|second| second.to_value()), Some(Value::from(7)));
/// # Ok::<(), &'static str>(())
/// ```
#[derive(Clone, Copy)]
pub struct Peek<'i>(At<'i>);

#[derive(Clone, Copy)]
enum At<'i> {
    Open(&'i Value),
    /// The bytes begin with the value.
    Packed(Input<'i>),
}

impl Item {
    /// The attributes in the order of their names, looked at where they stand.
    pub fn peek(&self) -> Attributes<'_> {
        match &self.form {
            Form::Open(attributes) => Attributes {
                steps: Steps::Open(attributes.iter()),
                known: None,
            },
            Form::Packed(packed) => Attributes {
                steps: Steps::packed(packed.attributes_input()),
                known: Some((packed, 0)),
            },
        }
    }

    /// An attribute, looked at where it stands.
    pub fn peek_at(&self, name: &str) -> Option<Peek<'_>> {
        match &self.form {
            Form::Open(_) => self.get(name).map(|value| Peek(At::Open(value))),
            Form::Packed(packed) => packed.find(name).map(|(_, value)| Peek(At::Packed(value))),
        }
    }
}

/// What an open value and a packed one both say.
macro_rules! peeks {
    ($( $(#[$doc:meta])* $name:ident -> $type:ty: $packed:ident; )+) => {$(
        $(#[$doc])*
        pub fn $name(self) -> $type {
            match self.0 {
                At::Open(value) => value.$name(),
                At::Packed(input) => input.$packed(),
            }
        }
    )+};
}

impl<'i> Peek<'i> {
    peeks! {
        /// The type of the value.
        value_type -> ValueType: value_type;
        /// The text, if it is a string.
        as_s -> Option<&'i str>: peek_text;
        /// The number, if it is one.
        as_n -> Option<Number>: peek_number;
        /// The bytes, if it is binary.
        as_b -> Option<&'i [u8]>: peek_bytes;
    }

    /// The attributes in the order of their names, if it is a map.
    pub fn attributes(self) -> Option<Attributes<'i>> {
        match self.0 {
            At::Open(value) => value.as_m().map(Item::peek),
            At::Packed(input) => Some(Attributes {
                steps: Steps::packed(input.peek_map()?),
                known: None,
            }),
        }
    }

    /// The elements, if it is a list.
    pub fn elements(self) -> Option<Elements<'i>> {
        Some(Elements(match self.0 {
            At::Open(value) => Steps::Open(value.as_l()?.iter()),
            At::Packed(input) => Steps::packed(input.peek_list()?),
        }))
    }

    /// What it weighs, as [`value_size`] tells it.
    pub fn size(self) -> usize {
        if let At::Open(value) = self.0 {
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

    /// The value itself.
    pub fn to_value(self) -> Value {
        match self.0 {
            At::Open(value) => value.clone(),
            At::Packed(input) => input.make(),
        }
    }
}

/// Goes through a container.
#[derive(Clone)]
enum Steps<'i, T> {
    Open(slice::Iter<'i, T>),
    Packed { input: Input<'i>, left: usize },
}

impl<'i, T> Steps<'i, T> {
    const fn packed((input, left): (Input<'i>, usize)) -> Self {
        Self::Packed { input, left }
    }

    fn len(&self) -> usize {
        match self {
            Self::Open(rest) => rest.len(),
            Self::Packed { left, .. } => *left,
        }
    }
}

/// Attributes looked at where they stand: see [`Item::peek`].
#[derive(Clone)]
pub struct Attributes<'i> {
    steps: Steps<'i, (Name, Value)>,
    /// The item whose attributes they are, and how many of them were taken: it may know where the next begins.
    known: Option<(&'i Packed, usize)>,
}

impl<'i> Iterator for Attributes<'i> {
    type Item = (&'i str, Peek<'i>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.steps {
            Steps::Open(rest) => {
                let (name, value) = rest.next()?;
                Some((name, Peek(At::Open(value))))
            }
            Steps::Packed { input, left } => {
                *left = left.checked_sub(1)?;
                let name = input.take_name();
                let value = *input;
                let next = self.known.as_mut().and_then(|(packed, taken)| {
                    *taken += 1;
                    packed.input_at(*taken)
                });
                match next {
                    Some(next) => *input = next,
                    None if *left == 0 => {}
                    None => input.pass(),
                }
                Some((name, Peek(At::Packed(value))))
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.steps.len(), Some(self.steps.len()))
    }
}

impl ExactSizeIterator for Attributes<'_> {}

/// Elements of a list looked at where they stand: see [`Peek::elements`].
#[derive(Clone)]
pub struct Elements<'i>(Steps<'i, Value>);

impl<'i> Iterator for Elements<'i> {
    type Item = Peek<'i>;

    #[inline]
    fn next(&mut self) -> Option<Peek<'i>> {
        match &mut self.0 {
            Steps::Open(rest) => rest.next().map(|value| Peek(At::Open(value))),
            Steps::Packed { input, left } => {
                *left = left.checked_sub(1)?;
                let value = *input;
                if *left > 0 {
                    input.pass();
                }
                Some(Peek(At::Packed(value)))
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

    fn elements(peek: Peek<'_>) -> Option<Vec<Value>> {
        Some(peek.elements()?.map(Peek::to_value).collect())
    }

    fn attributes(peek: Peek<'_>) -> Option<Vec<(&str, Value)>> {
        let attributes = peek.attributes()?;
        let attributes = attributes.map(|(name, value)| (name, value.to_value()));
        Some(attributes.collect())
    }

    #[test]
    fn what_is_packed_is_seen_as_what_is_open() {
        let open = every_type();
        let packed = packed(&open);
        assert_eq!(open.peek().len(), packed.peek().len());
        for ((a, x), (b, y)) in open.peek().zip(packed.peek()) {
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
    fn attributes_are_found_beyond_those_whose_places_are_remembered() {
        let item: Item = (0..40)
            .map(|n| (format!("{n:02}"), vec![Value::from(n); n as usize]))
            .collect();
        let packed = packed(&item);
        let seen: Item = packed.peek().map(|(n, v)| (n, v.to_value())).collect();
        assert_eq!(seen, item);
    }

    #[test]
    fn one_type_is_not_taken_for_another() {
        for item in [every_type(), packed(&every_type())] {
            for (name, value) in item.peek() {
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
