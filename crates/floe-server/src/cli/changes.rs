//! `floe changes`: what was inserted, changed and removed in a table.

mod tail;

use clap::{Args, Subcommand};

use super::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe changes tail orders --endpoint http://127.0.0.1:8000
  floe changes tail orders --from-start --once --json --data ./shop

A table tells of its changes if it has a change stream: `floe table create … --stream new-and-old-images`.";

/// Follow the changes of tables
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
}

impl ChangesCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Command::Tail(tail) = self.command;
        tail.run()
    }
}
