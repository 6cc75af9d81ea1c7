//! `floe registry describe`: prints the description of a registry.

use super::{RegistryArgs, RegistryContext};
use crate::{Result, Table, print};

/// Describe a registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry describe Layer --data ./layers
  floe registry describe Layer --json --data ./layers > layer.json
  floe registry latest Layer region=eu package=numpy --schema layer.json \\
      --region eu-west-1

With --json, prints the description itself, as accepted by --schema. It has the attributes of #[derive(Registry)].")]
pub(super) struct Describe {
    #[command(flatten)]
    pub(super) registry: RegistryArgs,
}

impl Describe {
    pub(super) async fn run(&self, (schema, _): RegistryContext<'_>) -> Result {
        if self.registry.target.output.is_json() {
            return print(schema.describe().trim_end());
        }
        let mut summary = Table::key_value();
        summary.entry("registry", schema.name);
        summary.entry("table", schema.table);
        summary.entry("group", schema.group_text());
        summary.entry(
            "version",
            format!("{}…, number in {}", schema.version_prefix, schema.version),
        );
        summary.entry("latest", schema.latest);
        summary.entry_if_some("status", schema.status);
        summary.entry_if_some("expires", schema.expires);
        summary.entry_if_some("retention", schema.retention_text());
        summary.entry_if_some("legacy keys", schema.legacy_keys.then_some("yes"));
        for index in schema.indexes {
            let field = schema.group.get(index.field).map_or("", |field| field.name);
            summary.entry("index", format!("{} by {field}", index.name));
        }
        summary.print()?;
        print("")?;
        let mut fields = Table::new(["field", "attribute", "kind", ""]);
        for field in schema.fields {
            let mut marks = Vec::new();
            marks.extend(field.is_optional.then_some("optional"));
            marks.extend((schema.hash == Some(field.attribute)).then_some("hash"));
            let is_name = schema.group.iter().any(|name| name.name == field.name);
            marks.extend(is_name.then_some("group"));
            let kind = field.kind.as_str();
            fields.row([field.name, field.attribute, kind, &marks.join(", ")]);
        }
        fields.print()
    }
}
