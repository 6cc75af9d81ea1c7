//! Confirmation of actions that cannot be undone.

use std::io::{IsTerminal, Write};

use crate::{Failure, Result};

/// Asks the user to confirm an action, unless `--yes` was given. Fails without a terminal. `not_done` begins the message
/// of the failure: `nothing was deleted`.
pub(super) fn confirm(is_confirmed: bool, action: &str, not_done: &str) -> Result {
    if is_confirmed {
        return Ok(());
    }
    let refused = |reason: &str| Err(Failure::usage(format!("{not_done}: {reason}")));
    if !std::io::stdin().is_terminal() {
        return refused("confirm with --yes");
    }
    let mut stderr = std::io::stderr().lock();
    drop(write!(stderr, "floe: {action}: continue? [y/N] ").and_then(|()| stderr.flush()));
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => refused("not confirmed"),
    }
}
