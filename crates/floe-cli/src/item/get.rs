//! `floe item get`: an item by its key.

use floe_store::json::write_item;
use floe_store::op::GetItem;

use crate::{Failure, Input, Placeholders, Result, StoreArgs, print_item, with_forms};

/// Get an item by its key
#[derive(Debug, clap::Args)]
#[command(after_help = with_forms("\
Examples:
  floe item get orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item get orders --key @key.json --projection 'product, quantity' --json \\
      --endpoint http://127.0.0.1:8000

With --json the item is told in DynamoDB's JSON. Exit code 3: there is no such item."))]
pub(super) struct Get {
    /// The table
    table: String,

    /// The key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    /// Only these parts of it: product, address.city
    #[arg(long, value_name = "EXPRESSION")]
    projection: Option<String>,

    /// A read that may be a little behind, at half the price
    #[arg(long)]
    eventual: bool,

    #[command(flatten)]
    placeholders: Placeholders,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    at: StoreArgs,
}

impl Get {
    pub(super) fn run(&self) -> Result {
        let request = self.request()?;
        self.at.run(async |opened| {
            let key = opened.table(&self.table).await?.definition.key;
            let found = opened.engine().get_item(request).await?.item;
            let item = found.ok_or_else(|| {
                Failure::unmet(format!("there is no such item: table={}", self.table))
            })?;
            let output = self.at.output;
            output.either(&|w| write_item(w, &item), &|| print_item(&item, &key));
            Ok(())
        })
    }

    fn request(&self) -> Result<GetItem> {
        let key = self.input.item("--key", &self.key)?;
        let resolved = self.placeholders.resolve(self.input)?;
        let mut parser = resolved.parser();
        let text = self.projection.as_deref();
        let projection = text.map(|text| parser.projection(text)).transpose()?;
        parser.finish()?;
        Ok(GetItem {
            projection,
            consistent: !self.eventual,
            ..GetItem::new(self.table.as_str(), key)
        })
    }
}
