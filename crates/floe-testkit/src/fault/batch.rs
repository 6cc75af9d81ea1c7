//! Batches of which a part is left undone.

use std::collections::BTreeMap;

use floe_store::op::{BatchGetItem, BatchWrite, BatchWriteItem, KeysAndAttributes};

use super::control::Attempt;
use super::kind::FaultKind;

/// Takes out of a request what shall be left undone.
pub(super) fn leave_keys(
    attempt: &Attempt<'_>,
    request: &mut BatchGetItem,
) -> BTreeMap<String, KeysAndAttributes> {
    let total = request.requests.values().map(|r| r.keys.len()).sum();
    let Some(mut leaves) = Leaves::choose(attempt, total) else {
        return BTreeMap::new();
    };
    let mut left = BTreeMap::new();
    for (table, request) in &mut request.requests {
        let keys = leaves.split(&mut request.keys);
        if !keys.is_empty() {
            let rest = KeysAndAttributes {
                keys,
                ..request.clone()
            };
            left.insert(table.clone(), rest);
        }
    }
    request
        .requests
        .retain(|_, request| !request.keys.is_empty());
    left
}

/// Takes out of a request what shall be left undone.
pub(super) fn leave_writes(
    attempt: &Attempt<'_>,
    request: &mut BatchWriteItem,
) -> BTreeMap<String, Vec<BatchWrite>> {
    let total = request.requests.values().map(Vec::len).sum();
    let Some(mut leaves) = Leaves::choose(attempt, total) else {
        return BTreeMap::new();
    };
    let mut left = BTreeMap::new();
    for (table, writes) in &mut request.requests {
        let unprocessed = leaves.split(writes);
        if !unprocessed.is_empty() {
            left.insert(table.clone(), unprocessed);
        }
    }
    request.requests.retain(|_, writes| !writes.is_empty());
    left
}

/// Which parts of a batch are left undone: each with a chance of a half, at least one, and not all.
struct Leaves<'a> {
    attempt: &'a Attempt<'a>,
    /// The part that is left undone in any case, and the one that is done.
    left: u64,
    done: u64,
    /// The next part.
    at: u64,
}

impl<'a> Leaves<'a> {
    fn choose(attempt: &'a Attempt<'a>, total: usize) -> Option<Self> {
        // A batch of one is done or refused; there is no half of it.
        if total < 2 || !attempt.meets(FaultKind::PartialBatch) {
            return None;
        }
        let total = total as u64;
        let roll = |part: u64| attempt.roll(FaultKind::PartialBatch, &[part]);
        let left = roll(1).checked_rem(total)?;
        let step = roll(2).checked_rem(total - 1)?;
        attempt.struck(FaultKind::PartialBatch, format!("parts={total}"));
        Some(Self {
            attempt,
            left,
            done: (left + 1 + step).checked_rem(total)?,
            at: 0,
        })
    }

    /// Takes out of the next parts those that are left undone, and keeps the order of both.
    fn split<T>(&mut self, parts: &mut Vec<T>) -> Vec<T> {
        parts.extract_if(.., |_| self.leaves_next()).collect()
    }

    fn leaves_next(&mut self) -> bool {
        let at = self.at;
        self.at += 1;
        let chance = self.attempt.roll(FaultKind::PartialBatch, &[3, at]) & 1 == 0;
        at == self.left || (at != self.done && chance)
    }
}
