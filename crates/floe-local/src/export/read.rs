//! Imports: reads the lines of an export of Floe or DynamoDB, and puts the items.

use std::collections::VecDeque;
use std::io::{BufRead, Read};

use floe_store::json::{DecodeError, Reader, decode_item, read_members};
use floe_store::op::{PutItem, WriteItem, WriteItemOutput};
use floe_store::{Error, Item, Result};

use super::{ImportOptions, ImportReport, PROGRESS_LINES, VERSION, definition};
use crate::commit::Committer;
use crate::response::PendingResponse;
use crate::{items, tables};

/// Maximum length of a line. The largest item is shorter, however it is written.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Maximum number of concurrent puts.
const PUTS_MAX: usize = 512;

/// Reads a text and puts its items.
pub(super) fn import(
    committer: &Committer,
    options: ImportOptions,
    mut input: impl BufRead,
    mut progress: impl FnMut(&ImportReport),
) -> Result<ImportReport> {
    let mut import = Import {
        committer,
        section: options.table_name.clone().map(|table_name| Section {
            table_name,
            items: 0,
            must_end: false,
        }),
        options,
        has_definition: false,
        report: ImportReport::default(),
        puts: VecDeque::new(),
    };
    let mut line = Vec::new();
    while import.read_line(&mut input, &mut line)? {
        import.process_line(&line)?;
        if import.report.lines.is_multiple_of(PROGRESS_LINES) {
            progress(&import.report);
        }
    }
    import.check_ended()?;
    import.wait_for_puts(0)?;
    progress(&import.report);
    Ok(import.report)
}

struct Import<'a> {
    committer: &'a Committer,
    options: ImportOptions,
    /// The table that receives the items.
    section: Option<Section>,
    /// Whether a definition has been read.
    has_definition: bool,
    report: ImportReport,
    /// Pending puts, with their line numbers.
    puts: VecDeque<(u64, PendingResponse<WriteItemOutput>)>,
}

/// The content of a line.
#[derive(Default)]
struct Line<'a> {
    item: Option<Item>,
    /// A table definition, as JSON.
    table: Option<&'a str>,
    /// Format version of the text that starts with the definition.
    version: Option<u64>,
    /// The end of a table, and the number of items that it states.
    end: Option<Option<u64>>,
}

fn read_line<'a>(reader: &mut Reader<'a>) -> std::result::Result<Line<'a>, DecodeError> {
    let mut line = Line::default();
    read_members(reader, |name, reader| {
        match name {
            "Item" => line.item = Some(decode_item(reader)?),
            "Table" => line.table = Some(reader.raw()?),
            "FloeExport" => line.version = Some(reader.raw()?.parse().unwrap_or(u64::MAX)),
            "End" => {
                let mut count = None;
                read_members(reader, |name, reader| {
                    let value = reader.raw()?;
                    count = count.or(value.parse().ok().filter(|_| name == "ItemCount"));
                    Ok(())
                })?;
                line.end = Some(count);
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(line)
}

/// The lines of one table.
struct Section {
    table_name: String,
    items: u64,
    /// Whether an End line is required.
    must_end: bool,
}

impl Import<'_> {
    /// Reads the next line. `false` at the end of the input.
    fn read_line(&mut self, input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let read = input
            .take(LINE_BYTES_MAX as u64 + 1)
            .read_until(b'\n', line);
        let read = read.map_err(|e| Error::Storage(format!("failed to read the import: {e}")))?;
        self.report.lines += u64::from(read > 0);
        self.report.bytes += read as u64;
        if read > LINE_BYTES_MAX {
            return Err(self.fault(format!("the line is too long: bytes_max={LINE_BYTES_MAX}")));
        }
        Ok(read > 0)
    }

    fn process_line(&mut self, line: &[u8]) -> Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let text = std::str::from_utf8(line);
        let text = text.map_err(|e| self.fault(format!("the line is not JSON: {e}")))?;
        let mut reader = Reader::new(text);
        let read = read_line(&mut reader);
        let at = reader.position();
        let read = read.and_then(|line| Ok(reader.finish().map(|()| line)?));
        let line = read.map_err(|unsound| match unsound {
            DecodeError::Malformed => self.fault(format!("the line is not JSON: at={at}")),
            wrong => self.fault(wrong.to_string()),
        })?;
        match line {
            Line {
                item: Some(item), ..
            } => self.put(item),
            Line {
                table: Some(table),
                version,
                ..
            } => self.begin_table(table, version),
            Line { end: Some(end), .. } => self.end(end),
            _ => Err(self.fault("the line has neither Item nor Table nor End")),
        }
    }

    fn begin_table(&mut self, table: &str, version: Option<u64>) -> Result<()> {
        self.check_ended()?;
        if version.is_some_and(|version| version > VERSION) {
            return Err(self.fault("the input was written by a newer version of floe"));
        }
        let mut table = definition::read(table)
            .map_err(|fault| self.fault(fault.under("Table").to_string()))?;
        if let Some(name) = &self.options.table_name {
            if self.has_definition {
                return Err(self.fault(format!(
                    "the input contains several tables, which cannot be imported into one: table={name}"
                )));
            }
            table.table_name.clone_from(name);
        }
        self.has_definition = true;
        let wanted = table.definition().map_err(|e| self.at_line(e))?;
        match self.committer.shared.catalog.get(&wanted.name) {
            None => {
                let made =
                    tables::create_table(self.committer, &table).and_then(PendingResponse::wait);
                made.map_err(|e| self.at_line(e))?;
                self.report.tables_created.push(wanted.name.clone());
            }
            Some(there) if there.definition().key == wanted.key => {}
            Some(_) => {
                return Err(self.fault(format!(
                    "the table exists with a different key: table={}",
                    wanted.name
                )));
            }
        }
        self.section = Some(Section {
            table_name: wanted.name,
            items: 0,
            must_end: version.is_some(),
        });
        Ok(())
    }

    fn put(&mut self, item: Item) -> Result<()> {
        let Some(section) = &mut self.section else {
            return Err(self
                .fault("the item belongs to no table: name a table, or start with a Table line"));
        };
        section.items += 1;
        let put = WriteItem::Put(PutItem::new(section.table_name.as_str(), item));
        let response = items::write_item(self.committer, put).map_err(|e| self.at_line(e))?;
        self.puts.push_back((self.report.lines, response));
        self.wait_for_puts(PUTS_MAX)
    }

    /// Waits until at most `limit` puts are pending.
    fn wait_for_puts(&mut self, limit: usize) -> Result<()> {
        while self.puts.len() > limit
            && let Some((line, response)) = self.puts.pop_front()
        {
            response.wait().map_err(|e| at_line(e, line))?;
            self.report.items += 1;
        }
        Ok(())
    }

    fn end(&mut self, expected: Option<u64>) -> Result<()> {
        let Some(section) = self.section.take() else {
            return Err(self.fault("End line without a table"));
        };
        if expected != Some(section.items) {
            return Err(self.fault(format!(
                "wrong number of items: table={} expected={} actual={}",
                section.table_name,
                expected.map_or("unknown".to_owned(), |count| count.to_string()),
                section.items,
            )));
        }
        Ok(())
    }

    /// Checks that the End line of the previous table was read, if it is required.
    fn check_ended(&self) -> Result<()> {
        match &self.section {
            Some(section) if section.must_end => Err(self.fault(format!(
                "the input is truncated, the last line of the table is missing: table={}",
                section.table_name
            ))),
            _ => Ok(()),
        }
    }

    fn fault(&self, what: impl Into<String>) -> Error {
        self.at_line(Error::validation(what))
    }

    fn at_line(&self, error: Error) -> Error {
        at_line(error, self.report.lines)
    }
}

/// Adds the line number to an error about the text.
fn at_line(error: Error, line: u64) -> Error {
    match error {
        Error::Validation(what) => Error::Validation(format!("{what}: line={line}")),
        error => error,
    }
}
