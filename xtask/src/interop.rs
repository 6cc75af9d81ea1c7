//! `cargo xtask interop NAME`: data that another implementation has written is read here, and the reverse.

mod equinox;

use std::process::ExitCode;

use crate::args::Args;
use crate::{Failure, out};

const HELP: &str = "\
Exchanges data with another implementation of the same format.

Usage: cargo xtask interop equinox

  equinox   streams of events with equinox-js (npm: @equinox-js/core, @equinox-js/dynamo-store), which talks to a
            Floe server: what is written here is read there and the reverse, calved and uncalved, with snapshots
            and with compressed bodies; then each decides upon the streams of the other; then the feed of what was
            appended (npm: @equinox-js/dynamo-store-indexer): each reads the other's epochs and goes on with them

Prints one line of figures, and every line in which the two differ. Exits with 1 when they do.
Needs node, npm and the package index of npm.";

/// Runs `cargo xtask interop`.
pub(crate) fn run(mut args: Args) -> Result<ExitCode, Failure> {
    let name = args.command();
    let asked = args.help();
    args.finish("cargo xtask interop")?;
    match name.as_deref() {
        Some("equinox") if !asked => equinox::run(),
        Some("equinox") | None => {
            out::figures(HELP);
            Ok(if asked {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(2)
            })
        }
        Some(other) => Err(Failure::usage(format!(
            "nothing is exchanged with: {other}; see cargo xtask interop --help"
        ))),
    }
}
