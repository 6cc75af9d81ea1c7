//! State of idempotency tokens in memory: which tokens may have been used recently, and the clock that determines how
//! long they are valid. The tokens of transactions are also in the store; those of single writes are only in
//! [`writes`].
//!
//! Stored tokens are grouped by the time slot in which they were used. Finding a token means reading the few slots that
//! have not expired, and expired tokens are at the front of the space. Transactions look them up and store them; the
//! [background](crate::background) thread removes expired ones.

mod clock;
mod recent;
mod writes;

use floe_store::env::Env;
use floe_store::limits::TOKEN_RETENTION;
use floe_store::{Error, Result, Timestamp};

use crate::kv::{Direction, Snapshot, Space};
use crate::layout::record::token_slot;
pub(crate) use clock::{TokenClock, TokenTime};
pub(crate) use recent::RecentTokens;
pub(crate) use writes::{WriteToken, WriteTokens};

const SLOT_SECS: u64 = 300;

/// The first slot that may contain unexpired tokens.
pub(crate) fn oldest_slot(horizon: Timestamp) -> u32 {
    let kept = TOKEN_RETENTION.as_secs().div_ceil(SLOT_SECS);
    slot(horizon).saturating_sub(u32::try_from(kept).unwrap_or(u32::MAX))
}

/// Reads which tokens a store contains when it is opened.
///
/// # Errors
///
/// [`Error::Storage`] if they cannot be read.
pub(crate) fn load(snapshot: &Snapshot, horizon: Timestamp) -> Result<RecentTokens> {
    RecentTokens::load(snapshot, Space::Tokens, oldest_slot(horizon))
}

/// Creates the token clock, which continues from the newest token in the store. Only the machine's clock measures the
/// time while the store was closed, and it may have been set forward, so the stored tokens may be kept for the full
/// retention again.
///
/// # Errors
///
/// [`Error::Storage`] if the tokens cannot be read.
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
    Ok(TokenClock::between(since(&oldest)?, since(&newest)?, env))
}

/// The slot of a token that is used at this time.
pub(crate) fn slot(time: Timestamp) -> u32 {
    u32::try_from(time.as_secs() / SLOT_SECS).unwrap_or(u32::MAX)
}
