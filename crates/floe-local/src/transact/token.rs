//! Idempotency tokens of transactions: a transaction that succeeded is applied only once for ten minutes, even across a
//! restart, and repeating it returns the same result. Failed transactions are not recorded.

use floe_store::limits::TOKEN_RETENTION;
use floe_store::{Error, Result};

use crate::group::Group;
use crate::kv::Space;
use crate::layout::record::{TokenRecord, token_key};
use crate::locks::lock;
use crate::tokens::{TokenTime, oldest_slot, slot};

/// Identifies a transaction with an idempotency token.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// The text of the token.
    pub(super) text: String,
    /// Fingerprint of the request's content.
    pub(super) fingerprint: u128,
}

impl Token {
    /// Returns the record of the earlier request with this token, if it was applied.
    ///
    /// # Errors
    ///
    /// [`Error::IdempotentParameterMismatch`] if the token was used for another request.
    pub(super) fn find(&self, group: &Group<'_>) -> Result<Option<TokenRecord>> {
        let TokenTime { now, horizon, .. } = group.token_time();
        let recent = &group.shared().recent_tokens;
        let slots = lock(recent).slots(&self.text, oldest_slot(horizon), slot(now));
        for slot in slots {
            let key = token_key(slot, &self.text);
            let Some(bytes) = group.get(Space::Tokens, &key)? else {
                continue;
            };
            let record = TokenRecord::decode(&bytes)?;
            if record.expires <= horizon {
                continue;
            }
            if record.fingerprint != self.fingerprint {
                return Err(Error::IdempotentParameterMismatch);
            }
            return Ok(Some(record));
        }
        Ok(None)
    }

    /// Records that the request was applied.
    pub(super) fn record(&self, group: &mut Group<'_>, sizes: Vec<usize>) {
        let TokenTime { now, horizon, .. } = group.token_time();
        let record = TokenRecord {
            expires: now.plus(TOKEN_RETENTION),
            fingerprint: self.fingerprint,
            sizes,
            returned: None,
        };
        let slot = slot(now);
        let recent = &group.shared().recent_tokens;
        lock(recent).insert(slot, &self.text, oldest_slot(horizon));
        let key = token_key(slot, &self.text);
        group.put(Space::Tokens, key, record.encode());
    }
}
