//! `floe graph`: looks after the tables of an entity graph.

mod check;

use clap::{Args, Subcommand};

use super::Failure;
use super::place::runtime;

const AFTER_HELP: &str = "\
Examples:
  floe graph check --data ./data               compare the three tables, and tell every difference
  floe graph check --data ./data --repair      and make them agree";

/// Look after the tables of an entity graph
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
#[group(skip)]
pub(super) struct GraphCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
}

impl GraphCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Command::Check(check) = self.command;
        runtime()?.block_on(check.run())
    }
}
