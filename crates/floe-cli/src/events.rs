//! `floe events`: streams of events.

mod append;
mod prune;
mod read;
mod stats;

use clap::{Args, Subcommand};
use floe::events::StreamName;

use super::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe events append Cart-7 --type ItemAdded --body '{\"sku\":\"tea\"}' \\
      --data ./shop
  floe events read Cart-7 --data ./shop
  floe events stats --data ./shop
  floe events prune Cart-7 --before 100 --data ./shop --yes

A stream is named Category-id. It is kept as Equinox keeps it; the table is `events`, unless --table names another.";

/// Read, append to, count and prune streams of events
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
#[group(skip)]
pub(super) struct EventsCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Read(read::Read),
    Append(append::Append),
    Stats(stats::Stats),
    Prune(prune::Prune),
}

impl EventsCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Read(read) => read.run(),
            Command::Append(append) => append.run(),
            Command::Stats(stats) => stats.run(),
            Command::Prune(prune) => prune.run(),
        }
    }
}

/// The name of a stream.
fn parse_stream(text: &str) -> Result<StreamName, String> {
    StreamName::parse(text).map_err(|_| "not the name of a stream, such as Cart-7".to_owned())
}
