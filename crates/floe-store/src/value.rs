//! The ten types of attribute values.
//!
//! Equality is DynamoDB's: numbers compare by numeric value, sets regardless of order, maps and lists deeply. It
//! follows from the representation (numbers are normalized, sets and maps sorted), so `==`, [`Hash`] and the bytes on
//! disk always agree.

use std::cmp::Ordering;
use std::fmt;

use crate::declare::named;
use crate::number::Number;
use crate::text::Text;

pub mod item;
pub(crate) mod size;

use item::Item;

/// An attribute value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// A UTF-8 string, ordered by its bytes.
    S(Text),
    /// An exact decimal number of up to 38 digits.
    N(Number),
    /// Bytes, ordered as unsigned integers.
    B(Vec<u8>),
    /// True or false.
    Bool(bool),
    /// Null: the attribute exists without a value.
    Null,
    /// A map from names to values.
    M(Item),
    /// A list of values of any type.
    L(Vec<Value>),
    /// A set of strings.
    Ss(Set<Text>),
    /// A set of numbers.
    Ns(Set<Number>),
    /// A set of byte strings.
    Bs(Set<Vec<u8>>),
}

named! {
    /// The type of a [`Value`], with DynamoDB's names.
    #[derive(PartialOrd, Ord)]
    pub enum ValueType {
        /// String.
        S = "S",
        /// Number.
        N = "N",
        /// Binary.
        B = "B",
        /// Boolean.
        Bool = "BOOL",
        /// Null.
        Null = "NULL",
        /// Map.
        M = "M",
        /// List.
        L = "L",
        /// String set.
        Ss = "SS",
        /// Number set.
        Ns = "NS",
        /// Binary set.
        Bs = "BS",
    }
}

macro_rules! accessors {
    ($( $(#[$doc:meta])* $name:ident -> $type:ty: $variant:ident($held:ident) => $part:expr; )+) => {$(
        $(#[$doc])*
        pub fn $name(&self) -> Option<$type> {
            match self {
                Self::$variant($held) => Some($part),
                _ => None,
            }
        }
    )+};
}

impl Value {
    /// Returns the type of the value.
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::S(_) => ValueType::S,
            Self::N(_) => ValueType::N,
            Self::B(_) => ValueType::B,
            Self::Bool(_) => ValueType::Bool,
            Self::Null => ValueType::Null,
            Self::M(_) => ValueType::M,
            Self::L(_) => ValueType::L,
            Self::Ss(_) => ValueType::Ss,
            Self::Ns(_) => ValueType::Ns,
            Self::Bs(_) => ValueType::Bs,
        }
    }

    /// Compares two values of a type that DynamoDB orders: strings, numbers or binary. Otherwise returns `None`.
    ///
    /// ```
    /// use floe_store::Value;
    /// use std::cmp::Ordering;
    ///
    /// assert_eq!(Value::from(2).compare(&Value::from(10)), Some(Ordering::Less));
    /// assert_eq!(Value::from(2).compare(&Value::from("10")), None);
    /// ```
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::S(a), Self::S(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::N(a), Self::N(b)) => Some(a.cmp(b)),
            (Self::B(a), Self::B(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// Returns the nesting depth: 1 for a scalar or a set, one more for each surrounding map or list.
    pub fn depth(&self) -> usize {
        match self {
            Self::M(map) => 1 + map.iter().map(|(_, v)| v.depth()).max().unwrap_or(0),
            Self::L(list) => 1 + list.iter().map(Self::depth).max().unwrap_or(0),
            _ => 1,
        }
    }

    accessors! {
        /// The text, if the value is a string.
        as_s -> &str: S(text) => text;
        /// The number, if the value is one.
        as_n -> Number: N(number) => *number;
        /// The bytes, if the value is binary.
        as_b -> &[u8]: B(bytes) => bytes;
        /// The map, if the value is one.
        as_m -> &Item: M(map) => map;
        /// The list, if the value is one.
        as_l -> &[Value]: L(list) => list;
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::S(s) => write!(f, "{s:?}"),
            Self::N(n) => write!(f, "{n}"),
            Self::B(b) => write!(f, "b\"{}\"", b.escape_ascii()),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Null => f.write_str("null"),
            Self::M(m) => write!(f, "{m:?}"),
            Self::L(l) => f.debug_list().entries(l).finish(),
            Self::Ss(s) => f.debug_set().entries(s).finish(),
            Self::Ns(s) => f.debug_set().entries(s).finish(),
            Self::Bs(s) => f.debug_set().entries(s).finish(),
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $value:ident => $to:expr;)*) => {$(
        impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $to
            }
        }
    )*};
}

value_from! {
    &str => v => Self::S(v.into());
    String => v => Self::S(v.into());
    Text => v => Self::S(v);
    bool => v => Self::Bool(v);
    Number => v => Self::N(v);
    i32 => v => Self::N(v.into());
    u32 => v => Self::N(v.into());
    i64 => v => Self::N(v.into());
    u64 => v => Self::N(v.into());
    Vec<u8> => v => Self::B(v);
    &[u8] => v => Self::B(v.to_vec());
    Vec<Value> => v => Self::L(v);
    Item => v => Self::M(v);
    Set<Text> => v => Self::Ss(v);
    Set<String> => v => Self::Ss(Set(v.0.into_iter().map(Text::from).collect()));
    Set<Number> => v => Self::Ns(v);
    Set<Vec<u8>> => v => Self::Bs(v);
}

/// A nonempty set of distinct strings, numbers or byte strings.
///
/// ```
/// use floe_store::{Set, SetError, Text};
///
/// let tags = Set::new(["b", "a"].map(Text::from))?;
/// assert!(tags.contains("a"));
/// assert_eq!(Set::<Text>::new([]), Err(SetError::Empty));
/// # Ok::<(), SetError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Set<T>(Vec<T>);

/// Why a collection is not a [`Set`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SetError {
    /// There is no element; DynamoDB has no empty sets.
    Empty,
    /// An element occurs twice.
    Duplicate,
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "a set must not be empty",
            Self::Duplicate => "a set must not contain an element twice",
        })
    }
}

impl std::error::Error for SetError {}

impl<T: Ord> Set<T> {
    /// Creates a set of these elements.
    ///
    /// # Errors
    ///
    /// Returns an error if there are none, or if one occurs twice.
    pub fn new(elements: impl IntoIterator<Item = T>) -> Result<Self, SetError> {
        let mut elements: Vec<T> = elements.into_iter().collect();
        let given = elements.len();
        elements.sort_unstable();
        elements.dedup();
        match elements.len() {
            0 => Err(SetError::Empty),
            kept if kept < given => Err(SetError::Duplicate),
            _ => Ok(Self(elements)),
        }
    }

    /// Whether the element is in the set.
    pub fn contains<Q>(&self, element: &Q) -> bool
    where
        T: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let found = self.0.binary_search_by(|probe| probe.borrow().cmp(element));
        found.is_ok()
    }

    /// Returns the union of the sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        let mut elements = self.0;
        elements.extend(other.0);
        elements.sort_unstable();
        elements.dedup();
        Self(elements)
    }

    /// Returns the elements that are not in `other`, or `None` if no element is left.
    pub fn difference(self, other: &Self) -> Option<Self> {
        let mut elements = self.0;
        elements.retain(|e| !other.contains(e));
        (!elements.is_empty()).then_some(Self(elements))
    }
}

impl<T> Set<T> {
    /// A set of strictly ascending elements, at least one.
    pub(crate) const fn from_sorted(elements: Vec<T>) -> Self {
        Self(elements)
    }

    /// Returns the number of elements, at least one.
    #[expect(clippy::len_without_is_empty, reason = "a set is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the elements in ascending order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// Returns the elements in ascending order.
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a Set<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T> IntoIterator for Set<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for Set<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_ignores_the_order_of_sets_and_maps() {
        let a = Set::new(["x", "y"].map(Text::from)).unwrap();
        let b = Set::new(["y", "x"].map(Text::from)).unwrap();
        assert_eq!(Value::Ss(a), Value::Ss(b));
        let a = Item::new().with("x", 1).with("y", 2);
        let b = Item::new().with("y", 2).with("x", 1);
        assert_eq!(Value::M(a), Value::M(b));
    }

    #[test]
    fn depth_counts_maps_and_lists() {
        assert_eq!(Value::from(1).depth(), 1);
        assert_eq!(Value::L(vec![]).depth(), 1);
        let nested = Value::L(vec![Value::M(Item::new().with("a", 1))]);
        assert_eq!(nested.depth(), 3);
    }

    #[test]
    fn sets_reject_duplicates_and_emptiness() {
        assert_eq!(Set::<Number>::new([]), Err(SetError::Empty));
        let one = Number::from(1);
        assert_eq!(Set::new([one, one]), Err(SetError::Duplicate));
        let set = Set::new([one, Number::from(2)]).unwrap();
        let two = Set::new([Number::from(2)]).unwrap();
        assert_eq!(set.clone().difference(&two).unwrap().as_slice(), [one]);
        assert_eq!(two.clone().difference(&set), None);
        assert_eq!(two.union(set.clone()), set);
    }
}
