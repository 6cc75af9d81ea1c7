//! Data that another implementation has written is read here, and the reverse: `cargo xtask interop NAME`.

mod equinox;

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::Failure;

const EQUINOX: &str = "\
Streams of events with equinox-js (npm: @equinox-js/core, @equinox-js/dynamo-store), which talks to a Floe server: what is
written here is read there and the reverse, calved and uncalved, with snapshots and with compressed bodies; then each
decides upon the streams of the other; then the feed of what was appended (npm: @equinox-js/dynamo-store-indexer): each
reads the other's epochs and goes on with them.

Prints one line of figures, and every line in which the two differ. Exits with 1 when they do.
Needs node, npm and the package index of npm.";

/// The command that exchanges data.
pub(crate) fn command(name: &'static str) -> Command {
    let equinox = Command::new("equinox")
        .about("Streams of events with equinox-js")
        .long_about(EQUINOX);
    Command::new(name)
        .about("Exchange data with another implementation of the same format")
        .subcommand_value_name("NAME")
        .subcommand_help_heading("Implementations")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(equinox)
}

/// Exchanges data with the implementation that was asked for.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand_name() {
        Some("equinox") => equinox::run(),
        other => Err(Failure::usage(format!(
            "nothing is exchanged with: {}",
            other.unwrap_or_default()
        ))),
    }
}
