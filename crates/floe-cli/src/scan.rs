//! `floe scan`: prints all items of a table, in no particular order.

use floe_store::op::Scan;

use super::pages::{PageRequest, Selection};
use crate::{Result, with_formats};

/// Scan all items of a table or an index
#[derive(Debug, clap::Args)]
#[command(after_help = with_formats("\
Examples:
  floe scan orders --data ./shop
  floe scan orders --filter 'quantity > :q' --values '{\":q\":1}' --limit 20 \\
      --data ./shop
  floe scan orders --all --json --endpoint http://127.0.0.1:8000 \\
      | jq -c '.items[]'
  floe scan orders --count --all --data ./shop

A filter removes items after they were read and charged. If there are more than --limit items, the output has a cursor: resume \
there with --cursor. With --json, each line is a page: items, count, scanned, and cursor if there are more items. Exit code 3: \
there is no such index."))]
pub(super) struct ScanCommand {
    #[command(flatten)]
    selection: Selection,
}

impl ScanCommand {
    pub(super) fn run(&self) -> Result {
        let resolved = self.selection.placeholders()?;
        let parser = resolved.parser();
        let scan = Scan::new(self.selection.table.as_str());
        self.selection.run(parser, PageRequest::Scan(scan))
    }
}
