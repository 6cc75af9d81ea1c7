//! `floe table delete`: deletes a table and all its items.

use crate::{OpenStore, Result, StoreArgs, confirm, grouped, members};

/// Delete a table and all its items
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe table delete orders --data ./shop
  floe table delete orders --endpoint http://127.0.0.1:8000 --yes

The deletion must be confirmed: at the terminal, after the store, its region and the table were printed, or with --yes.")]
pub(super) struct Delete {
    /// Name of the table
    table: String,

    /// Delete without confirmation
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

impl Delete {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let name = &self.table;
        let table = opened.table(name).await?;
        let items = table.item_count;
        let facts = self.target.store.facts(&table);
        let facts = format!("{facts} items={}", grouped(items));
        confirm(self.yes, "deleting a table", &facts, "nothing was deleted")?;
        opened.engine().delete_table(name.clone()).await?;
        self.target.output.line(
            members!["deleted": *name, "items": items],
            &format_args!("deleted: table={name} items={}", grouped(items)),
        )
    }
}
