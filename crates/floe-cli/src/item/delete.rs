//! `floe item delete`: removes an item.

use floe_store::op::DeleteItem;

use super::{Before, Writing};
use crate::{Result, with_forms};

/// Delete an item
#[derive(Debug, clap::Args)]
#[command(after_help = with_forms("\
Examples:
  floe item delete orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item delete orders --key @key.json --condition 'quantity = :none' \\
      --values '{\":none\":0}' --old --data ./shop

An item that is not there is as good as deleted. Exit code 3: the condition does not hold."))]
pub(super) struct Delete {
    /// The table
    table: String,

    /// The key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    #[command(flatten)]
    before: Before,

    #[command(flatten)]
    writing: Writing,
}

impl Delete {
    pub(super) fn run(&self) -> Result {
        let key = self.writing.input.item("--key", &self.key)?;
        let mut delete = DeleteItem::new(self.table.as_str(), key);
        delete.condition = self.writing.condition()?;
        let delete = delete.return_values(self.before.returned());
        self.writing.run(&self.table, delete.into(), "deleted")
    }
}
