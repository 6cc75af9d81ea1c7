//! `floe item`: one item of a table.

mod delete;
mod get;
mod put;
mod update;

use clap::Args;
use floe_store::expr::{Condition, Parser};
use floe_store::op::{ReturnValues, WriteItem};

use crate::{
    Input, Placeholders, Result, StoreArgs, commands, object, print, print_item, with_forms,
};

commands! {
    /// Get, put, update and delete items
    #[command(after_help = with_forms("\
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

/// What all writes have in common.
#[derive(Debug, Args)]
struct Writing {
    /// Write only if this holds of the item as it stands: attribute_not_exists(id)
    #[arg(long, value_name = "EXPRESSION")]
    condition: Option<String>,

    #[command(flatten)]
    placeholders: Placeholders,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    at: StoreArgs,
}

impl Writing {
    fn condition(&self) -> Result<Option<Condition>> {
        let (condition, ()) = self.parse(|_| Ok(()))?;
        Ok(condition)
    }

    /// Parses the condition, and another expression beside it.
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

    /// Writes, and prints what was returned of the item.
    fn run(&self, table: &str, write: WriteItem, done: &str) -> Result {
        self.at.run(async |opened| {
            let key = opened.table(table).await?.definition.key;
            let item = opened.engine().write_item(write).await?.attributes;
            self.at.output.either(
                &|w| object!(w; "done": done, "item": item),
                &|| match &item {
                    Some(item) => print_item(item, &key),
                    None => drop(print(done)),
                },
            );
            Ok(())
        })
    }
}

/// Whether the item that was there is printed.
#[derive(Clone, Copy, Debug, Args)]
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
