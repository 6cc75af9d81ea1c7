//! `floe table describe`: describes a table.

use floe_server::json::{TableLifecycle, write_table};
use floe_store::table::{
    Billing, IndexDef, IndexDescription, IndexKind, Projection, TableDescription,
};

use super::key_text;
use crate::{OpenStore, Output, Result, StoreArgs, Table, bytes, grouped};

/// Describe a table
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe table describe orders --data ./shop
  floe table describe orders --endpoint http://127.0.0.1:8000 --json \\
      | jq .TableStatus

With --json, prints the table as DynamoDB's DescribeTable does.")]
pub(super) struct Describe {
    /// Name of the table
    table: String,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

impl Describe {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let table = opened.table(&self.table).await?;
        print_table(self.target.output, opened, &table)
    }
}

/// Prints the description of a table.
pub(super) fn print_table(output: Output, opened: &OpenStore, table: &TableDescription) -> Result {
    let lifecycle = TableLifecycle::Active(opened.engine().now());
    output.either(&|w| write_table(w, table, lifecycle), &|| print_text(table))
}

/// Prints the description of a table as text.
fn print_text(table: &TableDescription) -> Result {
    let definition = &table.definition;
    let mut summary = Table::key_value();
    summary.entry("table", &definition.name);
    summary.entry("status", table.status.as_str().to_lowercase());
    summary.entry("key", key_text(&definition.key));
    summary.entry("items", grouped(table.item_count));
    summary.entry("size", bytes(table.size_bytes));
    summary.entry("billing", billing(definition.billing));
    summary.entry_if_some("stream", definition.stream.map(|view| view.as_str()));
    summary.entry_if_some("expires", definition.ttl_attribute.as_ref());
    let protected = definition.deletion_protection.then_some("on");
    summary.entry_if_some("deletion protection", protected);
    for (key, value) in &definition.tags {
        summary.entry("tag", format!("{key}={value}"));
    }
    for index in &definition.indexes {
        let found = table.indexes.iter().find(|other| other.name == index.name);
        summary.entry("index", index_text(index, found));
    }
    summary.entry("arn", &table.arn);
    summary.print()
}

fn billing(billing: Billing) -> String {
    match billing {
        Billing::OnDemand => "on demand".to_owned(),
        Billing::Provisioned(throughput) => format!(
            "provisioned: reads={} writes={}",
            throughput.read, throughput.write
        ),
    }
}

/// The text of an index: name, key, projection, status and number of items.
fn index_text(index: &IndexDef, found: Option<&IndexDescription>) -> String {
    let kind = match index.kind {
        IndexKind::Global => "global",
        IndexKind::Local => "local",
    };
    let projection = match &index.projection {
        Projection::All => "all attributes".to_owned(),
        Projection::KeysOnly => "keys only".to_owned(),
        Projection::Include(names) => {
            let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
            format!("includes {}", names.join(", "))
        }
    };
    let mut text = format!(
        "{}: {kind}, by {}, {projection}",
        index.name,
        key_text(&index.key)
    );
    if let Some(found) = found {
        let status = found.status.as_str().to_lowercase();
        text.push_str(&format!(", {status}, {} items", grouped(found.item_count)));
    }
    text
}
