//! Import into a server: parses table definitions with the embedded engine, and puts items in batches.

use std::io::BufRead;

use floe_local::{ImportReport, LocalEngine};
use floe_store::json::{DecodeError, Malformed, Reader, decode_item};
use floe_store::limits::BATCH_WRITE_ITEMS_MAX;
use floe_store::op::{BatchWrite, BatchWriteItem, ListTables};
use floe_store::{Engine, Item, TableDef};

use crate::{Failure, OpenStore, Result, describe, missing_table};

/// Puts all items of the input, and creates tables that do not exist.
pub(super) async fn import(
    opened: &OpenStore,
    table: Option<&str>,
    input: impl BufRead,
    report: impl Fn(&ImportReport),
) -> Result<ImportReport> {
    let mut importer = Importer {
        opened,
        requested_table: table,
        table: None,
        pending: Vec::new(),
        items_in_section: 0,
        expects_end: false,
        report: ImportReport::default(),
    };
    if let Some(name) = table {
        // If it does not exist, the input may define it.
        let found = describe(&opened.db, name).await?;
        importer.table = found.map(|table| table.definition);
    }
    for line in input.lines() {
        let line =
            line.map_err(|error| Failure::failed(format!("the input cannot be read: {error}")))?;
        importer.report.lines += 1;
        importer.report.bytes += u64::try_from(line.len() + 1).unwrap_or(0);
        if !line.trim().is_empty() {
            importer.line(&line).await?;
        }
        report(&importer.report);
    }
    importer.flush().await?;
    importer.check_ended()?;
    Ok(importer.report)
}

struct Importer<'o> {
    opened: &'o OpenStore,
    /// The table of `--table`.
    requested_table: Option<&'o str>,
    /// The table of the current section, into which items are put.
    table: Option<TableDef>,
    /// Items that are not sent yet, with their keys.
    pending: Vec<(Item, Item)>,
    /// Number of items since the last table definition.
    items_in_section: u64,
    /// Whether the last line of the section, with the number of items, is still to come.
    expects_end: bool,
    report: ImportReport,
}

/// A line of the input.
enum Line {
    Item(Item),
    Table,
    End(Option<u64>),
    Unknown,
}

impl Importer<'_> {
    async fn line(&mut self, line: &str) -> Result {
        let number = self.report.lines;
        let parsed = parse_line(line)
            .map_err(|unsound| Failure::usage(format!("{unsound}: line={number}")))?;
        match parsed {
            Line::Item(item) => self.item(item).await,
            Line::Table => self.table(line).await,
            Line::End(count) => self.end(count),
            Line::Unknown => Err(Failure::usage(format!(
                "the line has no Item, Table or End: line={number}"
            ))),
        }
    }

    async fn item(&mut self, item: Item) -> Result {
        let number = self.report.lines;
        let Some(table) = &self.table else {
            return Err(match self.requested_table {
                Some(name) => missing_table(name),
                None => Failure::usage(format!(
                    "the item belongs to no table: line={number}; set it with --table"
                )),
            });
        };
        let key = table.key.key_of(&item).ok_or_else(|| {
            Failure::usage(format!(
                "the item has no key: table={} line={number}",
                table.name
            ))
        })?;
        // A batch cannot contain a key twice.
        if self.pending.len() == BATCH_WRITE_ITEMS_MAX
            || self.pending.iter().any(|(other, _)| *other == key)
        {
            self.flush().await?;
        }
        self.pending.push((key, item));
        self.items_in_section += 1;
        Ok(())
    }

    /// Begins the section of a table, and creates the table if it does not exist.
    async fn table(&mut self, line: &str) -> Result {
        self.flush().await?;
        self.check_ended()?;
        (self.items_in_section, self.expects_end) = (0, true);
        let mut wanted = definition(line, self.report.lines).await?;
        if let Some(name) = self.requested_table {
            name.clone_into(&mut wanted.name);
        }
        let found = describe(&self.opened.db, &wanted.name).await?;
        match found {
            Some(found) if found.definition.key != wanted.key => {
                return Err(Failure::failed(format!(
                    "the table exists with another key: table={}",
                    wanted.name
                )));
            }
            Some(_) => {}
            None => {
                let db = &self.opened.db;
                db.ensure_definitions(vec![wanted.clone()], floe::model::tables::ENSURE_DEADLINE)
                    .await?;
                self.report.tables_created.push(wanted.name.clone());
            }
        }
        self.table = Some(wanted);
        Ok(())
    }

    /// Fails if the current section has no last line.
    fn check_ended(&self) -> Result {
        match (&self.table, self.expects_end) {
            (Some(table), true) => Err(Failure::usage(format!(
                "the input is truncated, the last line of the table is missing: table={} line={}",
                table.name, self.report.lines
            ))),
            _ => Ok(()),
        }
    }

    fn end(&mut self, count: Option<u64>) -> Result {
        self.expects_end = false;
        match count {
            Some(count) if count != self.items_in_section => Err(Failure::usage(format!(
                "wrong number of items: expected={count} actual={} line={}",
                self.items_in_section, self.report.lines
            ))),
            _ => Ok(()),
        }
    }

    /// Puts the pending items, and retries those that the store did not process.
    async fn flush(&mut self) -> Result {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let items = std::mem::take(&mut self.pending);
        let count = items.len();
        let mut batch = BatchWriteItem::new();
        for (_, item) in items {
            batch = batch.put(table.name.as_str(), item);
        }
        while !batch.requests.values().all(Vec::is_empty) {
            let response = self.opened.engine().batch_write_item(batch).await?;
            batch = BatchWriteItem::new();
            let unprocessed = response.unprocessed.into_values().flatten();
            for write in unprocessed {
                if let BatchWrite::Put(item) = write {
                    batch = batch.put(table.name.as_str(), item);
                }
            }
        }
        self.report.items += u64::try_from(count).unwrap_or(0);
        Ok(())
    }
}

fn parse_line(line: &str) -> Result<Line, DecodeError> {
    let mut reader = Reader::new(line);
    reader.begin_object()?;
    let mut found = Line::Unknown;
    while let Some(name) = reader.next_name()? {
        match &*name {
            "Item" => found = Line::Item(decode_item(&mut reader)?),
            "Table" => {
                reader.skip()?;
                found = Line::Table;
            }
            "End" => found = Line::End(item_count(&mut reader)?),
            _ => reader.skip()?,
        }
    }
    reader.finish()?;
    Ok(found)
}

fn item_count(reader: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
    reader.begin_object()?;
    let mut count = None;
    while let Some(name) = reader.next_name()? {
        match &*name {
            "ItemCount" => count = reader.number()?.parse().ok(),
            _ => reader.skip()?,
        }
    }
    Ok(count)
}

/// The table defined by a line. An engine in memory parses it.
async fn definition(line: &str, number: u64) -> Result<TableDef> {
    let engine = LocalEngine::memory()?;
    let text = format!("{line}\n{{\"End\":{{\"ItemCount\":0}}}}\n");
    engine.import(text.as_bytes()).map_err(|error| {
        Failure::usage(format!("invalid table definition, {error}: line={number}"))
    })?;
    let names = engine.list_tables(ListTables::default()).await?.table_names;
    match names.first() {
        Some(name) => Ok(engine.describe_table(name.clone()).await?.definition),
        None => Err(Failure::usage(format!(
            "the line defines no table: line={number}"
        ))),
    }
}
