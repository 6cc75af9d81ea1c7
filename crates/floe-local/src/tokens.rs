//! What the engine keeps in memory of idempotency tokens: which may have been used lately, and the time by which they
//! are remembered. The tokens of transactions are in the store; those of single writes are in [`writes`] alone.
//!
//! Tokens are filed by the slot of time in which they were used, so that a token is found by looking
//! into the few slots that can still be remembered, and expired ones are at the front of the space.
//! Transactions find and store them; the [background](crate::background) removes what has expired.

mod clock;
mod recent;
mod writes;

use floe_store::env::Env;
use floe_store::limits::TOKEN_RETENTION;
use floe_store::{Error, Result, Timestamp};

use crate::kv::{Direction, Snapshot, Space};
use crate::layout::record::token_slot;
pub(crate) use clock::{TokenClock, TokenMoment};
pub(crate) use recent::RecentTokens;
pub(crate) use writes::{WriteToken, WriteTokens};

const SLOT_SECS: u64 = 300;

/// The first slot whose tokens may still be remembered.
pub(crate) fn oldest_slot(horizon: Timestamp) -> u32 {
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

/// The slot in which a token is filed that is used at this moment.
pub(crate) fn slot(moment: Timestamp) -> u32 {
    u32::try_from(moment.as_secs() / SLOT_SECS).unwrap_or(u32::MAX)
}
