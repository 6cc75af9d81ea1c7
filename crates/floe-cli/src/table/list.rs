//! `floe table list`: the tables of a store, and how much is in them.

use floe_store::op::ListTables;

use super::key_text;
use crate::{Opened, Result, StoreArgs, Table, bytes, grouped, members, object};

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
        self.at.output.rows(
            tables,
            |w, table| {
                let definition = &table.definition;
                let key = definition.key.attributes();
                let key: Vec<_> = key.map(|attribute| attribute.name.as_str()).collect();
                let indexes = definition.indexes.iter();
                let indexes: Vec<_> = indexes.map(|index| index.name.as_str()).collect();
                object!(w;
                    "table": definition.name, "key": key, "items": table.item_count,
                    "bytes": table.size_bytes, "indexes": indexes,
                    "stream": definition.stream.map(|view| view.as_str())
                );
            },
            Table::named(["table", "key", "items", "size", "indexes", "stream"]),
            |table| {
                let definition = &table.definition;
                [
                    definition.name.clone(),
                    key_text(&definition.key),
                    grouped(table.item_count),
                    bytes(table.size_bytes),
                    definition.indexes.len().to_string(),
                    definition
                        .stream
                        .map_or("", |view| view.as_str())
                        .to_owned(),
                ]
            },
        );
        Ok(())
    }
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
