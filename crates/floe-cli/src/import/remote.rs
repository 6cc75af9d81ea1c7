//! An import behind a server: the definition of a table is read by the embedded engine, items go out in batches.

use std::io::BufRead;

use floe_local::{ImportReport, LocalEngine};
use floe_store::json::{Malformed, Reader, Unsound, sound_item};
use floe_store::limits::BATCH_WRITE_ITEMS_MAX;
use floe_store::op::{BatchWrite, BatchWriteItem, ListTables};
use floe_store::{Engine, Item, TableDef};

use crate::{Failure, Opened, Result, describe, missing_table};

/// Puts all items of the lines, and makes the tables that are missing.
pub(super) async fn import(
    opened: &Opened,
    table: Option<&str>,
    input: impl BufRead,
    report: impl Fn(&ImportReport),
) -> Result<ImportReport> {
    let mut importer = Importer {
        opened,
        named: table,
        table: None,
        waiting: Vec::new(),
        counted: 0,
        must_end: false,
        done: ImportReport::default(),
    };
    if let Some(name) = table {
        // If it is missing, a line may yet define it.
        let found = describe(&opened.db, name).await?;
        importer.table = found.map(|table| table.definition);
    }
    for line in input.lines() {
        let line =
            line.map_err(|error| Failure::broken(format!("the lines cannot be read: {error}")))?;
        importer.done.lines += 1;
        importer.done.bytes += u64::try_from(line.len() + 1).unwrap_or(0);
        if !line.trim().is_empty() {
            importer.line(&line).await?;
        }
        report(&importer.done);
    }
    importer.flush().await?;
    importer.check_ended()?;
    Ok(importer.done)
}

struct Importer<'o> {
    opened: &'o Opened,
    /// The table that was asked for.
    named: Option<&'o str>,
    /// The table that items go into.
    table: Option<TableDef>,
    /// Items that are not put yet, with their keys.
    waiting: Vec<(Item, Item)>,
    /// Items since the last definition.
    counted: u64,
    /// Whether a line must yet say how many there are.
    must_end: bool,
    done: ImportReport,
}

/// What a line is.
enum Line {
    Item(Item),
    Table,
    End(Option<u64>),
    Neither,
}

impl Importer<'_> {
    async fn line(&mut self, line: &str) -> Result {
        let number = self.done.lines;
        let read =
            read(line).map_err(|unsound| Failure::usage(format!("{unsound}: line={number}")))?;
        match read {
            Line::Item(item) => self.item(item).await,
            Line::Table => self.table(line).await,
            Line::End(count) => self.end(count),
            Line::Neither => Err(Failure::usage(format!(
                "the line has neither Item nor Table nor End: line={number}"
            ))),
        }
    }

    async fn item(&mut self, item: Item) -> Result {
        let number = self.done.lines;
        let Some(table) = &self.table else {
            return Err(match self.named {
                Some(name) => missing_table(name),
                None => Failure::usage(format!(
                    "the item belongs to no table: line={number}; name one with --table"
                )),
            });
        };
        let key = table.key.key_of(&item).ok_or_else(|| {
            Failure::usage(format!(
                "the item has no key: table={} line={number}",
                table.name
            ))
        })?;
        // A batch takes each key once.
        if self.waiting.len() == BATCH_WRITE_ITEMS_MAX
            || self.waiting.iter().any(|(known, _)| *known == key)
        {
            self.flush().await?;
        }
        self.waiting.push((key, item));
        self.counted += 1;
        Ok(())
    }

    /// Takes a definition, and makes the table if it is missing.
    async fn table(&mut self, line: &str) -> Result {
        self.flush().await?;
        self.check_ended()?;
        (self.counted, self.must_end) = (0, true);
        let mut wanted = definition(line, self.done.lines).await?;
        if let Some(name) = self.named {
            name.clone_into(&mut wanted.name);
        }
        let found = describe(&self.opened.db, &wanted.name).await?;
        match found {
            Some(found) if found.definition.key != wanted.key => {
                return Err(Failure::broken(format!(
                    "the table is there with another key: table={}",
                    wanted.name
                )));
            }
            Some(_) => {}
            None => {
                let db = &self.opened.db;
                db.ensure_definitions(vec![wanted.clone()], floe::model::tables::ENSURE_DEADLINE)
                    .await?;
                self.done.tables_created.push(wanted.name.clone());
            }
        }
        self.table = Some(wanted);
        Ok(())
    }

    /// Checks that the table before has ended, if it must.
    fn check_ended(&self) -> Result {
        match (&self.table, self.must_end) {
            (Some(table), true) => Err(Failure::usage(format!(
                "the text of the table was cut off, its last line is missing: table={} line={}",
                table.name, self.done.lines
            ))),
            _ => Ok(()),
        }
    }

    fn end(&mut self, count: Option<u64>) -> Result {
        self.must_end = false;
        match count {
            Some(count) if count != self.counted => Err(Failure::usage(format!(
                "the lines do not hold all items: expected={count} found={} line={}",
                self.counted, self.done.lines
            ))),
            _ => Ok(()),
        }
    }

    /// Puts what waits, until the store has taken all of it.
    async fn flush(&mut self) -> Result {
        let Some(table) = &self.table else {
            return Ok(());
        };
        let items = std::mem::take(&mut self.waiting);
        let count = items.len();
        let mut batch = BatchWriteItem::new();
        for (_, item) in items {
            batch = batch.put(table.name.as_str(), item);
        }
        while !batch.requests.values().all(Vec::is_empty) {
            let answer = self.opened.engine().batch_write_item(batch).await?;
            batch = BatchWriteItem::new();
            let left = answer.unprocessed.into_values().flatten();
            for write in left {
                if let BatchWrite::Put(item) = write {
                    batch = batch.put(table.name.as_str(), item);
                }
            }
        }
        self.done.items += u64::try_from(count).unwrap_or(0);
        Ok(())
    }
}

fn read(line: &str) -> Result<Line, Unsound> {
    let mut reader = Reader::new(line);
    reader.begin_object()?;
    let mut read = Line::Neither;
    while let Some(name) = reader.next_name()? {
        match &*name {
            "Item" => read = Line::Item(sound_item(&mut reader)?),
            "Table" => {
                reader.skip()?;
                read = Line::Table;
            }
            "End" => read = Line::End(item_count(&mut reader)?),
            _ => reader.skip()?,
        }
    }
    reader.finish()?;
    Ok(read)
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

/// The table that a line defines: as an engine in memory makes it.
async fn definition(line: &str, number: u64) -> Result<TableDef> {
    let engine = LocalEngine::memory()?;
    let text = format!("{line}\n{{\"End\":{{\"ItemCount\":0}}}}\n");
    engine.import(text.as_bytes()).map_err(|error| {
        Failure::usage(format!("the table cannot be made, {error}: line={number}"))
    })?;
    let names = engine.list_tables(ListTables::default()).await?.table_names;
    match names.first() {
        Some(name) => Ok(engine.describe_table(name.clone()).await?.definition),
        None => Err(Failure::usage(format!(
            "the line defines no table: line={number}"
        ))),
    }
}
