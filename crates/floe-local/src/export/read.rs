//! Imports: reads the lines of an export, or of DynamoDB's, and puts the items.

use std::collections::VecDeque;
use std::io::{BufRead, Read};

use floe_store::json::{Reader, Unsound, read_members, sound_item};
use floe_store::op::{PutItem, WriteItem, WriteItemOutput};
use floe_store::{Error, Item, Result};

use super::{ImportOptions, ImportReport, PROGRESS_LINES, VERSION, definition};
use crate::answer::Answer;
use crate::commit::Committer;
use crate::{items, tables};

/// The longest line. The largest item takes less, however it is written.
const LINE_BYTES_MAX: usize = 16 << 20;

/// The most puts that are under way.
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
        named: false,
        report: ImportReport::default(),
        puts: VecDeque::new(),
    };
    let mut line = Vec::new();
    while import.read_line(&mut input, &mut line)? {
        import.take_line(&line)?;
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
    /// The table that items go into.
    section: Option<Section>,
    /// Whether a definition has been read.
    named: bool,
    report: ImportReport,
    /// The puts under way, with their lines.
    puts: VecDeque<(u64, Answer<WriteItemOutput>)>,
}

/// What a line holds.
#[derive(Default)]
struct Line<'a> {
    item: Option<Item>,
    /// A definition, as JSON.
    table: Option<&'a str>,
    /// The version of the text that begins with the definition.
    version: Option<u64>,
    /// The end of a table, and how many items it says that there are.
    end: Option<Option<u64>>,
}

fn read_line<'a>(reader: &mut Reader<'a>) -> std::result::Result<Line<'a>, Unsound> {
    let mut line = Line::default();
    read_members(reader, |name, reader| {
        match name {
            "Item" => line.item = Some(sound_item(reader)?),
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
    /// Whether a last line must come.
    must_end: bool,
}

impl Import<'_> {
    /// Reads the next line; `false` at the end of the text.
    fn read_line(&mut self, input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool> {
        line.clear();
        let read = input
            .take(LINE_BYTES_MAX as u64 + 1)
            .read_until(b'\n', line);
        let read = read.map_err(|e| Error::Storage(format!("the text could not be read: {e}")))?;
        self.report.lines += u64::from(read > 0);
        self.report.bytes += read as u64;
        if read > LINE_BYTES_MAX {
            return Err(self.fault(format!("the line is too long: bytes_max={LINE_BYTES_MAX}")));
        }
        Ok(read > 0)
    }

    fn take_line(&mut self, line: &[u8]) -> Result<()> {
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
            Unsound::Malformed => self.fault(format!("the line is not JSON: at={at}")),
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
            } => self.begin(table, version),
            Line { end: Some(end), .. } => self.end(end),
            _ => Err(self.fault("the line has neither Item nor Table nor End")),
        }
    }

    fn begin(&mut self, table: &str, version: Option<u64>) -> Result<()> {
        self.check_ended()?;
        if version.is_some_and(|version| version > VERSION) {
            return Err(self.fault("the text was written by a newer version of floe"));
        }
        let mut table = definition::read(table)
            .map_err(|fault| self.fault(fault.under("Table").to_string()))?;
        if let Some(name) = &self.options.table_name {
            if self.named {
                return Err(self.fault(format!(
                    "the text holds several tables, which cannot all go into one: table={name}"
                )));
            }
            table.table_name.clone_from(name);
        }
        self.named = true;
        let wanted = table.definition().map_err(|e| self.at_line(e))?;
        match self.committer.shared.catalog.get(&wanted.name) {
            None => {
                let made = tables::create_table(self.committer, &table).and_then(Answer::wait);
                made.map_err(|e| self.at_line(e))?;
                self.report.tables_created.push(wanted.name.clone());
            }
            Some(there) if there.definition().key == wanted.key => {}
            Some(_) => {
                return Err(self.fault(format!(
                    "the table is there with another key: table={}",
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
            return Err(
                self.fault("the item belongs to no table: name one, or begin with a Table line")
            );
        };
        section.items += 1;
        let put = WriteItem::Put(PutItem::new(section.table_name.as_str(), item));
        let answer = items::write_item(self.committer, put).map_err(|e| self.at_line(e))?;
        self.puts.push_back((self.report.lines, answer));
        self.wait_for_puts(PUTS_MAX)
    }

    /// Waits until no more than so many puts are under way.
    fn wait_for_puts(&mut self, most: usize) -> Result<()> {
        while self.puts.len() > most
            && let Some((line, answer)) = self.puts.pop_front()
        {
            answer.wait().map_err(|e| at_line(e, line))?;
            self.report.items += 1;
        }
        Ok(())
    }

    fn end(&mut self, expected: Option<u64>) -> Result<()> {
        let Some(section) = self.section.take() else {
            return Err(self.fault("the end of a table that has not begun"));
        };
        if expected != Some(section.items) {
            return Err(self.fault(format!(
                "the text does not hold all items of the table: table={} found={} expected={}",
                section.table_name,
                section.items,
                expected.map_or("unknown".to_owned(), |count| count.to_string()),
            )));
        }
        Ok(())
    }

    /// Checks that the table before has ended, if it must.
    fn check_ended(&self) -> Result<()> {
        match &self.section {
            Some(section) if section.must_end => Err(self.fault(format!(
                "the text of the table was cut off, its last line is missing: table={}",
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

/// The error with the line that it is about, where the text is at fault.
fn at_line(error: Error, line: u64) -> Error {
    match error {
        Error::Validation(what) => Error::Validation(format!("{what}: line={line}")),
        error => error,
    }
}
