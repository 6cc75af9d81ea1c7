//! `floe table describe`: all that is known of a table.

use floe_server::json::{Moment, write_table};
use floe_store::table::{
    Billing, IndexDef, IndexDescription, IndexKind, Projection, TableDescription,
};

use super::key_text;
use crate::{Opened, Output, Result, StoreArgs, Table, bytes, grouped};

/// Tell all that is known of a table
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe table describe orders --data ./shop
  floe table describe orders --endpoint http://127.0.0.1:8000 --json \\
      | jq .TableStatus

With --json it is described as DynamoDB's DescribeTable does.")]
pub(super) struct Describe {
    /// The table
    table: String,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

impl Describe {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let table = opened.table(&self.table).await?;
        print_table(self.at.output, opened, &table);
        Ok(())
    }
}

/// Prints a table as it stands.
pub(super) fn print_table(output: Output, opened: &Opened, table: &TableDescription) {
    let moment = Moment::Life(opened.engine().now());
    output.either(&|w| write_table(w, table, moment), &|| print_facts(table));
}

/// Describes a table to people.
fn print_facts(table: &TableDescription) {
    let definition = &table.definition;
    let mut facts = Table::of_facts();
    facts.fact("table", &definition.name);
    facts.fact("status", table.status.as_str().to_lowercase());
    facts.fact("key", key_text(&definition.key));
    facts.fact("items", grouped(table.item_count));
    facts.fact("size", bytes(table.size_bytes));
    facts.fact("paid", billing(definition.billing));
    facts.fact_if_any("stream", definition.stream.map(|view| view.as_str()));
    facts.fact_if_any("expires by", definition.ttl_attribute.as_ref());
    let deletion = definition.deletion_protection.then_some("refused");
    facts.fact_if_any("deletion", deletion);
    for (key, value) in &definition.tags {
        facts.fact("tag", format!("{key}={value}"));
    }
    for index in &definition.indexes {
        let found = table.indexes.iter().find(|known| known.name == index.name);
        facts.fact("index", index_text(index, found));
    }
    facts.fact("arn", &table.arn);
    facts.print();
}

fn billing(billing: Billing) -> String {
    match billing {
        Billing::OnDemand => "by the request".to_owned(),
        Billing::Provisioned(throughput) => format!(
            "by the hour: reads={} writes={}",
            throughput.read, throughput.write
        ),
    }
}

/// An index: its name, its key, what it copies, and how much is in it.
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
            format!("with {}", names.join(", "))
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
