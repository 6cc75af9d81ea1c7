//! `floe registry list`: which registries there are.

use clap::Args;

use super::described;
use crate::Failure;
use crate::out::{Output, Table, print_json};
use crate::place::Store;

const AFTER_HELP: &str = "\
Examples:
  floe registry list --data ./layers
  floe registry list --table klayers --json --endpoint http://127.0.0.1:8000 \\
      | jq -r .registry

Those are told whose description is kept in their table, as `ensure_registries` does.";

/// Tell which registries there are, and what forms their groups
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct List {
    /// Only of this table [default: of all]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    store: Store,
}

impl List {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.store.run(async |opened| {
            let all = described(opened, self.table.as_deref()).await?;
            let mut table = Table::new(["registry", "table", "group", "retention", "indexes"]);
            for schema in all {
                let indexes: Vec<_> = schema.indexes.iter().map(|index| index.name).collect();
                if self.output.json {
                    print_json(|w| {
                        w.object(|w| {
                            w.name("registry").string(schema.name);
                            w.name("table").string(schema.table);
                            w.name("group").array(|w| {
                                schema.group.iter().for_each(|field| w.string(field.name));
                            });
                            if let Some(secs) = schema.retention_secs {
                                w.name("retention_seconds").number(secs);
                            }
                            w.name("indexes").array(|w| {
                                indexes.iter().for_each(|name| w.string(name));
                            });
                        });
                    });
                    continue;
                }
                let retention = schema.retention_text().unwrap_or_default();
                let group: Vec<_> = schema.group.iter().map(|field| field.name).collect();
                let (group, indexes) = (group.join(", "), indexes.join(", "));
                table.row([schema.name, schema.table, &group, &retention, &indexes]);
            }
            if !self.output.json {
                table.print();
            }
            Ok(())
        })
    }
}
