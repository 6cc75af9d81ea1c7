//! Idempotency tokens: a transaction that was answered with success is answered the same way again, and
//! applied once, for ten minutes, also after a restart. Those of single writes are in [`writes`].
//!
//! Tokens are filed by the slot of time in which they were used, so that a token is found by looking
//! into the few slots that can still be remembered, and expired ones are at the front of the space.
//! Requests that fail are not remembered.

mod clock;
mod recent;
mod writes;

use floe_store::env::Env;
use floe_store::limits::TOKEN_RETENTION;
use floe_store::{Error, Result, Timestamp};

use crate::commit::{Effect, Group};
use crate::engine::Shared;
use crate::kv::{Direction, Snapshot, Space};
use crate::layout::record::{TokenRecord, decode_token_expiry, token_key, token_slot};
pub(crate) use clock::{TokenClock, TokenMoment};
pub(crate) use recent::RecentTokens;
pub(crate) use writes::{WriteToken, WriteTokens};

const SLOT_SECS: u64 = 300;

/// Tokens that one step removes.
const EXPIRE_STEP: usize = 1000;

/// What tells a transaction with a token from others.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    /// The token.
    pub(crate) text: String,
    /// What the request does.
    pub(crate) fingerprint: u128,
}

impl Token {
    /// What was answered to the request with this token, if it was applied before.
    ///
    /// # Errors
    ///
    /// [`Error::IdempotentParameterMismatch`] if the token was used for another request.
    pub(crate) fn recall(&self, group: &Group<'_>) -> Result<Option<TokenRecord>> {
        let TokenMoment { now, horizon, .. } = group.token_moment();
        let slots = {
            let recent = group.shared().recent_tokens();
            recent.slots(&self.text, oldest_slot(horizon), slot(now))
        };
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
    pub(crate) fn remember(&self, group: &mut Group<'_>, sizes: Vec<usize>) {
        let TokenMoment { now, horizon, .. } = group.token_moment();
        let record = TokenRecord {
            expires: now.plus(TOKEN_RETENTION),
            fingerprint: self.fingerprint,
            sizes,
            returned: None,
        };
        let slot = slot(now);
        let mut recent = group.shared().recent_tokens();
        recent.insert(slot, &self.text, oldest_slot(horizon));
        drop(recent);
        let key = token_key(slot, &self.text);
        group.put(Space::Tokens, key, record.encode());
    }
}

/// The first slot whose tokens may still be remembered.
fn oldest_slot(horizon: Timestamp) -> u32 {
    let kept = TOKEN_RETENTION.as_secs().div_ceil(SLOT_SECS);
    slot(horizon).saturating_sub(u32::try_from(kept).unwrap_or(u32::MAX))
}

/// What is known of the tokens that a store holds when it is opened.
///
/// # Errors
///
/// [`Error::Storage`] when they cannot be read.
pub(crate) fn load(snapshot: &Snapshot, horizon: Timestamp) -> Result<RecentTokens> {
    RecentTokens::load(snapshot, Space::Tokens, oldest_slot(horizon))
}

/// The clock of tokens, which goes on from the newest token that a store holds when it is opened. How much time has passed
/// since is known by the clock of the machine alone, which may have been set ahead: what the store still holds may be
/// remembered for its time again.
///
/// # Errors
///
/// [`Error::Storage`] when it cannot be read.
pub(crate) fn load_clock(snapshot: &Snapshot, env: &Env) -> Result<TokenClock> {
    let end = |direction| {
        let first = snapshot.prefix(Space::Tokens, &[], direction).next();
        first.transpose()
    };
    let ends = end(Direction::Forward)?.zip(end(Direction::Backward)?);
    let Some(((oldest, _), (newest, _))) = ends else {
        return Ok(TokenClock::new(env));
    };
    let since = |key| {
        let (slot, _) = token_slot(key)?;
        let millis = u64::from(slot) * SLOT_SECS * 1000;
        Ok::<_, Error>(Timestamp::from_millis(millis))
    };
    Ok(TokenClock::among(since(&oldest)?, since(&newest)?, env))
}

fn slot(moment: Timestamp) -> u32 {
    u32::try_from(moment.as_secs() / SLOT_SECS).unwrap_or(u32::MAX)
}

/// Removes tokens that have expired, up to so many at once. Returns how many.
pub(crate) fn expire_tokens(shared: &Shared) -> Result<usize> {
    let due = |horizon: Timestamp| {
        let walk = shared
            .kv
            .snapshot()
            .prefix(Space::Tokens, &[], Direction::Forward);
        let mut keys = Vec::new();
        for entry in walk.take(EXPIRE_STEP) {
            let (key, value) = entry?;
            if decode_token_expiry(&value)? > horizon {
                break;
            }
            keys.push(key);
        }
        Ok::<_, Error>(keys)
    };
    let moment = shared.token_clock().read(&shared.options.env);
    let keys = due(moment.horizon)?;
    if keys.is_empty() {
        return Ok(0);
    }
    // A token in the store is never written again after it has expired: its slot has passed.
    let removed = keys.len();
    let remove = move |group: &mut Group<'_>| {
        for key in keys {
            group.remove(Space::Tokens, key);
        }
        Ok(removed)
    };
    shared.run(Effect::Frees, remove).wait()
}
