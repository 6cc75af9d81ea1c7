//! `floe table list`: the tables of a store, and how much is in them.

use floe_store::op::ListTables;
use floe_store::table::TableDescription;

use super::key_text;
use crate::{Opened, Result, StoreArgs, Table, bytes, grouped, members, object, print_json};

/// List the tables, with their keys and how much is in them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe table list --data ./shop
  floe table list --endpoint http://127.0.0.1:8000 --names
  floe table list --data ./shop --json | jq -r 'select(.items > 1000) | .table'

Each table is asked for what is in it, which takes a request; --names leaves that out. Amazon DynamoDB counts items and \
bytes every six hours, a directory knows them at any time.")]
pub(super) struct List {
    /// Only their names, one per line
    #[arg(long)]
    names: bool,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

impl List {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let names = names(opened).await?;
        if self.names {
            for name in &names {
                self.at.output.line(members!["table": *name], name);
            }
            return Ok(());
        }
        let tables = opened.tables(&names).await?;
        match self.at.output.json {
            true => tables.iter().for_each(print_row),
            false => print_rows(&tables),
        }
        Ok(())
    }
}

fn print_rows(tables: &[TableDescription]) {
    let mut shown = Table::new(["table", "key", "items", "size", "indexes", "stream"]);
    for table in tables {
        let definition = &table.definition;
        let stream = definition.stream.map_or("", |view| view.as_str());
        let cells = [
            key_text(&definition.key),
            grouped(table.item_count),
            bytes(table.size_bytes),
            definition.indexes.len().to_string(),
            stream.to_owned(),
        ];
        shown.named_row(&definition.name, cells);
    }
    shown.print();
}

fn print_row(table: &TableDescription) {
    let definition = &table.definition;
    let key = definition.key.attributes();
    let key: Vec<_> = key.map(|attribute| attribute.name.as_str()).collect();
    let indexes = definition.indexes.iter();
    let indexes: Vec<_> = indexes.map(|index| index.name.as_str()).collect();
    print_json(&|w| {
        object!(w;
            "table": definition.name, "key": key, "items": table.item_count,
            "bytes": table.size_bytes, "indexes": indexes,
            "stream": definition.stream.map(|view| view.as_str())
        );
    });
}

/// The names of all tables, in their order.
pub(crate) async fn names(opened: &Opened) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut request = ListTables::default();
    loop {
        let page = opened.engine().list_tables(request.clone()).await?;
        names.extend(page.table_names);
        match page.last_name {
            None => return Ok(names),
            last => request.start_after = last,
        }
    }
}
