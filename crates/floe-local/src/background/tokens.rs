//! Removes expired idempotency tokens.

use floe_store::Result;

use crate::commit::Committer;
use crate::group::{DiskUse, Group};
use crate::kv::{Direction, Space};
use crate::layout::record::decode_token_expiry;
use crate::locks::lock;

/// Maximum number of tokens removed in a step.
const EXPIRE_STEP: usize = 1000;

/// Removes expired tokens, up to [`EXPIRE_STEP`] of them. Returns how many.
pub(super) fn expire_tokens(committer: &Committer) -> Result<usize> {
    let shared = &committer.shared;
    let horizon = lock(&shared.token_clock).read(&shared.options.env).horizon;
    let snapshot = shared.kv.snapshot();
    let mut keys = Vec::new();
    for entry in snapshot
        .prefix(Space::Tokens, &[], Direction::Forward)
        .take(EXPIRE_STEP)
    {
        let (key, value) = entry?;
        if decode_token_expiry(&value)? > horizon {
            break;
        }
        keys.push(key);
    }
    drop(snapshot);
    if keys.is_empty() {
        return Ok(0);
    }
    // An expired token in the store is never written again, because its slot has passed.
    let removed = keys.len();
    let remove = move |group: &mut Group<'_>| {
        for key in keys {
            group.remove(Space::Tokens, key);
        }
        Ok(removed)
    };
    committer.run(DiskUse::Frees, remove).wait()
}
