//! Evaluates conditions.
//!
//! Types are never converted. A missing value is equal to nothing: every comparison with a path that has no value, or
//! with the size of a value that has none, is false except `<>`.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::condition::{Comparator, Condition, Operand};
use super::key::KeyOp;
use crate::item::Item;
use crate::number::Number;
use crate::value::Value;

impl Condition {
    /// Whether the condition holds for an item. A missing item counts as empty.
    ///
    /// ```
    /// use floe_store::{Item, expr::{Condition, Operand, Path}};
    ///
    /// let tags = || Path::attribute("tags");
    /// let few = Condition::lt(Operand::Size(tags()), 3);
    /// assert!(few.evaluate(&Item::new().with("tags", "ab")));
    /// assert!(!few.evaluate(&Item::new()));
    /// assert!(few.not().evaluate(&Item::new()));
    /// ```
    pub fn evaluate(&self, item: &Item) -> bool {
        match self {
            Self::Compare(left, comparator, right) => {
                comparator.holds(left.value(item).as_deref(), right.value(item).as_deref())
            }
            Self::Between(operand, low, high) => {
                let value = operand.value(item);
                Comparator::Ge.holds(value.as_deref(), low.value(item).as_deref())
                    && Comparator::Le.holds(value.as_deref(), high.value(item).as_deref())
            }
            Self::In(operand, choices) => operand.value(item).is_some_and(|value| {
                let mut choices = choices.iter().filter_map(|choice| choice.value(item));
                choices.any(|choice| choice == value)
            }),
            Self::And(left, right) => left.evaluate(item) && right.evaluate(item),
            Self::Or(left, right) => left.evaluate(item) || right.evaluate(item),
            Self::Not(inner) => !inner.evaluate(item),
            Self::AttributeExists(path) => path.resolve(item).is_some(),
            Self::AttributeNotExists(path) => path.resolve(item).is_none(),
            Self::AttributeType(operand, value_type) => operand
                .value(item)
                .is_some_and(|value| value.value_type() == *value_type),
            Self::BeginsWith(operand, prefix) => both(operand, prefix, item, begins_with),
            Self::Contains(operand, element) => both(operand, element, item, contains),
        }
    }
}

/// Whether both operands have values and the predicate holds for them.
fn both(
    left: &Operand,
    right: &Operand,
    item: &Item,
    holds: impl Fn(&Value, &Value) -> bool,
) -> bool {
    match (left.value(item), right.value(item)) {
        (Some(left), Some(right)) => holds(&left, &right),
        _ => false,
    }
}

impl Operand {
    /// Returns the value of the operand for an item, if it has one.
    fn value<'a>(&'a self, item: &'a Item) -> Option<Cow<'a, Value>> {
        match self {
            Self::Path(path) => path.resolve(item).map(Cow::Borrowed),
            Self::Value(value) => Some(Cow::Borrowed(value)),
            // Does not allocate: a number is stored inline.
            Self::Size(path) => size(path.resolve(item)?).map(|size| Cow::Owned(Value::N(size))),
        }
    }
}

impl KeyOp {
    /// Whether a key value satisfies the operator.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        let is = |comparator: Comparator, other| comparator.holds(Some(value), Some(other));
        match self {
            Self::Between(low, high) => is(Comparator::Ge, low) && is(Comparator::Le, high),
            Self::BeginsWith(prefix) => begins_with(value, prefix),
            _ => self
                .comparator()
                .is_some_and(|comparator| self.values().all(|other| is(comparator, other))),
        }
    }
}

impl Comparator {
    fn holds(self, left: Option<&Value>, right: Option<&Value>) -> bool {
        let (Some(left), Some(right)) = (left, right) else {
            return self == Self::Ne;
        };
        match self {
            Self::Eq => left == right,
            Self::Ne => left != right,
            Self::Lt => left.compare(right).is_some_and(Ordering::is_lt),
            Self::Le => left.compare(right).is_some_and(Ordering::is_le),
            Self::Gt => left.compare(right).is_some_and(Ordering::is_gt),
            Self::Ge => left.compare(right).is_some_and(Ordering::is_ge),
        }
    }
}

/// The result of the `size` function: UTF-16 units of a string, bytes of a binary, number of entries of a container or
/// set. Numbers, booleans and null have no size.
pub(super) fn size(value: &Value) -> Option<Number> {
    let size = match value {
        Value::S(text) if text.is_ascii() => text.len(),
        Value::S(text) => text.encode_utf16().count(),
        Value::B(bytes) => bytes.len(),
        Value::M(map) => map.len(),
        Value::L(list) => list.len(),
        Value::Ss(set) => set.len(),
        Value::Ns(set) => set.len(),
        Value::Bs(set) => set.len(),
        Value::N(_) | Value::Bool(_) | Value::Null => return None,
    };
    Some(Number::from(size as u64))
}

fn begins_with(value: &Value, prefix: &Value) -> bool {
    match (value, prefix) {
        (Value::S(text), Value::S(prefix)) => text.starts_with(prefix.as_str()),
        (Value::B(bytes), Value::B(prefix)) => bytes.starts_with(prefix),
        _ => false,
    }
}

fn contains(container: &Value, element: &Value) -> bool {
    match (container, element) {
        (Value::S(text), Value::S(part)) => text.contains(part.as_str()),
        (Value::B(bytes), Value::B(part)) => contains_bytes(bytes, part),
        (Value::Ss(set), Value::S(element)) => set.contains(element),
        (Value::Ns(set), Value::N(element)) => set.contains(element),
        (Value::Bs(set), Value::B(element)) => set.contains(element),
        (Value::L(list), element) => list.contains(element),
        _ => false,
    }
}

/// Whether `part` occurs in `bytes`, in linear time (Knuth, Morris and Pratt): a filter must not take minutes on two
/// large values crafted to match slowly.
fn contains_bytes(bytes: &[u8], part: &[u8]) -> bool {
    if part.len() > bytes.len() {
        return false;
    }
    // borders[n]: the length of the longest proper prefix of part[..=n] that is also a suffix of it.
    let mut borders: Vec<usize> = Vec::with_capacity(part.len());
    for &byte in part {
        let next = match borders.last() {
            None => 0,
            Some(&matched) => advance(part, &borders, matched, byte),
        };
        borders.push(next);
    }
    let mut matched = 0;
    for &byte in bytes {
        if matched == part.len() {
            break;
        }
        matched = advance(part, &borders, matched, byte);
    }
    matched == part.len()
}

/// Returns how long a prefix of `part` matches after one more byte.
fn advance(part: &[u8], borders: &[usize], mut matched: usize, byte: u8) -> usize {
    loop {
        if part.get(matched) == Some(&byte) {
            return matched + 1;
        }
        let Some(shorter) = matched.checked_sub(1).and_then(|last| borders.get(last)) else {
            return 0;
        };
        matched = *shorter;
    }
}

#[cfg(test)]
mod tests;
