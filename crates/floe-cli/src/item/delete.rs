//! `floe item delete`: deletes an item.

use floe_store::op::DeleteItem;

use super::{ReturnOld, WriteArgs};
use crate::{Result, with_formats};

/// Delete an item
#[derive(Debug, clap::Args)]
#[command(after_help = with_formats("\
Examples:
  floe item delete orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item delete orders --key @key.json --condition 'quantity = :none' \\
      --values '{\":none\":0}' --old --data ./shop

Deleting an item that does not exist succeeds. Exit code 3: the condition is false."))]
pub(super) struct Delete {
    /// Name of the table
    table: String,

    /// Key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    #[command(flatten)]
    return_old: ReturnOld,

    #[command(flatten)]
    args: WriteArgs,
}

impl Delete {
    pub(super) fn run(&self) -> Result {
        let key = self.args.input.item("--key", &self.key)?;
        let mut delete = DeleteItem::new(self.table.as_str(), key);
        delete.condition = self.args.condition()?;
        let delete = delete.return_values(self.return_old.return_values());
        self.args.run(&self.table, delete.into(), "deleted")
    }
}
