//! `floe registry list`: which registries there are.

use floe::registry::RegistrySchema;

use super::described;
use crate::{Opened, Result, StoreArgs, Table, object};

/// Tell which registries there are, and what forms their groups
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry list --data ./layers
  floe registry list --table klayers --json --endpoint http://127.0.0.1:8000 \\
      | jq -r .registry

Those are told whose description is kept in their table, as `ensure_registries` does.")]
pub(super) struct List {
    /// Only of this table [default: of all]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    #[command(flatten)]
    pub(super) at: StoreArgs,
}

impl List {
    pub(super) async fn run(&self, opened: &Opened) -> Result {
        let all = described(opened, self.table.as_deref()).await?;
        self.at.output.rows(
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
        );
        Ok(())
    }
}

/// The names of the fields of a group.
fn group(schema: &RegistrySchema) -> Vec<&'static str> {
    schema.group.iter().map(|field| field.name).collect()
}

fn indexes(schema: &RegistrySchema) -> Vec<&'static str> {
    schema.indexes.iter().map(|index| index.name).collect()
}
