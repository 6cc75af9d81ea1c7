//! `floe item get`: prints an item.

use floe_store::op::GetItem;

use crate::{Failure, Input, Placeholders, Result, StoreArgs, print_item, with_formats};

/// Get an item by its key
#[derive(Debug, clap::Args)]
#[command(after_help = with_formats("\
Examples:
  floe item get orders --key '{\"customer\":\"ada\",\"placed\":1}' --data ./shop
  floe item get orders --key @key.json --projection 'product, quantity' --json \\
      --endpoint http://127.0.0.1:8000

Exit code 3: there is no such item."))]
pub(super) struct Get {
    /// Name of the table
    table: String,

    /// Key of the item
    #[arg(long, value_name = "JSON")]
    key: String,

    /// Print only these attributes: product, address.city
    #[arg(long, value_name = "EXPRESSION")]
    projection: Option<String>,

    /// Read with eventual consistency, at half the capacity
    #[arg(long)]
    eventual: bool,

    #[command(flatten)]
    placeholders: Placeholders,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    target: StoreArgs,
}

impl Get {
    pub(super) fn run(&self) -> Result {
        let request = self.request()?;
        self.target.run(async |opened| {
            let key = opened.table(&self.table).await?.definition.key;
            let found = opened.engine().get_item(request).await?.item;
            let item = found.ok_or_else(|| {
                Failure::unmet(format!("there is no such item: table={}", self.table))
            })?;
            let output = self.target.output;
            let json = output.item_writer();
            output.either(&|w| json(w, &item), &|| print_item(&item, &key))
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
