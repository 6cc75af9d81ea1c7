//! The entries that a key condition selects, for the model and for stale pages.

use std::cmp::Ordering;

use floe_store::expr::{KeyOp, KeyRange};
use floe_store::op::ReadPlan;
use floe_store::table::KeyAttribute;
use floe_store::{Item, Value};

/// Whether an entry matches the key condition of a read.
pub(crate) fn contains(plan: &ReadPlan<'_>, range: &KeyRange, entry: &Item) -> bool {
    let key = plan.key();
    let equal = |attributes: &[KeyAttribute], values: &[Value]| {
        let mut pairs = attributes.iter().zip(values);
        pairs.all(|(a, value)| entry.get(&a.name) == Some(value))
    };
    let next = key.sort.get(range.sort_prefix.len());
    let ranged = next.zip(range.range.as_ref());
    equal(&key.partition, &range.partition)
        && equal(&key.sort, &range.sort_prefix)
        && ranged.is_none_or(|(a, op)| {
            entry
                .get(&a.name)
                .is_some_and(|value| matches_operator(value, op))
        })
}

fn matches_operator(value: &Value, op: &KeyOp) -> bool {
    let is = |other: &Value, wanted: fn(Ordering) -> bool| value.compare(other).is_some_and(wanted);
    match op {
        KeyOp::Eq(other) => value == other,
        KeyOp::Lt(other) => is(other, |o| o.is_lt()),
        KeyOp::Le(other) => is(other, |o| o.is_le()),
        KeyOp::Gt(other) => is(other, |o| o.is_gt()),
        KeyOp::Ge(other) => is(other, |o| o.is_ge()),
        KeyOp::Between(low, high) => is(low, |o| o.is_ge()) && is(high, |o| o.is_le()),
        KeyOp::BeginsWith(prefix) => match (value, prefix) {
            (Value::S(text), Value::S(prefix)) => text.starts_with(prefix.as_str()),
            (Value::B(bytes), Value::B(prefix)) => bytes.starts_with(prefix),
            _ => false,
        },
    }
}
