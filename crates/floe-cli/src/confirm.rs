//! Confirmation of actions that cannot be undone.

use std::io::{IsTerminal, Write};

use crate::{Failure, Result};

/// Asks the user to confirm an action, unless `--yes` was given. Fails without a terminal. The question and the failure
/// contain the facts: the store, its region, the table, and what is lost. `not_done` begins the message of the failure:
/// `nothing was deleted`.
pub(super) fn confirm(is_confirmed: bool, action: &str, facts: &str, not_done: &str) -> Result {
    if is_confirmed {
        return Ok(());
    }
    let refused = |reason: &str| Err(Failure::usage(format!("{not_done}, {reason}: {facts}")));
    if !std::io::stdin().is_terminal() {
        return refused("confirm with --yes");
    }
    let mut stderr = std::io::stderr().lock();
    drop(write!(stderr, "floe: {action}: {facts}: continue? [y/N] ").and_then(|()| stderr.flush()));
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => refused("not confirmed"),
    }
}
