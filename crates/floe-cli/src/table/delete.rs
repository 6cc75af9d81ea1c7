//! `floe table delete`: removes a table with all that is in it.

use crate::{Opened, Result, StoreArgs, confirm, grouped, members};

/// Delete a table with all that is in it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe table delete orders --data ./shop
  floe table delete orders --endpoint http://127.0.0.1:8000 --yes

It asks before. Without a terminal to ask at, nothing is deleted unless --yes is given.")]
pub(super) struct Delete {
    /// The table
    table: String,

    /// Delete it without asking
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

impl Delete {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let name = &self.table;
        let items = opened.table(name).await?.item_count;
        let what = format!("deleting table={name} items={}", grouped(items));
        confirm(self.yes, &what, "nothing was deleted")?;
        opened.engine().delete_table(name.clone()).await?;
        self.at.output.line(
            members!["deleted": *name, "items": items],
            &format_args!("deleted: table={name} items={}", grouped(items)),
        );
        Ok(())
    }
}
