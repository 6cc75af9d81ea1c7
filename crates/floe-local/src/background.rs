//! What the engine does on its own: jobs on tables, forgetting tokens, trimming change records,
//! removing expired items.
//!
//! Everything is done in bounded steps through the committer, so that writes never wait long for it.

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

/// Runs until the engine is closed. To be called on a thread of its own.
pub(crate) fn run(committer: &Committer) {
    let shared = &committer.shared;
    while !shared.background.is_stopped() {
        let done = step(committer);
        let busy = done == Ok(true);
        // It is tried again; until then it can be asked for.
        *lock(&shared.background_error) = done.err();
        if !busy {
            shared.background.sleep(PAUSE);
        }
    }
}

/// Does one step of each kind of work. `true` if there may be more to do at once.
pub(crate) fn step(committer: &Committer) -> Result<bool> {
    let mut busy = jobs::step(committer)?;
    busy |= tokens::expire_tokens(committer)? > 0;
    busy |= changes::trim_changes(committer)? > 0;
    busy |= expire::sweep_expired(committer)? > 0;
    Ok(busy)
}
