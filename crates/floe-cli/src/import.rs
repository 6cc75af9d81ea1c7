//! `floe import`: reads JSON lines into tables.

mod lines;
mod remote;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use floe_local::{ImportOptions, ImportReport};

use lines::ItemLines;

use crate::{
    Failure, IfMissing, Input, OpenStore, Progress, Result, StoreArgs, bytes, grouped, members,
};

/// Import JSON lines: of `floe export`, of DynamoDB's export to S3, or an item per line
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe import --from orders.jsonl --data ./shop
  floe import --from orders.jsonl --data ./fresh --new
  zcat AWSDynamoDB/…/data/*.json.gz | floe import --table orders \\
      --endpoint http://127.0.0.1:8000
  floe scan orders --all --json=dynamodb --data ./shop | jq -c '.items[]' \\
      | floe import --table orders --data ./other

The input is the output of `floe export`, also of several tables one after the other, or that of DynamoDB's export to S3, or has \
an item per line. Only the first defines its table; otherwise, --table names an existing table. Tables that do not exist are \
created. Items with the same key are replaced, others are kept. An interrupted import can be run again.

Items are in plain JSON ({\"id\":\"a\",\"n\":5}) or DynamoDB JSON ({\"id\":{\"S\":\"a\"},\"n\":{\"N\":\"5\"}}). The format of each is detected as \
by `floe item put`, unless --input sets it. A line with a member Item, Table or End belongs to an export; with --input plain, \
every line is an item. Sets and bytes need DynamoDB JSON: what `--json` prints for them is ambiguous and rejected, what \
`--json=dynamodb` prints is read back.")]
pub(super) struct Import {
    /// File to read [default: standard input]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Table to import into [default: the one named in the input]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    /// Create a store if the directory holds none
    #[arg(long, requires = "data")]
    new: bool,

    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    target: StoreArgs,
}

impl Import {
    pub(super) fn run(&self) -> Result {
        let (input, size) = self.open_input()?;
        let missing = IfMissing::create_if(self.new);
        self.target.store.run_or(missing, async |opened| {
            let imported = self.import(opened, input, size).await?;
            self.print(&imported)
        })
    }

    /// The input, and its size in bytes if it is known.
    fn open_input(&self) -> Result<(Box<dyn BufRead>, Option<u64>)> {
        let Some(path) = &self.from else {
            return Ok((Box::new(std::io::stdin().lock()), None));
        };
        let unreadable = |error: std::io::Error| {
            let shown = path.display();
            Failure::failed(format!("the file cannot be read, {error}: path={shown}"))
        };
        let file = File::open(path).map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        Ok((Box::new(BufReader::new(file)), Some(size)))
    }

    async fn import(
        &self,
        opened: &OpenStore,
        input: Box<dyn BufRead>,
        size: Option<u64>,
    ) -> Result<ImportReport> {
        let progress = Progress::new(!self.target.output.is_json());
        progress.only_step("importing");
        // The engine counts the bytes of converted lines.
        let at = |bytes: u64| size.map_or(bytes, |size| bytes.min(size));
        let report = |imported: &ImportReport| progress.at(at(imported.bytes), size);
        let mut lines = ItemLines::new(input, self.input);
        let imported = match &opened.local {
            Some(engine) => {
                let mut options = ImportOptions::new();
                options.table_name.clone_from(&self.table);
                let imported = engine.import_with(&mut lines, options, report);
                imported.map_err(Failure::from)
            }
            None => remote::import(opened, self.table.as_deref(), &mut lines, report).await,
        };
        progress.end();
        let bytes = lines.end()?;
        let mut imported = imported?;
        imported.bytes = bytes;
        Ok(imported)
    }

    fn print(&self, imported: &ImportReport) -> Result {
        let created = match imported.tables_created.as_slice() {
            [] => String::new(),
            names => format!(", created {}", names.join(", ")),
        };
        let [items, lines] = [imported.items, imported.lines].map(grouped);
        let size = bytes(imported.bytes);
        self.target.output.line(
            members![
                "items": imported.items, "lines": imported.lines, "bytes": imported.bytes,
                "tables_created": imported.tables_created
            ],
            &format_args!("imported: {items} items of {lines} lines, {size}{created}"),
        )
    }
}
