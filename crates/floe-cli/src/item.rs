//! `floe item`: one item of a table.

mod delete;
mod get;
mod put;
mod update;

use clap::{Args, Subcommand};
use floe_store::Item;
use floe_store::expr::{Condition, Parser};
use floe_store::json::write_item;
use floe_store::op::{ReturnValues, WriteItem};

use super::Failure;
use super::input::{Input, Placeholders, with_forms};
use super::out::Output;
use super::out::items::print_item;
use super::place::{Opened, Store};

const AFTER_HELP: &str = "\
Examples:
  floe item put orders --item '{\"customer\":\"ada\",\"placed\":1,\"product\":\"sled\"}' \\
      --data ./shop
  floe item get orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item update orders --key '{\"customer\":\"ada\",\"placed\":1}' \\
      --update 'SET quantity = quantity + :n' --values '{\":n\":1}' --data ./shop
  floe item delete orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop";

/// Get, put, update and delete items
#[derive(Debug, Args)]
#[command(after_help = with_forms(AFTER_HELP), arg_required_else_help = true)]
#[group(skip)]
pub(super) struct ItemCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Get(get::Get),
    Put(put::Put),
    Update(update::Update),
    Delete(delete::Delete),
}

impl ItemCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Get(get) => get.run(),
            Command::Put(put) => put.run(),
            Command::Update(update) => update.run(),
            Command::Delete(delete) => delete.run(),
        }
    }
}

/// What must hold for a write.
#[derive(Debug, Args)]
#[group(skip)]
struct Conditional {
    /// Write only if this holds of the item as it stands: attribute_not_exists(id)
    #[arg(long, value_name = "EXPRESSION")]
    condition: Option<String>,

    #[command(flatten)]
    placeholders: Placeholders,
}

impl Conditional {
    /// Parses the condition, and another expression beside it.
    fn parse<T>(
        &self,
        input: Input,
        other: impl FnOnce(&mut Parser<'_>) -> floe_store::Result<T>,
    ) -> Result<(Option<Condition>, T), Failure> {
        let resolved = self.placeholders.resolve(input)?;
        let mut parser = Parser::new(resolved.names.as_ref(), resolved.values.as_ref());
        let other = other(&mut parser)?;
        let text = self.condition.as_deref();
        let condition = text.map(|text| parser.condition(text)).transpose()?;
        parser.finish()?;
        Ok((condition, other))
    }
}

/// What all writes have in common.
#[derive(Debug, Args)]
#[group(skip)]
struct Writing {
    #[command(flatten)]
    conditional: Conditional,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    store: Store,
}

impl Writing {
    fn condition(&self) -> Result<Option<Condition>, Failure> {
        let (condition, ()) = self.conditional.parse(self.input, |_| Ok(()))?;
        Ok(condition)
    }

    fn run(&self, table: &str, write: WriteItem, done: &str) -> Result<(), Failure> {
        self.store.run(async |opened| {
            opened.table(table).await?;
            let written = opened.engine().write_item(write).await?;
            let returned = written.attributes.as_ref();
            tell_returned(self.output, opened, table, returned, done).await
        })
    }
}

/// Whether the item that was there is told.
#[derive(Clone, Copy, Debug, Args)]
#[group(skip)]
struct Before {
    /// Tell the item that was there before
    #[arg(long)]
    old: bool,
}

impl Before {
    const fn returned(self) -> ReturnValues {
        match self.old {
            true => ReturnValues::AllOld,
            false => ReturnValues::None,
        }
    }
}

/// Tells what a write has returned of an item.
async fn tell_returned(
    output: Output,
    opened: &Opened,
    table: &str,
    returned: Option<&Item>,
    done: &str,
) -> Result<(), Failure> {
    if output.json {
        output.tell(
            |w| {
                w.object(|w| {
                    w.name("done").string(done);
                    if let Some(item) = returned {
                        write_item(w.name("item"), item);
                    }
                });
            },
            || {},
        );
        return Ok(());
    }
    match returned {
        Some(item) => print_item(item, &opened.table(table).await?.definition.key),
        None => {
            super::out::print(done);
        }
    }
    Ok(())
}
