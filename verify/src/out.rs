//! The two outputs: figures on standard output, notes for people on standard error.
//!
//! A closed output must not fail a check, so write errors are ignored here, and only here.

use std::io::Write;

/// Prints a result.
pub(crate) fn figures(line: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}

/// Prints a note.
pub(crate) fn note(line: &str) {
    drop(writeln!(std::io::stderr().lock(), "{line}"));
}
