//! `floe registry list`: lists the registries of a store.

use floe::registry::RegistrySchema;

use super::described;
use crate::{OpenStore, Result, StoreArgs, Table, object};

/// List the registries of a store, with the key fields of their groups
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry list --data ./layers
  floe registry list --table klayers --json --endpoint http://127.0.0.1:8000 \\
      | jq -r .registry

Lists registries whose description is stored in their table, which `ensure_registries` does.")]
pub(super) struct List {
    /// Table to list [default: all]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    #[command(flatten)]
    pub(super) target: StoreArgs,
}

impl List {
    pub(super) async fn run(&self, opened: &OpenStore) -> Result {
        let all = described(opened, self.table.as_deref()).await?;
        self.target.output.rows(
            all,
            |w, schema| {
                object!(w;
                    "registry": schema.name, "table": schema.table, "group": group(schema),
                    "retention_seconds": schema.retention_secs, "indexes": indexes(schema)
                );
            },
            Table::new(["registry", "table", "group", "retention", "indexes"]),
            |schema| {
                let (group, indexes) = (group(schema).join(", "), indexes(schema).join(", "));
                let retention = schema.retention_text().unwrap_or_default();
                let (name, table) = (schema.name.to_owned(), schema.table.to_owned());
                [name, table, group, retention, indexes]
            },
        )
    }
}

/// The names of the key fields of a group.
fn group(schema: &RegistrySchema) -> Vec<&'static str> {
    schema.group.iter().map(|field| field.name).collect()
}

fn indexes(schema: &RegistrySchema) -> Vec<&'static str> {
    schema.indexes.iter().map(|index| index.name).collect()
}
