//! `floe item put`: writes a whole item.

use floe_store::op::PutItem;

use super::{ReturnOld, WriteArgs};
use crate::{Result, with_formats};

/// Put an item, replacing the one with the same key
#[derive(Debug, clap::Args)]
#[command(after_help = with_formats("\
Examples:
  floe item put orders --item '{\"customer\":\"ada\",\"placed\":1,\"product\":\"sled\"}' \\
      --data ./shop
  floe item put orders --item @order.json \\
      --condition 'attribute_not_exists(customer)' --data ./shop
  floe item put tags --item '{\"id\":{\"S\":\"a\"},\"tags\":{\"SS\":[\"x\",\"y\"]}}' \\
      --endpoint http://127.0.0.1:8000

Exit code 3: the condition is false."))]
pub(super) struct Put {
    /// Name of the table
    table: String,

    /// Item to put, including its key
    #[arg(long, value_name = "JSON")]
    item: String,

    #[command(flatten)]
    return_old: ReturnOld,

    #[command(flatten)]
    args: WriteArgs,
}

impl Put {
    pub(super) fn run(&self) -> Result {
        let item = self.args.input.item("--item", &self.item)?;
        let mut put = PutItem::new(self.table.as_str(), item);
        put.condition = self.args.condition()?;
        let put = put.return_values(self.return_old.return_values());
        self.args.run(&self.table, put.into(), "put")
    }
}
