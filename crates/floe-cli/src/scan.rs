//! `floe scan`: all items of a table, in no order.

use floe_store::op::Scan;

use super::pages::{Reading, Selection};
use crate::{Result, with_forms};

/// Read all items of a table, or of an index
#[derive(Debug, clap::Args)]
#[command(after_help = with_forms("\
Examples:
  floe scan orders --data ./shop
  floe scan orders --filter 'quantity > :q' --values '{\":q\":1}' --limit 20 \\
      --data ./shop
  floe scan orders --all --json --endpoint http://127.0.0.1:8000 \\
      | jq -c '.items[]'
  floe scan orders --count --all --data ./shop

A filter leaves items out after they were read and paid for. At most --limit items are told; if there are more, a cursor is \
told with which --cursor goes on. With --json each line is a page: items (in DynamoDB's JSON), count, scanned, and cursor \
if there is more."))]
pub(super) struct ScanCommand {
    #[command(flatten)]
    selection: Selection,
}

impl ScanCommand {
    pub(super) fn run(&self) -> Result {
        let resolved = self.selection.placeholders()?;
        let parser = resolved.parser();
        let scan = Scan::new(self.selection.table.as_str());
        self.selection.run(parser, Reading::Scan(scan))
    }
}
