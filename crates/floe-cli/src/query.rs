//! `floe query`: the items under one partition key, in their order.

use floe_store::op::Query;

use super::pages::{Reading, Selection};
use crate::{Result, with_forms};

/// Find the items under one partition key, in their order
#[derive(Debug, clap::Args)]
#[command(after_help = with_forms("\
Examples:
  floe query orders --key-condition 'customer = :c' --values '{\":c\":\"ada\"}' \\
      --data ./shop
  floe query orders --key-condition 'customer = :c AND placed > :p' \\
      --values '{\":c\":\"ada\",\":p\":2}' --descending --limit 5 --data ./shop
  floe query orders --index by_product --key-condition 'product = :p' \\
      --filter 'quantity >= :q' --values '{\":p\":\"sled\",\":q\":2}' --json \\
      --endpoint http://127.0.0.1:8000 | jq -c '.items[]'

Expressions are DynamoDB's. At most --limit items are told; if there are more, a cursor is told with which --cursor goes on. \
With --json each line is a page: items (in DynamoDB's JSON), count, scanned, and cursor if there is more."))]
pub(super) struct QueryCommand {
    /// Which items: customer = :c AND placed > :p
    #[arg(long, value_name = "EXPRESSION")]
    key_condition: String,

    /// The last first
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
        let reading = Reading::Query(query);
        self.selection.run(parser, reading)
    }
}
