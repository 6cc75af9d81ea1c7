//! `floe registry`: looks at versioned registries, publishes and retires versions.
//!
//! The program has not got the structs of users. What it knows of a registry it reads from its table, where
//! `ensure_registries` keeps the description, or from a file.

mod describe;
mod get;
mod history;
mod hold;
mod latest;
mod list;
mod print;
mod publish;
mod retire;

use clap::Args;
use floe::registry::{Group, RegistrySchema, Versions};
use floe_store::Item;
use floe_store::table::{KeyKind, TableDef};

use super::table::list::names;
use crate::{Failure, Opened, Result, StoreArgs, commands, input};

commands! {
    /// Look at versioned registries, publish and retire versions
    #[command(after_help = "\
Examples:
  # which registries there are
  floe registry list --data ./layers
  # the latest version of a group
  floe registry latest Layer region=eu package=numpy --data ./layers
  # and of all regions
  floe registry latest Layer package=numpy --data ./layers
  # all versions of it
  floe registry history Layer region=eu package=numpy --data ./layers
  # the next version
  floe registry publish Layer region=eu package=numpy --item '{\"arn\":\"arn:3\"}' \\
      --data ./layers
  # take one back
  floe registry retire Layer region=eu package=numpy --version 3 --data ./layers

A registry is named as its struct is. Its description is kept in its table by `ensure_registries`; for a table that was made \
by other means, --schema gives it from a file, as `floe registry describe` prints it and `Layer::SCHEMA.describe()` tells it.")]
    RegistryCommand:
    List(list::List) in at,
    Describe(describe::Describe) in place,
    Latest(latest::Latest) in group.place,
    Deployed(latest::Deployed) in group.place,
    Get(get::Get) in group,
    History(history::HistoryCommand) in group,
    Publish(publish::Publish),
    Retire(retire::Retire) in version.group,
    Pin(hold::Pin) in version.group,
    Unpin(hold::Unpin) in version.group,
    Alias(hold::Alias) in group,
}

/// Which registry, where it is, and how the result is printed.
#[derive(Debug, Args)]
struct RegistryPlace {
    /// The registry, named as its struct is
    #[arg(value_name = "REGISTRY", index = 1)]
    registry: String,

    /// Its table [default: the one that describes a registry of this name]
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    /// What it is, from this file instead of its table
    #[arg(long, value_name = "FILE")]
    schema: Option<String>,

    #[command(flatten)]
    at: StoreArgs,
}

/// Some or all names of a group, and where its registry is.
#[derive(Debug, Args)]
struct GroupPlace {
    /// The names of the group, each behind the name of its field: region=eu
    #[arg(value_name = "FIELD=NAME", index = 2, value_parser = parse_name)]
    names: Vec<(String, String)>,

    #[command(flatten)]
    place: RegistryPlace,
}

/// A version by its number, and where its registry is.
#[derive(Debug, Args)]
struct Numbered {
    /// The number
    #[arg(long, value_name = "N")]
    version: u64,

    #[command(flatten)]
    group: GroupPlace,
}

impl GroupPlace {
    fn pairs(&self) -> Vec<(&str, &str)> {
        let names = self.names.iter();
        names.map(|(field, name)| (&**field, &**name)).collect()
    }

    /// Runs a command on a group of which all names are given.
    fn run(&self, work: impl AsyncFnOnce(Called<'_>) -> Result) -> Result {
        self.place.run(async |(schema, versions)| {
            let group = &versions.group(&self.pairs())?;
            work(Called {
                schema,
                versions,
                group,
            })
            .await
        })
    }
}

/// What a command on a registry is given.
type Found<'f> = (&'static RegistrySchema, &'f Versions<'f, Item>);

/// What a command on a group is given.
struct Called<'c> {
    schema: &'static RegistrySchema,
    versions: &'c Versions<'c, Item>,
    group: &'c Group<Item>,
}

impl Called<'_> {
    /// The failure of a command for what is not in the group.
    fn unmet(&self, what: &str) -> Failure {
        let (registry, group) = (self.schema.name, self.group.as_str());
        Failure::unmet(format!("{what}: registry={registry} group={group}"))
    }
}

fn parse_name(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((field, name)) if !field.is_empty() && !name.is_empty() => {
            Ok((field.to_owned(), name.to_owned()))
        }
        _ => Err("not a field and a name, such as region=eu".to_owned()),
    }
}

impl RegistryPlace {
    /// Runs a command on the versions of the registry.
    fn run(&self, work: impl AsyncFnOnce(Found<'_>) -> Result) -> Result {
        let file = self.file()?;
        self.at.run(async |opened| {
            let schema = self.find(opened, file).await?;
            work((schema, &opened.db.registry_described(schema))).await
        })
    }

    /// The registry that the file describes, if one was given.
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
        match schema.name == self.registry {
            true => Ok(Some(schema)),
            false => Err(Failure::usage(format!(
                "--schema describes another registry: given={} described={}",
                self.registry, schema.name
            ))),
        }
    }

    async fn find(
        &self,
        opened: &Opened,
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
            (None, _) => Err(Failure::broken(format!(
                "there is no description of such a registry: registry={} known={}; ensure_registries keeps it in the \
                 table, --schema gives it",
                self.registry,
                known.join(",")
            ))),
            (Some(one), Some(other)) => Err(Failure::usage(format!(
                "two tables have a registry of this name: registry={} tables={},{}; say which with --table",
                self.registry, one.table, other.table
            ))),
        }
    }
}

/// The registries that are described in a table, or in all of them.
async fn described(opened: &Opened, table: Option<&str>) -> Result<Vec<&'static RegistrySchema>> {
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
