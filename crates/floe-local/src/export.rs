//! Export and import of tables as text, with one JSON object per line.
//!
//! ```text
//! {"FloeExport":1,"Table":{"TableName":"Orders","KeySchema":[…],…}}
//! {"Item":{"id":{"S":"o-1"},"total":{"N":"12.50"}}}
//! {"Item":{"id":{"S":"o-2"},"total":{"N":"8"}}}
//! {"End":{"ItemCount":2}}
//! ```
//!
//! Item lines are those of DynamoDB's own export to S3, whose files can be imported unchanged, or after the output of
//! `aws dynamodb describe-table` as the first line. The definition precedes the items in the same text, so that the two
//! cannot be separated, a table can be piped into another engine, and several tables are simply concatenated. The last
//! line distinguishes a complete export from one truncated at the end of a line. [`ExportOptions::items_only`] omits
//! the definition and the last line for DynamoDB's import from S3, which accepts only item lines.
//!
//! An export reads one snapshot. An [import](read) puts items in parallel but individually, so it can be repeated after
//! an interruption and produces the same table.

mod definition;
mod read;

use std::io::{BufRead, Write};
use std::sync::Arc;

use floe_store::json::{Writer, write_item};
use floe_store::{Error, Result};

use crate::LocalEngine;
use crate::catalog::Table;
use crate::kv::{Direction, Snapshot};
use crate::layout::item;
use crate::layout::key::Entries;
use crate::shared::Shared;

/// Version of the text format, contained in the first line.
const VERSION: u64 = 1;

/// Number of lines between two progress reports.
const PROGRESS_LINES: u64 = 1000;

/// Options of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Whether to write only item lines, as DynamoDB's import from S3 requires. Default: false.
    pub items_only: bool,
}

impl ExportOptions {
    /// Returns the defaults: export everything.
    pub const fn new() -> Self {
        Self { items_only: false }
    }

    /// Omits the definition and the last line.
    #[must_use]
    pub const fn items_only(mut self) -> Self {
        self.items_only = true;
        self
    }
}

/// Progress of an export, and its final result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportReport {
    /// Items written so far.
    pub items: u64,
    /// Items in the table when the export began.
    pub items_expected: u64,
    /// Bytes of text written so far.
    pub bytes: u64,
}

/// Options of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The table to import into, instead of the one named in the text. Required if the text has no definition.
    pub table_name: Option<String>,
}

impl ImportOptions {
    /// Returns the defaults: import into the tables named in the text.
    pub const fn new() -> Self {
        Self { table_name: None }
    }

    /// Imports into this table.
    #[must_use]
    pub fn table_name(mut self, name: impl Into<String>) -> Self {
        self.table_name = Some(name.into());
        self
    }
}

/// Progress of an import, and its final result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// Lines read so far.
    pub lines: u64,
    /// Bytes of text read so far.
    pub bytes: u64,
    /// Items that are durably stored.
    pub items: u64,
    /// Tables that the import created.
    pub tables_created: Vec<String>,
}

impl LocalEngine {
    /// Writes a table as lines of JSON: its definition, its items from one snapshot, and their number.
    /// [`import`](Self::import) reads it.
    ///
    /// Blocks until everything is written and flushed. Writes line by line, so pass a
    /// [`BufWriter`](std::io::BufWriter).
    ///
    /// # Errors
    ///
    /// [`Error::ResourceNotFound`] if the table does not exist, [`Error::Storage`] if it cannot be read or the text
    /// cannot be written.
    ///
    /// ```
    /// use floe_local::LocalEngine;
    /// use floe_store::op::{CreateTable, PutItem};
    /// use floe_store::{Engine, Item, TableDef, table::KeyKind};
    ///
    /// # #[tokio::main]
    /// # async fn main() -> floe_store::Result<()> {
    /// let engine = LocalEngine::memory()?;
    /// let orders = TableDef::builder("Orders", "id", KeyKind::S).build()?;
    /// engine.create_table(CreateTable::from(orders)).await?;
    /// let order = Item::new().with("id", "o-1").with("total", 12);
    /// engine.write_item(PutItem::new("Orders", order).into()).await?;
    ///
    /// let mut text = Vec::new();
    /// engine.export_table("Orders", &mut text)?;
    /// let lines: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
    /// assert_eq!(lines[1], r#"{"Item":{"id":{"S":"o-1"},"total":{"N":"12"}}}"#);
    ///
    /// let other = LocalEngine::memory()?;
    /// assert_eq!(other.import(&text[..])?.items, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn export_table(&self, table_name: &str, out: impl Write) -> Result<ExportReport> {
        self.export_table_with(table_name, out, ExportOptions::new(), |_| {})
    }

    /// Like [`export_table`](Self::export_table), with options, and reports its progress.
    ///
    /// # Errors
    ///
    /// As [`export_table`](Self::export_table).
    pub fn export_table_with(
        &self,
        table_name: &str,
        out: impl Write,
        options: ExportOptions,
        progress: impl FnMut(&ExportReport),
    ) -> Result<ExportReport> {
        export_table(self.running.shared(), table_name, options, out, progress)
    }

    /// Imports one or more tables in the format of [`export_table`](Self::export_table): creates missing tables, and
    /// puts the items.
    ///
    /// Blocks until all items are stored. Existing items with the same key are replaced, others are kept. If it fails,
    /// all items before the line in the error are stored or will be; fix the cause and run the import again.
    ///
    /// # Errors
    ///
    /// [`Error::Validation`] with the line if the text is invalid or a table exists with a different key; otherwise the
    /// errors of writes.
    pub fn import(&self, input: impl BufRead) -> Result<ImportReport> {
        self.import_with(input, ImportOptions::new(), |_| {})
    }

    /// Like [`import`](Self::import), with options, and reports its progress.
    ///
    /// # Errors
    ///
    /// As [`import`](Self::import).
    pub fn import_with(
        &self,
        input: impl BufRead,
        options: ImportOptions,
        progress: impl FnMut(&ImportReport),
    ) -> Result<ImportReport> {
        read::import(&self.running.committer, options, input, progress)
    }
}

fn export_table(
    shared: &Shared,
    table_name: &str,
    options: ExportOptions,
    out: impl Write,
    mut progress: impl FnMut(&ExportReport),
) -> Result<ExportReport> {
    let (table, snapshot) = table_with_snapshot(shared, table_name)?;
    let mut lines = Lines {
        out,
        report: ExportReport {
            items_expected: table.counts().table.items,
            ..ExportReport::default()
        },
        line: Writer::default(),
    };
    if !options.items_only {
        let definition = definition::write(table.definition());
        lines.write(|w| {
            w.object(|w| {
                w.name("FloeExport").number(VERSION);
                w.name("Table").number(definition);
            });
        })?;
    }
    for entry in snapshot.range(table.space(), Entries::Items.bounds(), Direction::Forward) {
        let item = item::decode(&entry?.1)?;
        lines.write(|w| w.object(|w| write_item(w.name("Item"), &item)))?;
        lines.report.items += 1;
        if lines.report.items.is_multiple_of(PROGRESS_LINES) {
            progress(&lines.report);
        }
    }
    if !options.items_only {
        let items = lines.report.items;
        lines
            .write(|w| w.object(|w| w.name("End").object(|w| w.name("ItemCount").number(items))))?;
    }
    lines.out.flush().map_err(|e| write_error(&e))?;
    progress(&lines.report);
    Ok(lines.report)
}

struct Lines<W> {
    out: W,
    report: ExportReport,
    /// The buffer of the current line.
    line: Writer,
}

impl<W: Write> Lines<W> {
    /// Writes a line.
    fn write(&mut self, write: impl FnOnce(&mut Writer)) -> Result<()> {
        write(&mut self.line);
        let mut line = std::mem::take(&mut self.line).into_bytes();
        line.push(b'\n');
        self.out.write_all(&line).map_err(|e| write_error(&e))?;
        self.report.bytes += line.len() as u64;
        self.line = Writer::reusing(line);
        Ok(())
    }
}

fn write_error(error: &std::io::Error) -> Error {
    Error::Storage(format!("failed to write the export: {error}"))
}

/// Returns a table, and a snapshot in which the table has this definition.
fn table_with_snapshot(shared: &Shared, table_name: &str) -> Result<(Arc<Table>, Snapshot)> {
    loop {
        let table = shared.table(table_name)?;
        let snapshot = shared.kv.snapshot();
        if !table.is_retired() {
            return Ok((table, snapshot));
        }
    }
}
