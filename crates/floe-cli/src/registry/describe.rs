//! `floe registry describe`: the description of a registry, as `--schema` takes it.

use super::{Found, RegistryPlace};
use crate::{Result, Table, print};

/// Tell all that is known of a registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry describe Layer --data ./layers
  floe registry describe Layer --json --data ./layers > layer.json
  floe registry latest Layer region=eu package=numpy --schema layer.json \\
      --region eu-west-1

With --json it is the description itself, in the words of #[derive(Registry)], as --schema takes it.")]
pub(super) struct Describe {
    #[command(flatten)]
    pub(super) place: RegistryPlace,
}

impl Describe {
    pub(super) async fn run(&self, (schema, _): Found<'_>) -> Result {
        if self.place.at.output.json {
            print(schema.describe().trim_end());
            return Ok(());
        }
        let mut facts = Table::of_facts();
        facts.fact("registry", schema.name);
        facts.fact("table", schema.table);
        facts.fact("group", schema.group_text());
        facts.fact(
            "version",
            format!("{}…, number in {}", schema.version_prefix, schema.version),
        );
        facts.fact("latest", schema.latest);
        facts.fact_if_any("status", schema.status);
        facts.fact_if_any("expires", schema.expires);
        facts.fact_if_any("retention", schema.retention_text());
        facts.fact_if_any("legacy keys", schema.legacy_keys.then_some("yes"));
        for index in schema.indexes {
            let field = schema.group.get(index.field).map_or("", |field| field.name);
            facts.fact("index", format!("{} by {field}", index.name));
        }
        facts.print();
        print("");
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
        fields.print();
        Ok(())
    }
}
