//! Background work of the engine: jobs on tables, removing old tokens, trimming change records, removing expired items.
//!
//! All of it runs in bounded steps through the committer, so that writes never wait long for it.

mod expire;
mod jobs;
mod tokens;

use std::time::Duration;

use floe_store::Result;

use crate::changes;
use crate::commit::Committer;
use crate::locks::lock;

/// How long the thread sleeps when there is nothing to do.
const PAUSE: Duration = Duration::from_secs(1);

/// Runs until the engine is closed. Call it on a separate thread.
pub(crate) fn run(committer: &Committer) {
    let shared = &committer.shared;
    while !shared.background.is_stopped() {
        let done = step(committer);
        let busy = done == Ok(true);
        // The work is retried; until then `LocalEngine::background_error` returns the error.
        *lock(&shared.background_error) = done.err();
        if !busy {
            shared.background.sleep(PAUSE);
        }
    }
}

/// Runs one step of each kind of work. Returns whether more work may be left.
pub(crate) fn step(committer: &Committer) -> Result<bool> {
    let mut busy = jobs::step(committer)?;
    busy |= tokens::expire_tokens(committer)? > 0;
    busy |= changes::trim_changes(committer)? > 0;
    busy |= expire::sweep_expired(committer)? > 0;
    Ok(busy)
}
