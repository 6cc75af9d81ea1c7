//! `floe import`: lines of JSON into tables.

mod remote;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use floe_local::{ImportOptions, ImportReport};

use crate::{Failure, IfMissing, Opened, Progress, Result, StoreArgs, bytes, grouped, members};

/// Put lines of JSON into tables, as `floe export` and DynamoDB's export write them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe import --from orders.jsonl --data ./shop
  floe import --from orders.jsonl --data ./fresh --new
  zcat AWSDynamoDB/…/data/*.json.gz | floe import --table orders \\
      --endpoint http://127.0.0.1:8000

It reads what `floe export` has written, several tables in a row too, and the lines of DynamoDB's export to S3, for which \
--table names a table that is there. Tables that are missing are made. Items that are there under the same key are replaced, \
others are left; if it was stopped, it can be run again.")]
pub(super) struct Import {
    /// From this file [default: the standard input]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// Into this table [default: the one that the lines name]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    /// Make the directory a store, if there is none in it
    #[arg(long, requires = "data")]
    new: bool,

    #[command(flatten)]
    at: StoreArgs,
}

impl Import {
    pub(super) fn run(&self) -> Result {
        let (input, size) = self.input()?;
        let missing = IfMissing::made(self.new);
        self.at.store.run_or(missing, async |opened| {
            let imported = self.import(opened, input, size).await?;
            self.print(&imported);
            Ok(())
        })
    }

    /// What is read, and how many bytes that are if it is known.
    fn input(&self) -> Result<(Box<dyn BufRead>, Option<u64>)> {
        let Some(path) = &self.from else {
            return Ok((Box::new(std::io::stdin().lock()), None));
        };
        let unread = |error: std::io::Error| {
            let shown = path.display();
            Failure::broken(format!("the file cannot be read, {error}: path={shown}"))
        };
        let file = File::open(path).map_err(unread)?;
        let size = file.metadata().map_err(unread)?.len();
        Ok((Box::new(BufReader::new(file)), Some(size)))
    }

    async fn import(
        &self,
        opened: &Opened,
        input: Box<dyn BufRead>,
        size: Option<u64>,
    ) -> Result<ImportReport> {
        let progress = Progress::new(!self.at.output.json);
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
        let made = match imported.tables_created.as_slice() {
            [] => String::new(),
            names => format!(", made {}", names.join(", ")),
        };
        let [items, lines] = [imported.items, imported.lines].map(grouped);
        let size = bytes(imported.bytes);
        self.at.output.line(
            members![
                "items": imported.items, "lines": imported.lines, "bytes": imported.bytes,
                "tables_created": imported.tables_created
            ],
            &format_args!("imported: {items} items of {lines} lines, {size}{made}"),
        );
    }
}
