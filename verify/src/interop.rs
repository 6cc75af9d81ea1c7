//! Exchanges data with other implementations in both directions: `cargo xtask interop NAME`.

mod equinox;

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::Failure;

const EQUINOX: &str = "\
Event streams with equinox-js (npm: @equinox-js/core, @equinox-js/dynamo-store), which talks to a Floe server. Each side
reads the streams that the other has written, calved and uncalved, with snapshots and with compressed bodies; then each
appends to the streams of the other. Finally the feed (npm: @equinox-js/dynamo-store-indexer): each side reads and
continues the epochs of the other.

Prints one line of figures, and every line that differs. Exits with 1 if there are differences.
Needs node, npm and access to the npm registry.";

/// The command for data exchange.
pub(crate) fn command(name: &'static str) -> Command {
    let equinox = Command::new("equinox")
        .about("Event streams and feed with equinox-js")
        .long_about(EQUINOX);
    Command::new(name)
        .about("Exchange data with another implementation of the same format")
        .subcommand_value_name("NAME")
        .subcommand_help_heading("Implementations")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(equinox)
}

/// Runs the selected exchange.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand_name() {
        Some("equinox") => equinox::run(),
        other => Err(Failure::usage(format!(
            "unknown implementation: {}",
            other.unwrap_or_default()
        ))),
    }
}
