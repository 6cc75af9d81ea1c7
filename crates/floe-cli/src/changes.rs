//! `floe changes`: what was inserted, changed and removed in a table.

mod parked;
mod tail;

use clap::{Args, Subcommand};

use super::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe changes tail orders --endpoint http://127.0.0.1:8000
  floe changes tail orders --from-start --once --json --data ./shop
  floe changes parked mailer --data ./shop
  floe changes replay mailer --all --data ./shop

A table tells of its changes if it has a change stream: `floe table create … --stream new-and-old-images`.";

/// Follow the changes of tables, and look after those that consumers did not get on with
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
#[group(skip)]
pub(super) struct ChangesCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tail(tail::Tail),
    Parked(parked::ParkedCommand),
    Replay(parked::ReplayCommand),
    Discard(parked::DiscardCommand),
}

impl ChangesCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Tail(tail) => tail.run(),
            Command::Parked(parked) => parked.run(),
            Command::Replay(replay) => replay.run(),
            Command::Discard(discard) => discard.run(),
        }
    }
}
