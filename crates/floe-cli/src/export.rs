//! `floe export`: a table as lines of JSON.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use floe_local::{ExportOptions, ExportReport};
use floe_server::json::{Moment, write_table};
use floe_store::json::{Writer, write_item};
use floe_store::op::Scan;

use crate::{Failure, Opened, Progress, Result, StoreArgs, bytes, grouped, note, object};

/// Write a table as lines of JSON
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe export orders --data ./shop > orders.jsonl
  floe export orders --to orders.jsonl --endpoint http://127.0.0.1:8000
  floe export orders --data ./shop | floe import --data ./other --new
  # for DynamoDB's import from S3
  floe export orders --data ./shop --items-only | gzip > orders.json.gz

A file is called as --to says only when it is complete; until then its name ends with .part. An export that was killed \
leaves that file behind; remove it before the next one. The first line is the table, then comes a line for each item, as DynamoDB's export to S3 has them, and the last tells how \
many there were. Of a directory they are the items of one moment; behind a server they are read page by page, while others \
may write.")]
pub(super) struct Export {
    /// The table
    table: String,

    /// Into this file, which must not be there yet [default: the standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Only the lines of items, without the table and the end
    #[arg(long)]
    items_only: bool,

    #[command(flatten)]
    at: StoreArgs,
}

/// Gives a file its name, and replaces nothing.
fn give_name(part: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(part, path) {
        Ok(()) => std::fs::remove_file(part),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(error),
        // Not every file system has links.
        Err(_) => std::fs::rename(part, path),
    }
}

impl Export {
    pub(super) fn run(&self) -> Result {
        if self.at.output.json && self.to.is_none() {
            return Err(Failure::usage(
                "--json tells what was done, and the lines go to the standard output; say where they go with --to",
            ));
        }
        self.at.run(async |opened| {
            opened.table(&self.table).await?;
            let exported = match &self.to {
                Some(path) => self.export_to(opened, path).await?,
                None => {
                    let out = BufWriter::new(std::io::stdout().lock());
                    self.export(opened, out).await?
                }
            };
            self.print(exported);
            Ok(())
        })
    }

    /// Writes the file under another name first: half of a table must not be taken for a whole one.
    async fn export_to(&self, opened: &Opened, path: &Path) -> Result<ExportReport> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            let shown = path.display();
            Failure::broken(format!("{what}, {error}: path={shown}"))
        };
        if path.exists() {
            return Err(failed("the file cannot be made", &"it is there already"));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        // One that is there may be an export that was interrupted, or something else: it is not ours to remove.
        let file = File::create_new(&part).map_err(|error| {
            let part = part.display();
            failed(
                "the file cannot be made",
                &format!("{error}: remove {part} first"),
            )
        })?;
        let exported = self.export(opened, BufWriter::new(&file)).await;
        let written = exported.and_then(|exported| {
            let named = file
                .sync_all()
                .and_then(|()| give_name(Path::new(&part), path));
            named.map_err(|error| failed("the export could not be written", &error))?;
            Ok(exported)
        });
        if written.is_err() {
            drop(std::fs::remove_file(&part));
        }
        written
    }

    async fn export(&self, opened: &Opened, out: impl Write) -> Result<ExportReport> {
        let progress = Progress::new(self.to.is_some() && !self.at.output.json);
        progress.only_step(&format!("exporting {}", self.table));
        let exported = match &opened.local {
            Some(engine) => {
                let options = match self.items_only {
                    true => ExportOptions::new().items_only(),
                    false => ExportOptions::new(),
                };
                engine.export_table_with(&self.table, out, options, |report| {
                    progress.at(report.items, Some(report.items_expected));
                })?
            }
            None => self.export_pages(opened, out, &progress).await?,
        };
        progress.end();
        Ok(exported)
    }

    /// Reads the table page by page from a server.
    async fn export_pages(
        &self,
        opened: &Opened,
        mut out: impl Write,
        progress: &Progress,
    ) -> Result<ExportReport> {
        let table = opened.table(&self.table).await?;
        let moment = Moment::Life(opened.engine().now());
        let mut exported = ExportReport::default();
        if !self.items_only {
            write_line(&mut exported, &mut out, |w| {
                w.object(|w| write_table(w.name("Table"), &table, moment));
            })?;
        }
        let mut scan = Scan::new(self.table.as_str()).consistent();
        loop {
            let page = opened.engine().scan(scan.clone()).await?;
            for item in &page.items {
                write_line(&mut exported, &mut out, |w| {
                    w.object(|w| write_item(w.name("Item"), item));
                })?;
                exported.items += 1;
            }
            progress.at(exported.items, Some(table.item_count.max(exported.items)));
            match page.last_key {
                Some(key) => scan.start_key = Some(key),
                None => break,
            }
        }
        if !self.items_only {
            let items = exported.items;
            write_line(&mut exported, &mut out, |w| {
                w.object(|w| object!(w.name("End"); "ItemCount": items));
            })?;
        }
        out.flush().map_err(unwritten)?;
        Ok(exported)
    }

    fn print(&self, exported: ExportReport) {
        let (table, items, size) = (&self.table, exported.items, exported.bytes);
        self.at.output.either(
            &|w| object!(w; "exported": table, "items": items, "bytes": size),
            // The standard output may be the export.
            &|| {
                let (items, size) = (grouped(items), bytes(size));
                note(&format!("exported: {table}, {items} items, {size}"));
            },
        );
    }
}

fn write_line(
    exported: &mut ExportReport,
    out: &mut impl Write,
    write: impl FnOnce(&mut Writer),
) -> Result {
    let mut writer = Writer::with_capacity(256);
    write(&mut writer);
    let mut line = writer.into_bytes();
    line.push(b'\n');
    exported.bytes += u64::try_from(line.len()).unwrap_or(0);
    out.write_all(&line).map_err(unwritten)
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands errors over")]
fn unwritten(error: std::io::Error) -> Failure {
    Failure::broken(format!("the export could not be written: {error}"))
}
