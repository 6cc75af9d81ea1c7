//! Batches that are processed only in part.

use std::collections::BTreeMap;

use floe_store::op::{BatchGetItem, BatchWrite, BatchWriteItem, KeysAndAttributes};

use super::control::Attempt;
use super::kind::FaultKind;

/// Removes from a request the keys to leave unprocessed, and returns them.
pub(super) fn take_unprocessed_keys(
    attempt: &Attempt<'_>,
    request: &mut BatchGetItem,
) -> BTreeMap<String, KeysAndAttributes> {
    let total = request.requests.values().map(|r| r.keys.len()).sum();
    let Some(mut unprocessed_parts) = UnprocessedParts::choose(attempt, total) else {
        return BTreeMap::new();
    };
    let mut left = BTreeMap::new();
    for (table, request) in &mut request.requests {
        let keys = unprocessed_parts.split(&mut request.keys);
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

/// Removes from a request the writes to leave unprocessed, and returns them.
pub(super) fn take_unprocessed_writes(
    attempt: &Attempt<'_>,
    request: &mut BatchWriteItem,
) -> BTreeMap<String, Vec<BatchWrite>> {
    let total = request.requests.values().map(Vec::len).sum();
    let Some(mut unprocessed_parts) = UnprocessedParts::choose(attempt, total) else {
        return BTreeMap::new();
    };
    let mut left = BTreeMap::new();
    for (table, writes) in &mut request.requests {
        let unprocessed = unprocessed_parts.split(writes);
        if !unprocessed.is_empty() {
            left.insert(table.clone(), unprocessed);
        }
    }
    request.requests.retain(|_, writes| !writes.is_empty());
    left
}

/// Chooses the parts of a batch to leave unprocessed: each with probability 1/2, at least one, and not all.
struct UnprocessedParts<'a> {
    attempt: &'a Attempt<'a>,
    /// A part that is always left unprocessed, and one that is always processed.
    unprocessed: u64,
    processed: u64,
    /// The index of the next part.
    at: u64,
}

impl<'a> UnprocessedParts<'a> {
    fn choose(attempt: &'a Attempt<'a>, total: usize) -> Option<Self> {
        // A batch of one part is processed or rejected as a whole.
        if total < 2 || !attempt.has_fault(FaultKind::PartialBatch) {
            return None;
        }
        let total = total as u64;
        let roll = |part: u64| attempt.random(FaultKind::PartialBatch, &[part]);
        let unprocessed = roll(1).checked_rem(total)?;
        let step = roll(2).checked_rem(total - 1)?;
        attempt.record_fault(FaultKind::PartialBatch, format!("parts={total}"));
        Some(Self {
            attempt,
            unprocessed,
            processed: (unprocessed + 1 + step).checked_rem(total)?,
            at: 0,
        })
    }

    /// Removes the unprocessed ones from the next parts and returns them. Both keep their order.
    fn split<T>(&mut self, parts: &mut Vec<T>) -> Vec<T> {
        parts.extract_if(.., |_| self.is_unprocessed()).collect()
    }

    fn is_unprocessed(&mut self) -> bool {
        let at = self.at;
        self.at += 1;
        let chance = self.attempt.random(FaultKind::PartialBatch, &[3, at]) & 1 == 0;
        at == self.unprocessed || (at != self.processed && chance)
    }
}
