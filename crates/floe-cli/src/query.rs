//! `floe query`: prints items of one partition key.

use floe_store::op::Query;

use super::pages::{PageRequest, Selection};
use crate::{Result, with_formats};

/// Query the items of one partition key, in the order of the sort key
#[derive(Debug, clap::Args)]
#[command(after_help = with_formats("\
Examples:
  floe query orders --key-condition 'customer = :c' --values '{\":c\":\"ada\"}' \\
      --data ./shop
  floe query orders --key-condition 'customer = :c AND placed > :p' \\
      --values '{\":c\":\"ada\",\":p\":2}' --descending --limit 5 --data ./shop
  floe query orders --index by_product --key-condition 'product = :p' \\
      --filter 'quantity >= :q' --values '{\":p\":\"sled\",\":q\":2}' --json \\
      --endpoint http://127.0.0.1:8000 | jq -c '.items[]'

Options take DynamoDB's expressions. If there are more than --limit items, the output has a cursor: resume there with --cursor. \
With --json, each line is a page: items, count, scanned, and cursor if there are more items. Exit code 3: there is no such \
index."))]
pub(super) struct QueryCommand {
    /// Key condition expression: customer = :c AND placed > :p
    #[arg(long, value_name = "EXPRESSION")]
    key_condition: String,

    /// Descending order of sort keys
    #[arg(long)]
    descending: bool,

    #[command(flatten)]
    selection: Selection,
}

impl QueryCommand {
    pub(super) fn run(&self) -> Result {
        let resolved = self.selection.placeholders()?;
        let mut parser = resolved.parser();
        let condition = parser.key_condition(&self.key_condition)?;
        let mut query = Query::new(self.selection.table.as_str(), condition);
        query.forward = !self.descending;
        self.selection.run(parser, PageRequest::Query(query))
    }
}
