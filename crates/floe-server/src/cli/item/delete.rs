//! `floe item delete`: removes an item.

use clap::Args;
use floe_store::op::{DeleteItem, ReturnValues};

use super::{Conditional, tell_returned};
use crate::cli::Failure;
use crate::cli::input::{Input, with_forms};
use crate::cli::out::Output;
use crate::cli::place::Store;

const AFTER_HELP: &str = "\
Examples:
  floe item delete orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item delete orders --key @key.json --condition 'quantity = :none' --values '{\":none\":0}' --old --data ./shop

An item that is not there is as good as deleted. Exit code 3: the condition does not hold.";

/// Delete an item
#[derive(Debug, Args)]
#[command(after_help = with_forms(AFTER_HELP))]
#[group(skip)]
pub(super) struct Delete {
    /// The table
    #[arg(value_name = "TABLE")]
    table: String,

    /// The key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    /// Tell the item that was there
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

impl Delete {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let key = self.input.item("--key", &self.key)?;
        let (condition, ()) = self.conditional.parse(self.input, |_| Ok(()))?;
        let mut delete = DeleteItem::new(self.table.as_str(), key);
        delete.condition = condition;
        if self.old {
            delete = delete.return_values(ReturnValues::AllOld);
        }
        self.store.run(async |opened| {
            opened.table(&self.table).await?;
            let written = opened.engine().write_item(delete.into()).await?;
            let returned = written.attributes.as_ref();
            tell_returned(self.output, opened, &self.table, returned, "deleted").await
        })
    }
}
