//! `floe item put`: sets a whole item.

use clap::Args;
use floe_store::op::{PutItem, ReturnValues};

use super::{Conditional, tell_returned};
use crate::cli::Failure;
use crate::cli::input::{Input, with_forms};
use crate::cli::out::Output;
use crate::cli::place::Store;

const AFTER_HELP: &str = "\
Examples:
  floe item put orders --item '{\"customer\":\"ada\",\"placed\":1,\"product\":\"sled\"}' --data ./shop
  floe item put orders --item @order.json --condition 'attribute_not_exists(customer)' --data ./shop
  floe item put tags --item '{\"id\":{\"S\":\"a\"},\"tags\":{\"SS\":[\"x\",\"y\"]}}' --endpoint http://127.0.0.1:8000

It takes the place of the item with the same key. Exit code 3: the condition does not hold.";

/// Put an item, in place of the one with the same key
#[derive(Debug, Args)]
#[command(after_help = with_forms(AFTER_HELP))]
#[group(skip)]
pub(super) struct Put {
    /// The table
    #[arg(value_name = "TABLE")]
    table: String,

    /// The item, with its key
    #[arg(long, value_name = "JSON")]
    item: String,

    /// Tell the item that was there before
    #[arg(long)]
    old: bool,

    #[command(flatten)]
    conditional: Conditional,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    store: Store,
}

impl Put {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let item = self.input.item("--item", &self.item)?;
        let (condition, ()) = self.conditional.parse(self.input, |_| Ok(()))?;
        let mut put = PutItem::new(self.table.as_str(), item);
        put.condition = condition;
        if self.old {
            put = put.return_values(ReturnValues::AllOld);
        }
        self.store.run(async |opened| {
            opened.table(&self.table).await?;
            let written = opened.engine().write_item(put.into()).await?;
            let returned = written.attributes.as_ref();
            tell_returned(self.output, opened, &self.table, returned, "put").await
        })
    }
}
