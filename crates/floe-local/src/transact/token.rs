//! The tokens of transactions: a transaction that was answered with success is answered the same way again, and
//! applied once, for ten minutes, also after a restart. Transactions that fail are not remembered.

use floe_store::limits::TOKEN_RETENTION;
use floe_store::{Error, Result};

use crate::group::Group;
use crate::kv::Space;
use crate::layout::record::{TokenRecord, token_key};
use crate::locks::lock;
use crate::tokens::{TokenMoment, oldest_slot, slot};

/// What tells a transaction with a token from others.
#[derive(Clone, Debug)]
pub(super) struct Token {
    /// The token.
    pub(super) text: String,
    /// What the request does.
    pub(super) fingerprint: u128,
}

impl Token {
    /// What was answered to the request with this token, if it was applied before.
    ///
    /// # Errors
    ///
    /// [`Error::IdempotentParameterMismatch`] if the token was used for another request.
    pub(super) fn recall(&self, group: &Group<'_>) -> Result<Option<TokenRecord>> {
        let TokenMoment { now, horizon, .. } = group.token_moment();
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

    /// Remembers that the request was applied.
    pub(super) fn remember(&self, group: &mut Group<'_>, sizes: Vec<usize>) {
        let TokenMoment { now, horizon, .. } = group.token_moment();
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
