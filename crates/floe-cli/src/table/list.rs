//! `floe table list`: the tables of a store, and how much is in them.

use clap::Args;
use floe_store::op::ListTables;
use floe_store::table::TableDescription;

use super::key_text;
use crate::Failure;
use crate::out::{Output, Table, bytes, grouped, print, print_json};
use crate::place::{Opened, Store};

const AFTER_HELP: &str = "\
Examples:
  floe table list --data ./shop
  floe table list --endpoint http://127.0.0.1:8000 --names
  floe table list --data ./shop --json | jq -r 'select(.items > 1000) | .table'

Each table is asked for what is in it, which takes a request; --names leaves that out. Amazon DynamoDB counts items and \
bytes every six hours, a directory knows them at any time.";

/// List the tables, with their keys and how much is in them
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct List {
    /// Only their names, one per line
    #[arg(long)]
    names: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    store: Store,
}

impl List {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.store.run(async |opened| {
            let names = names(opened).await?;
            if self.names {
                self.tell_names(&names);
                return Ok(());
            }
            let mut tables = Vec::new();
            for name in &names {
                tables.push(opened.table(name).await?);
            }
            self.tell(&tables);
            Ok(())
        })
    }

    fn tell_names(&self, names: &[String]) {
        for name in names {
            self.output.tell(
                |w| w.object(|w| w.name("table").string(name)),
                || {
                    print(name);
                },
            );
        }
    }

    fn tell(&self, tables: &[TableDescription]) {
        if self.output.json {
            tables.iter().for_each(tell_json);
            return;
        }
        let mut shown = Table::new(["table", "key", "items", "size", "indexes", "stream"]);
        for table in tables {
            let definition = &table.definition;
            let stream = definition.stream.map_or("", |view| view.as_str());
            let cells = [
                &*key_text(&definition.key),
                &grouped(table.item_count),
                &bytes(table.size_bytes),
                &definition.indexes.len().to_string(),
                stream,
            ];
            shown.named_row(&definition.name, cells);
        }
        shown.print();
    }
}

fn tell_json(table: &TableDescription) {
    let definition = &table.definition;
    print_json(|w| {
        w.object(|w| {
            w.name("table").string(&definition.name);
            w.name("key").array(|w| {
                let attributes = definition.key.attributes();
                attributes.for_each(|attribute| w.string(&attribute.name));
            });
            w.name("items").number(table.item_count);
            w.name("bytes").number(table.size_bytes);
            w.name("indexes").array(|w| {
                let indexes = definition.indexes.iter();
                indexes.for_each(|index| w.string(&index.name));
            });
            if let Some(view) = definition.stream {
                w.name("stream").string(view.as_str());
            }
        });
    });
}

/// The names of all tables, in their order.
pub(crate) async fn names(opened: &Opened) -> Result<Vec<String>, Failure> {
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
