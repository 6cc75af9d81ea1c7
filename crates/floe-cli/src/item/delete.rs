//! `floe item delete`: deletes an item.

use floe_store::op::{DeleteItem, ReturnValues};

use super::{WriteArgs, send};
use crate::{Failure, Result, with_formats};

/// Delete an item
#[derive(Debug, clap::Args)]
#[command(after_help = with_formats("\
Examples:
  floe item delete orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item delete orders --key @key.json --condition 'quantity = :none' \\
      --values '{\":none\":0}' --old --data ./shop

Exit code 3: there is no such item, or the condition is false."))]
pub(super) struct Delete {
    /// Name of the table
    table: String,

    /// Key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    /// Print the previous item
    #[arg(long)]
    old: bool,

    #[command(flatten)]
    args: WriteArgs,
}

impl Delete {
    pub(super) fn run(&self) -> Result {
        let key = self.args.input.item("--key", &self.key)?;
        let mut delete = DeleteItem::new(self.table.as_str(), key);
        delete.condition = self.args.condition()?;
        // The previous item shows whether there was one.
        let delete = delete.return_values(ReturnValues::AllOld);
        self.args.target.run(async |opened| {
            let (key, item) = send(opened, &self.table, delete.into()).await?;
            if item.is_none() {
                return Err(Failure::unmet(format!(
                    "there is no such item, nothing was deleted: table={}",
                    self.table
                )));
            }
            self.args
                .print(&key, item.as_ref().filter(|_| self.old), "deleted")
        })
    }
}
