//! `floe import`: reads JSON lines into tables.

mod remote;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use floe_local::{ImportOptions, ImportReport};

use crate::{Failure, IfMissing, OpenStore, Progress, Result, StoreArgs, bytes, grouped, members};

/// Import JSON lines of `floe export` or DynamoDB's export to S3
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe import --from orders.jsonl --data ./shop
  floe import --from orders.jsonl --data ./fresh --new
  zcat AWSDynamoDB/…/data/*.json.gz | floe import --table orders \\
      --endpoint http://127.0.0.1:8000

The input is the output of `floe export`, also of several tables one after the other, or that of DynamoDB's export to S3, which \
needs --table with an existing table. Tables that do not exist are created. Items with the same key are replaced, others are \
kept. An interrupted import can be run again.")]
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
    target: StoreArgs,
}

impl Import {
    pub(super) fn run(&self) -> Result {
        let (input, size) = self.input()?;
        let missing = IfMissing::create_if(self.new);
        self.target.store.run_or(missing, async |opened| {
            let imported = self.import(opened, input, size).await?;
            self.print(&imported);
            Ok(())
        })
    }

    /// The input, and its size in bytes if it is known.
    fn input(&self) -> Result<(Box<dyn BufRead>, Option<u64>)> {
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
        let progress = Progress::new(!self.target.output.json);
        progress.only_step("importing");
        let report = |imported: &ImportReport| progress.at(imported.bytes, size);
        let imported = match &opened.local {
            Some(engine) => {
                let mut options = ImportOptions::new();
                options.table_name.clone_from(&self.table);
                engine.import_with(input, options, report)?
            }
            None => remote::import(opened, self.table.as_deref(), input, report).await?,
        };
        progress.end();
        Ok(imported)
    }

    fn print(&self, imported: &ImportReport) {
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
        );
    }
}
