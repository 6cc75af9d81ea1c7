//! `floe item put`: sets a whole item.

use floe_store::op::PutItem;

use super::{Before, Writing};
use crate::{Result, with_forms};

/// Put an item, in place of the one with the same key
#[derive(Debug, clap::Args)]
#[command(after_help = with_forms("\
Examples:
  floe item put orders --item '{\"customer\":\"ada\",\"placed\":1,\"product\":\"sled\"}' \\
      --data ./shop
  floe item put orders --item @order.json \\
      --condition 'attribute_not_exists(customer)' --data ./shop
  floe item put tags --item '{\"id\":{\"S\":\"a\"},\"tags\":{\"SS\":[\"x\",\"y\"]}}' \\
      --endpoint http://127.0.0.1:8000

It takes the place of the item with the same key. Exit code 3: the condition does not hold."))]
pub(super) struct Put {
    /// The table
    table: String,

    /// The item, with its key
    #[arg(long, value_name = "JSON")]
    item: String,

    #[command(flatten)]
    before: Before,

    #[command(flatten)]
    writing: Writing,
}

impl Put {
    pub(super) fn run(&self) -> Result {
        let item = self.writing.input.item("--item", &self.item)?;
        let mut put = PutItem::new(self.table.as_str(), item);
        put.condition = self.writing.condition()?;
        let put = put.return_values(self.before.returned());
        self.writing.run(&self.table, put.into(), "put")
    }
}
