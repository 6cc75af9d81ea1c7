//! The two outputs: figures on standard output, everything for the eye on standard error.
//!
//! A reader that has gone away is no reason to fail a check, so errors of writing are dropped here
//! and only here.

use std::io::Write;

/// Prints a result.
pub(crate) fn figures(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}

/// Prints a line for whoever watches.
pub(crate) fn note(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}
