//! `floe table`: the tables of a store.

mod create;
mod delete;
mod describe;
pub(super) mod list;

use clap::{Args, Subcommand};
use floe_store::table::{KeyAttribute, KeySchema};

use super::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe table list --data ./shop
  floe table create orders --key customer:S --sort placed:N --data ./shop
  floe table describe orders --endpoint http://127.0.0.1:8000 --json
  floe table delete orders --data ./shop --yes";

/// List, describe, create and delete tables
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
#[group(skip)]
pub(super) struct TableCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Describe(describe::Describe),
    Create(create::Create),
    Delete(delete::Delete),
}

impl TableCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::List(list) => list.run(),
            Command::Describe(describe) => describe.run(),
            Command::Create(create) => create.run(),
            Command::Delete(delete) => delete.run(),
        }
    }
}

/// A key for people: `customer (S), placed (N)`.
fn key_text(key: &KeySchema) -> String {
    let text =
        |attribute: &KeyAttribute| format!("{} ({})", attribute.name, attribute.kind.as_str());
    let attributes: Vec<_> = key.attributes().map(text).collect();
    attributes.join(", ")
}
