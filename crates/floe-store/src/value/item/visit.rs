//! Visits an item front to back, without creating values for packed attributes.
//!
//! For conversions to another form, such as text, which need every value once and only briefly.

use super::{Form, Item};
use crate::number::Number;
use crate::value::Value;

/// Receives the contents of an item, in the order of attribute names.
///
/// ```
/// use floe_store::Item;
/// use floe_store::item::{Container, ItemVisitor, Scalar};
///
/// /// Sums the lengths of all strings.
/// struct Letters(usize);
///
/// impl ItemVisitor for Letters {
///     fn name(&mut self, _: &str) {}
///     fn scalar(&mut self, scalar: Scalar<'_>) {
///         if let Scalar::S(text) = scalar {
///             self.0 += text.len();
///         }
///     }
///     fn begin(&mut self, _: Container) {}
///     fn element(&mut self, element: Scalar<'_>) {
///         self.scalar(element);
///     }
///     fn end(&mut self, _: Container) {}
/// }
///
/// let mut letters = Letters(0);
/// Item::new().with("id", "o-1").with("quantity", 3).visit(&mut letters);
/// assert_eq!(letters.0, 3);
/// ```
pub trait ItemVisitor {
    /// The name of an attribute of the item or of a map in it. Its value follows.
    fn name(&mut self, name: &str);

    /// A scalar value.
    fn scalar(&mut self, scalar: Scalar<'_>);

    /// The start of a map, a list or a set.
    fn begin(&mut self, container: Container);

    /// An element of a set.
    fn element(&mut self, element: Scalar<'_>);

    /// The end of a map, a list or a set.
    fn end(&mut self, container: Container);
}

/// A scalar value, or an element of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// A string.
    S(&'a str),
    /// A number.
    N(Number),
    /// Bytes.
    B(&'a [u8]),
    /// True or false.
    Bool(bool),
    /// Null.
    Null,
}

/// A value with elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// A map.
    M,
    /// A list.
    L,
    /// A set of strings.
    Ss,
    /// A set of numbers.
    Ns,
    /// A set of bytes.
    Bs,
}

impl Item {
    /// Calls the visitor for everything in the item. There is no `begin` and `end` for the item itself.
    pub fn visit(&self, visitor: &mut impl ItemVisitor) {
        match &self.form {
            Form::Packed(packed) => packed.visit(visitor),
            Form::Unpacked(attributes) => {
                for (name, value) in attributes {
                    visitor.name(name);
                    visit_value(value, visitor);
                }
            }
        }
    }
}

fn visit_value(value: &Value, visitor: &mut impl ItemVisitor) {
    match value {
        Value::S(text) => visitor.scalar(Scalar::S(text)),
        Value::N(number) => visitor.scalar(Scalar::N(*number)),
        Value::B(bytes) => visitor.scalar(Scalar::B(bytes)),
        Value::Bool(flag) => visitor.scalar(Scalar::Bool(*flag)),
        Value::Null => visitor.scalar(Scalar::Null),
        Value::M(map) => {
            visitor.begin(Container::M);
            map.visit(visitor);
            visitor.end(Container::M);
        }
        Value::L(list) => {
            visitor.begin(Container::L);
            list.iter().for_each(|value| visit_value(value, visitor));
            visitor.end(Container::L);
        }
        Value::Ss(set) => visit_set(visitor, Container::Ss, set.iter().map(|s| Scalar::S(s))),
        Value::Ns(set) => visit_set(visitor, Container::Ns, set.iter().map(|n| Scalar::N(*n))),
        Value::Bs(set) => visit_set(visitor, Container::Bs, set.iter().map(|b| Scalar::B(b))),
    }
}

fn visit_set<'a>(
    visitor: &mut impl ItemVisitor,
    container: Container,
    elements: impl Iterator<Item = Scalar<'a>>,
) {
    visitor.begin(container);
    elements.for_each(|element| visitor.element(element));
    visitor.end(container);
}
