//! Tables as text: one JSON object per line, out of the engine and into it.
//!
//! ```text
//! {"FloeExport":1,"Table":{"TableName":"Orders","KeySchema":[…],…}}
//! {"Item":{"id":{"S":"o-1"},"total":{"N":"12.50"}}}
//! {"Item":{"id":{"S":"o-2"},"total":{"N":"8"}}}
//! {"End":{"ItemCount":2}}
//! ```
//!
//! The lines of items are those of DynamoDB's own export to S3, whose files can be imported as they are,
//! or behind the output of `aws dynamodb describe-table` as a first line. The definition stands in the
//! same text as the items, in front, so that the two cannot be parted, a table can be piped into another
//! engine, and several tables are several texts in a row. The last line tells a whole export from one
//! that was cut off behind a line. [`ExportOptions::items_only`] leaves both out, for DynamoDB's import
//! from S3, which knows lines of items alone.
//!
//! An export reads one snapshot. An [import](read) puts items, many at once but each on its own, so it
//! can be run again after it was stopped, and ends with the same table.

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

/// The version of the text, which stands in its first line.
const VERSION: u64 = 1;

/// How many lines lie between two reports of progress.
const PROGRESS_LINES: u64 = 1000;

/// What an export writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportOptions {
    /// Only the lines of items, as DynamoDB's import from S3 takes them.
    pub items_only: bool,
}

impl ExportOptions {
    /// Everything.
    pub const fn new() -> Self {
        Self { items_only: false }
    }

    /// Leaves out the lines of the definition and of the end.
    #[must_use]
    pub const fn items_only(mut self) -> Self {
        self.items_only = true;
        self
    }
}

/// How far an export has come, and in the end what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportReport {
    /// The items written so far.
    pub items: u64,
    /// The items that the table had when the export began.
    pub items_expected: u64,
    /// The bytes of text written so far.
    pub bytes: u64,
}

/// What an import does with what it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    /// The table to put the items into, instead of the one that the text names. Needed if the text has
    /// no definition.
    pub table_name: Option<String>,
}

impl ImportOptions {
    /// As the text says.
    pub const fn new() -> Self {
        Self { table_name: None }
    }

    /// Into this table.
    #[must_use]
    pub fn table_name(mut self, name: impl Into<String>) -> Self {
        self.table_name = Some(name.into());
        self
    }
}

/// How far an import has come, and in the end what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportReport {
    /// The lines read so far.
    pub lines: u64,
    /// The bytes of text read so far.
    pub bytes: u64,
    /// The items that are put for good.
    pub items: u64,
    /// The tables that the import made.
    pub tables_created: Vec<String>,
}

impl LocalEngine {
    /// Writes a table as lines of JSON: its definition, its items as they are at one moment, and their
    /// number. [`import`](Self::import) reads it.
    ///
    /// It blocks until everything is written and flushed. The text goes out line by line: give it a
    /// [`BufWriter`](std::io::BufWriter).
    ///
    /// # Errors
    ///
    /// [`Error::ResourceNotFound`] when the table is not there, [`Error::Storage`] when it cannot be
    /// read or the text not be written.
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

    /// As [`export_table`](Self::export_table), with settings, and tells how far it has come.
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

    /// Reads what [`export_table`](Self::export_table) wrote, for one table or several in a row: makes
    /// the tables that are not there, and puts the items into them.
    ///
    /// It blocks until everything is put. Items that are there under the same key are replaced, others
    /// are left. When it fails, the items before the line that the error names are put or will be; run
    /// it again once the cause is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Validation`] with the line when the text is at fault, or when a table is there with
    /// another key; otherwise what a write can fail with.
    pub fn import(&self, input: impl BufRead) -> Result<ImportReport> {
        self.import_with(input, ImportOptions::new(), |_| {})
    }

    /// As [`import`](Self::import), with settings, and tells how far it has come.
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
    let (table, snapshot) = table_at_one_moment(shared, table_name)?;
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
    lines.out.flush().map_err(|e| unwritten(&e))?;
    progress(&lines.report);
    Ok(lines.report)
}

struct Lines<W> {
    out: W,
    report: ExportReport,
    /// The line that is being written.
    line: Writer,
}

impl<W: Write> Lines<W> {
    /// Writes a line.
    fn write(&mut self, write: impl FnOnce(&mut Writer)) -> Result<()> {
        write(&mut self.line);
        let mut line = std::mem::take(&mut self.line).into_bytes();
        line.push(b'\n');
        self.out.write_all(&line).map_err(|e| unwritten(&e))?;
        self.report.bytes += line.len() as u64;
        self.line = Writer::reusing(line);
        Ok(())
    }
}

fn unwritten(error: &std::io::Error) -> Error {
    Error::Storage(format!(
        "the text of an export could not be written: {error}"
    ))
}

/// A table, and a snapshot of a moment at which it was there with this definition.
fn table_at_one_moment(shared: &Shared, table_name: &str) -> Result<(Arc<Table>, Snapshot)> {
    loop {
        let table = shared.table(table_name)?;
        let snapshot = shared.kv.snapshot();
        if !table.is_retired() {
            return Ok((table, snapshot));
        }
    }
}
