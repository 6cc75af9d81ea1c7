//! Walks over an item from front to back, without making values of what is packed.
//!
//! Who passes an item on in another form, as text for instance, needs every value once and none of them for long.

use super::{Form, Item};
use crate::number::Number;
use crate::value::Value;

/// Is told of everything in an item, in the order of the names of its attributes.
///
/// ```
/// use floe_store::Item;
/// use floe_store::item::{Container, ItemVisitor, Scalar};
///
/// /// Adds up the lengths of all strings.
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
    /// The name of an attribute, of the item or of a map in it. Its value follows.
    fn name(&mut self, name: &str);

    /// A value that is neither container nor set.
    fn scalar(&mut self, scalar: Scalar<'_>);

    /// The beginning of a map, a list or a set.
    fn begin(&mut self, container: Container);

    /// An element of a set.
    fn element(&mut self, element: Scalar<'_>);

    /// The end of a map, a list or a set.
    fn end(&mut self, container: Container);
}

/// A value that is neither container nor set, or an element of a set.
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

/// A value that holds others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// Named values.
    M,
    /// Values.
    L,
    /// A set of strings.
    Ss,
    /// A set of numbers.
    Ns,
    /// A set of bytes.
    Bs,
}

impl Item {
    /// Tells a visitor of everything in the item. The item itself is no map to begin and end.
    pub fn visit(&self, visitor: &mut impl ItemVisitor) {
        match &self.form {
            Form::Packed(packed) => packed.visit(visitor),
            Form::Open(attributes) => {
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
