//! `floe export`: writes a table as JSON lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use floe_local::{ExportOptions, ExportReport};
use floe_server::json::{TableLifecycle, write_table};
use floe_store::json::{Writer, write_item};
use floe_store::op::Scan;

use crate::{
    Failure, OpenStore, OutputStream, Progress, Result, StoreArgs, bytes, grouped, note, object,
};

/// Export a table as JSON lines
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe export orders --data ./shop > orders.jsonl
  floe export orders --to orders.jsonl --endpoint http://127.0.0.1:8000
  floe export orders --data ./shop | floe import --data ./other --new
  # for DynamoDB's import from S3
  floe export orders --data ./shop --items-only | gzip > orders.json.gz

The first line defines the table, each further line is an item in the format of DynamoDB's export to S3, and the last line has \
the number of items. The export of a directory is a consistent snapshot; a server is read page by page, so items written \
meanwhile may be included or not. The file of --to appears under its name only when it is complete; until then its name ends \
with .part. If the command is killed, this file remains: remove it before the next export.")]
pub(super) struct Export {
    /// Name of the table
    table: String,

    /// File to write; must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Write only the items, without the first and last line
    #[arg(long)]
    items_only: bool,

    #[command(flatten)]
    target: StoreArgs,
}

/// Renames a file, but never replaces one.
fn rename_without_replacing(part: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(part, path) {
        Ok(()) => std::fs::remove_file(part),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(error),
        // Not all file systems have hard links.
        Err(_) => std::fs::rename(part, path),
    }
}

impl Export {
    pub(super) fn run(&self) -> Result {
        if self.target.output.is_json() && self.to.is_none() {
            return Err(Failure::usage(
                "--json needs --to: without it, standard output has the export itself",
            ));
        }
        self.target.run(async |opened| {
            opened.table(&self.table).await?;
            let exported = match &self.to {
                Some(path) => self.export_to(opened, path).await?,
                None => {
                    let mut out = OutputStream::new();
                    let exported = self.export(opened, BufWriter::new(&mut out)).await;
                    out.check()?;
                    exported?
                }
            };
            self.print(exported)
        })
    }

    /// Writes the file under a temporary name first: an incomplete export must not look like a complete one.
    async fn export_to(&self, opened: &OpenStore, path: &Path) -> Result<ExportReport> {
        let failed = |message: &str, error: &dyn std::fmt::Display| {
            let shown = path.display();
            Failure::failed(format!("{message}, {error}: path={shown}"))
        };
        if path.exists() {
            return Err(failed("the file cannot be created", &"it already exists"));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        // An existing file may be an interrupted export, or something else: never remove it.
        let file = File::create_new(&part).map_err(|error| {
            let part = part.display();
            failed(
                "the file cannot be created",
                &format!("{error}: remove {part} first"),
            )
        })?;
        let exported = self.export(opened, BufWriter::new(&file)).await;
        let written = exported.and_then(|exported| {
            let named = file
                .sync_all()
                .and_then(|()| rename_without_replacing(Path::new(&part), path));
            named.map_err(|error| failed("the export could not be written", &error))?;
            Ok(exported)
        });
        if written.is_err() {
            drop(std::fs::remove_file(&part));
        }
        written
    }

    async fn export(&self, opened: &OpenStore, out: impl Write) -> Result<ExportReport> {
        let progress = Progress::new(self.to.is_some() && !self.target.output.is_json());
        progress.only_step(&format!("exporting {}", self.table));
        let exported = match &opened.local {
            Some(engine) => {
                let options = if self.items_only {
                    ExportOptions::new().items_only()
                } else {
                    ExportOptions::new()
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

    /// Exports the table of a server page by page.
    async fn export_pages(
        &self,
        opened: &OpenStore,
        mut out: impl Write,
        progress: &Progress,
    ) -> Result<ExportReport> {
        let table = opened.table(&self.table).await?;
        let lifecycle = TableLifecycle::Active(opened.engine().now());
        let mut exported = ExportReport::default();
        if !self.items_only {
            write_line(&mut exported, &mut out, |w| {
                w.object(|w| write_table(w.name("Table"), &table, lifecycle));
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
        out.flush().map_err(write_failed)?;
        Ok(exported)
    }

    fn print(&self, exported: ExportReport) -> Result {
        let (table, items, size) = (&self.table, exported.items, exported.bytes);
        self.target.output.either(
            &|w| object!(w; "exported": table, "items": items, "bytes": size),
            // Standard output may have the export.
            &|| {
                let (items, size) = (grouped(items), bytes(size));
                note(&format!("exported: {table}, {items} items, {size}"));
                Ok(())
            },
        )
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
    out.write_all(&line).map_err(write_failed)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes errors by value"
)]
fn write_failed(error: std::io::Error) -> Failure {
    Failure::failed(format!("the export could not be written: {error}"))
}
