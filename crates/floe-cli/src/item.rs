//! `floe item`: reads and writes one item.

mod delete;
mod get;
mod put;
mod update;

use clap::Args;
use floe_store::Item;
use floe_store::expr::{Condition, Parser};
use floe_store::op::{ReturnValues, WriteItem};
use floe_store::table::KeySchema;

use crate::{
    Input, OpenStore, Placeholders, Result, StoreArgs, commands, object, print, print_item,
    with_formats,
};

commands! {
    /// Get, put, update and delete items
    #[command(after_help = with_formats("\
Examples:
  floe item put orders --item '{\"customer\":\"ada\",\"placed\":1,\"product\":\"sled\"}' \\
      --data ./shop
  floe item get orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item update orders --key '{\"customer\":\"ada\",\"placed\":1}' \\
      --update 'SET quantity = quantity + :n' --values '{\":n\":1}' --data ./shop
  floe item delete orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop"))]
    ItemCommand:
    Get(get::Get),
    Put(put::Put),
    Update(update::Update),
    Delete(delete::Delete),
}

/// The arguments of all writes.
#[derive(Debug, Args)]
struct WriteArgs {
    /// Write only if this condition holds for the stored item: attribute_not_exists(id)
    #[arg(long, value_name = "EXPRESSION")]
    condition: Option<String>,

    #[command(flatten)]
    placeholders: Placeholders,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    target: StoreArgs,
}

impl WriteArgs {
    fn condition(&self) -> Result<Option<Condition>> {
        let (condition, ()) = self.parse(|_| Ok(()))?;
        Ok(condition)
    }

    /// Parses the condition and another expression, with shared placeholders.
    fn parse<T>(
        &self,
        other: impl FnOnce(&mut Parser<'_>) -> floe_store::Result<T>,
    ) -> Result<(Option<Condition>, T)> {
        let resolved = self.placeholders.resolve(self.input)?;
        let mut parser = resolved.parser();
        let other = other(&mut parser)?;
        let text = self.condition.as_deref();
        let condition = text.map(|text| parser.condition(text)).transpose()?;
        parser.finish()?;
        Ok((condition, other))
    }

    /// Sends the write, and prints the returned item.
    fn run(&self, table: &str, write: WriteItem, done: &str) -> Result {
        self.target.run(async |opened| {
            let (key, item) = send(opened, table, write).await?;
            self.print(&key, item.as_ref(), done)
        })
    }

    /// Prints what was done, or the returned item.
    fn print(&self, key: &KeySchema, item: Option<&Item>, done: &str) -> Result {
        let output = self.target.output;
        output.either(
            &|w| object!(w; "done": done, "item": item.map(|item| output.item(item))),
            &|| match item {
                Some(item) => print_item(item, key),
                None => print(done),
            },
        )
    }
}

/// Sends a write. Returns the key of the table, and the returned item.
async fn send(
    opened: &OpenStore,
    table: &str,
    write: WriteItem,
) -> Result<(KeySchema, Option<Item>)> {
    let key = opened.table(table).await?.definition.key;
    let written = opened.engine().write_item(write).await?;
    Ok((key, written.attributes))
}

/// Whether the previous item is printed.
#[derive(Clone, Copy, Debug, Args)]
struct ReturnOld {
    /// Print the previous item
    #[arg(long)]
    old: bool,
}

impl ReturnOld {
    const fn return_values(self) -> ReturnValues {
        if self.old {
            ReturnValues::AllOld
        } else {
            ReturnValues::None
        }
    }
}
