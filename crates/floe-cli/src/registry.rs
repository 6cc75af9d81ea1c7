//! `floe registry`: inspects versioned registries, publishes and retires versions.
//!
//! The program does not have the structs of registries. It reads their descriptions from the tables, where
//! `ensure_registries` stores them, or from a file.

mod describe;
mod get;
mod history;
mod latest;
mod list;
mod print;
mod publish;
mod retention;
mod retire;

use clap::Args;
use floe::registry::{Group, RegistrySchema, Versions};
use floe_store::Item;
use floe_store::table::{KeyKind, TableDef};

use super::table::list::names;
use crate::{Failure, OpenStore, Result, StoreArgs, commands, input};

commands! {
    /// Inspect versioned registries, publish and retire versions
    #[command(after_help = "\
Examples:
  # list the registries of a store
  floe registry list --data ./layers
  # print the latest version of a group
  floe registry latest Layer region=eu package=numpy --data ./layers
  # print the latest versions of all regions
  floe registry latest Layer package=numpy --data ./layers
  # print all versions of a group
  floe registry history Layer region=eu package=numpy --data ./layers
  # publish the next version
  floe registry publish Layer region=eu package=numpy --item '{\"arn\":\"arn:3\"}' \\
      --data ./layers
  # retire a version
  floe registry retire Layer region=eu package=numpy --version 3 --data ./layers

A registry has the name of its struct. `ensure_registries` stores its description in its table. For tables created by other \
tools, pass the description as a file with --schema; `floe registry describe --json` and `Layer::SCHEMA.describe()` return it.")]
    RegistryCommand:
    List(list::List) in target,
    Describe(describe::Describe) in registry,
    Latest(latest::Latest) in group.registry,
    Deployed(latest::Deployed) in group.registry,
    Get(get::Get) in group,
    History(history::HistoryCommand) in group,
    Publish(publish::Publish),
    Retire(retire::Retire) in version.group,
    Pin(retention::Pin) in version.group,
    Unpin(retention::Unpin) in version.group,
    Alias(retention::Alias) in group,
}

/// The registry, its store, and the output format.
#[derive(Debug, Args)]
struct RegistryArgs {
    /// Name of the registry: that of its struct
    #[arg(value_name = "REGISTRY", index = 1)]
    registry: String,

    /// Table of the registry [default: the table that describes a registry of this name]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    /// File with the description of the registry, instead of its table
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,

    #[command(flatten)]
    target: StoreArgs,
}

/// Some or all key fields of a group, and its registry.
#[derive(Debug, Args)]
struct GroupArgs {
    /// Key fields of the group: region=eu
    #[arg(value_name = "FIELD=NAME", index = 2, value_parser = parse_name)]
    names: Vec<(String, String)>,

    #[command(flatten)]
    registry: RegistryArgs,
}

/// The number of a version, and its group.
#[derive(Debug, Args)]
struct VersionArgs {
    /// Number of the version
    #[arg(long, value_name = "N")]
    version: u64,

    #[command(flatten)]
    group: GroupArgs,
}

impl GroupArgs {
    fn pairs(&self) -> Vec<(&str, &str)> {
        let names = self.names.iter();
        names.map(|(field, name)| (&**field, &**name)).collect()
    }

    /// Runs a command on the group. Fails unless all key fields are given.
    fn run(&self, command: impl AsyncFnOnce(GroupContext<'_>) -> Result) -> Result {
        self.registry.run(async |(schema, versions)| {
            let group = &versions.group(&self.pairs())?;
            command(GroupContext {
                schema,
                versions,
                group,
            })
            .await
        })
    }
}

/// The input of a command on a registry.
type RegistryContext<'f> = (&'static RegistrySchema, &'f Versions<'f, Item>);

/// The input of a command on a group.
struct GroupContext<'c> {
    schema: &'static RegistrySchema,
    versions: &'c Versions<'c, Item>,
    group: &'c Group<Item>,
}

impl GroupContext<'_> {
    /// The failure if something does not exist in the group.
    fn unmet(&self, message: &str) -> Failure {
        let (registry, group) = (self.schema.name, self.group.as_str());
        Failure::unmet(format!("{message}: registry={registry} group={group}"))
    }
}

fn parse_name(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, name)) if !field.is_empty() && !name.is_empty() => {
            Ok((field.to_owned(), name.to_owned()))
        }
        _ => Err("expected a field and its value, such as region=eu".to_owned()),
    }
}

impl RegistryArgs {
    /// Runs a command on the versions of the registry.
    fn run(&self, command: impl AsyncFnOnce(RegistryContext<'_>) -> Result) -> Result {
        let file = self.file()?;
        self.target.run(async |opened| {
            let schema = self.find(opened, file).await?;
            command((schema, &opened.db.registry_described(schema))).await
        })
    }

    /// The registry described by the file of `--schema`, if given.
    fn file(&self) -> Result<Option<&'static RegistrySchema>> {
        let Some(path) = &self.schema else {
            return Ok(None);
        };
        let text = input::text("--schema", &format!("@{path}"))?;
        let schema = match &self.table {
            Some(table) => RegistrySchema::from_description_in(&text, table),
            None => RegistrySchema::from_description(&text),
        };
        let schema = schema?;
        if schema.name == self.registry {
            return Ok(Some(schema));
        }
        Err(Failure::usage(format!(
            "--schema describes another registry: expected={} actual={}",
            self.registry, schema.name
        )))
    }

    async fn find(
        &self,
        opened: &OpenStore,
        file: Option<&'static RegistrySchema>,
    ) -> Result<&'static RegistrySchema> {
        if let Some(schema) = file {
            opened.table(schema.table).await?;
            return Ok(schema);
        }
        let all = described(opened, self.table.as_deref()).await?;
        let mut known: Vec<_> = all.iter().map(|schema| schema.name).collect();
        known.extend(known.is_empty().then_some("none"));
        let mut named = all.iter().filter(|schema| schema.name == self.registry);
        match (named.next(), named.next()) {
            (Some(schema), None) => Ok(schema),
            (None, _) => Err(Failure::failed(format!(
                "there is no description of the registry: registry={} known={}; store it with ensure_registries, or pass it \
                                 with --schema",
                self.registry,
                known.join(",")
            ))),
            (Some(one), Some(other)) => Err(Failure::usage(format!(
                "two tables have a registry of this name: registry={} tables={},{}; select one with --table",
                self.registry, one.table, other.table
            ))),
        }
    }
}

/// The registries described in a table, or in all tables.
async fn described(
    opened: &OpenStore,
    table: Option<&str>,
) -> Result<Vec<&'static RegistrySchema>> {
    let tables = match table {
        Some(table) => vec![table.to_owned()],
        None => names(opened).await?,
    };
    let mut all = Vec::new();
    for table in opened.tables(&tables).await? {
        if could_hold_registries(&table.definition) {
            let name = &table.definition.name;
            all.extend(opened.db.described_registries(name).await?);
        }
    }
    Ok(all)
}

fn could_hold_registries(table: &TableDef) -> bool {
    let attributes = table.key.attributes();
    let attributes = attributes.map(|attribute| (attribute.name.as_str(), attribute.kind));
    attributes.eq([("pk", KeyKind::S), ("sk", KeyKind::S)])
}
