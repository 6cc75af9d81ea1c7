//! Asking before something is done that cannot be undone.

use std::io::{IsTerminal, Write};

use crate::{Failure, Result};

/// Asks whether that is meant, unless it was said before. Without a terminal to ask at, it is not.
pub(super) fn confirm(is_said: bool, what: &str, undone: &str) -> Result {
    if is_said {
        return Ok(());
    }
    let refused = |why: &str| Err(Failure::usage(format!("{undone}: {why}")));
    if !std::io::stdin().is_terminal() {
        return refused("say --yes if that is meant");
    }
    let mut stderr = std::io::stderr().lock();
    drop(write!(stderr, "floe: {what}: is that meant? [y/N] ").and_then(|()| stderr.flush()));
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => refused("it was not meant"),
    }
}
