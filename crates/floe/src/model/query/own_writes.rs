//! What a transaction has written before a query: its results contain it as if it were stored.
//!
//! The store does not know the changes of a transaction before the commit. So items that the transaction has created or
//! changed are taken from the session instead: they are matched with the query here, and merged in its order. As for every
//! item that a transaction has used before, a row of such an item needs
//! [`cache_rows`](crate::tx::TxOptions::cache_rows).

use std::cmp::Ordering;
use std::collections::VecDeque;

use floe_store::expr::{Condition, KeyCondition, KeyOp, Path};
use floe_store::{Item, Timestamp};

use super::reader::ReadPlan;
use crate::error::{Error, Result};
use crate::model::changes::{Items, WrittenItem};
use crate::model::keys::EncodedKey;
use crate::model::schema::{PARTITION_ATTRIBUTE, SORT_ATTRIBUTE, Schema};
use crate::tx::Tx;

/// The items that the transaction of a query has written.
#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    /// All of them: what the store returns of them is out of date.
    keys: Vec<EncodedKey>,
    /// Those that match the query and were not returned yet, in its order.
    pub(super) matching: VecDeque<Item>,
    /// Whether their rows can be returned.
    caches_rows: bool,
}

impl OwnWrites {
    /// What a transaction has written of the table of a plan, after the start of the query.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if it has written an item without reading it that the query may
    /// contain.
    pub(super) fn of(tx: &Tx, plan: &ReadPlan, start: Option<&Item>) -> Result<Self> {
        let items = Items::of(tx);
        let written = items.written(plan.schema.table)?;
        if written.is_empty() {
            return Ok(Self::default());
        }
        let mut own = Self {
            caches_rows: items.caches_rows,
            ..Self::default()
        };
        let now = tx.db().engine().now();
        let mut matching = Vec::new();
        for WrittenItem { key, item } in written {
            match item {
                Some(item) => {
                    if plan.contains(&item, now) {
                        matching.push(item);
                    }
                    own.keys.push(key);
                }
                None if plan.may_contain(&key) => return Err(unknown(plan.schema, &key)),
                None => {}
            }
        }
        if let Some(start) = start.filter(|_| plan.range.is_some()) {
            matching.retain(|item| plan.order(item, start).is_gt());
        }
        matching.sort_by(|one, other| plan.order(one, other));
        own.matching = matching.into();
        Ok(own)
    }

    /// Whether the next result is an own item rather than the next one that the store has returned. Without an order, own
    /// items come last.
    pub(super) fn is_next(&self, plan: &ReadPlan, stored: Option<&Item>, is_done: bool) -> bool {
        match (self.matching.front(), stored) {
            (None, _) => false,
            (Some(own), Some(stored)) => plan.range.is_some() && plan.order(own, stored).is_le(),
            (Some(_), None) => is_done,
        }
    }

    /// Whether an item that the store has returned is left out, because its own version is a result where that matches.
    pub(super) fn replaces(&self, schema: &Schema, stored: &Item) -> bool {
        self.caches_rows
            && !self.keys.is_empty()
            && EncodedKey::of_item(schema, stored).is_ok_and(|key| self.keys.contains(&key))
    }
}

fn unknown(schema: &Schema, key: &EncodedKey) -> Error {
    let what = "the query may contain an item that the transaction has written without reading it; query first, or \
                get the item and change its row";
    Error::invalid_use(format!("{what}: model={} key={key}", schema.model))
}

impl ReadPlan {
    /// Whether the query returns an item of this content.
    fn contains(&self, item: &Item, now: Timestamp) -> bool {
        let holds = |condition: Option<&Condition>| condition.is_none_or(|it| it.evaluate(item));
        let range = self.range.as_ref().map(|range| evaluable(&range.condition));
        let is_first_segment = self.segment.is_none_or(|segment| segment.index == 0);
        let mut indexed = self.index_attributes();
        is_first_segment
            && holds(range.as_ref())
            && indexed.all(|name| item.contains(name))
            && self.matches(item, now)
            && holds(self.is_own_model().as_ref())
            && holds(self.filter.as_ref())
    }

    /// Whether the query may return the item of this key, whatever its content.
    fn may_contain(&self, key: &EncodedKey) -> bool {
        let item = key.to_item();
        let Some(range) = self.range.as_ref().filter(|_| self.index.is_none()) else {
            return self.is_own_model().is_none_or(|own| own.evaluate(&item));
        };
        let is_in_bounds = range
            .bounds
            .as_ref()
            .is_none_or(|bounds| bounds.contains(&item));
        is_in_bounds && evaluable(&range.condition).evaluate(&item)
    }

    /// The order of two items in the results.
    fn order(&self, one: &Item, other: &Item) -> Ordering {
        let sort = self.index.iter().flat_map(|index| index.sort.iter());
        let sort = sort.filter_map(|name| Some(self.schema.field(name)?.attribute));
        let mut names = sort.chain([PARTITION_ATTRIBUTE, SORT_ATTRIBUTE]);
        let order = names.find_map(|name| {
            let order = one.get(name)?.compare(other.get(name)?)?;
            order.is_ne().then_some(order)
        });
        let order = order.unwrap_or(Ordering::Equal);
        if self.forward { order } else { order.reverse() }
    }
}

/// A key condition as a condition on an item.
fn evaluable(condition: &KeyCondition) -> Condition {
    let terms = condition.terms.iter().map(|(name, op)| {
        let path = Path::attribute(name.clone());
        match op.clone() {
            KeyOp::Eq(value) => Condition::eq(path, value),
            KeyOp::Lt(value) => Condition::lt(path, value),
            KeyOp::Le(value) => Condition::le(path, value),
            KeyOp::Gt(value) => Condition::gt(path, value),
            KeyOp::Ge(value) => Condition::ge(path, value),
            KeyOp::Between(low, high) => Condition::between(path, low, high),
            KeyOp::BeginsWith(prefix) => Condition::begins_with(path, prefix),
        }
    });
    let exists = || Condition::attribute_exists(Path::attribute(PARTITION_ATTRIBUTE));
    terms.reduce(Condition::and).unwrap_or_else(exists)
}
