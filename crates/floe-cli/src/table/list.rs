//! `floe table list`: lists the tables of a store.

use floe_store::op::ListTables;

use super::key_text;
use crate::{OpenStore, Result, StoreArgs, Table, bytes, grouped, members, object};

/// List tables, with their keys, numbers of items and sizes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe table list --data ./shop
  floe table list --endpoint http://127.0.0.1:8000 --names
  floe table list --data ./shop --json | jq -r 'select(.items > 1000) | .table'

Sends one request per table, unless --names is given. Amazon DynamoDB updates the numbers of items and bytes about every six \
hours; those of a directory are always current.")]
pub(super) struct List {
    /// Print only the names, one per line
    #[arg(long)]
    names: bool,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

impl List {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let names = names(opened).await?;
        if self.names {
            let mut names = names.iter();
            return names
                .try_for_each(|name| self.target.output.line(members!["table": *name], name));
        }
        let tables = opened.tables(&names).await?;
        self.target.output.rows(
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
            Table::with_whole_first_column(["table", "key", "items", "size", "indexes", "stream"]),
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
        )
    }
}

/// The names of all tables, sorted.
pub(crate) async fn names(opened: &OpenStore) -> Result<Vec<String>> {
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
