//! `floe registry get`: a version by its number, or by an alias.

use clap::Args;

use super::tell::tell_version;
use super::{Names, RegistryPlace};
use crate::Failure;

const AFTER_HELP: &str = "\
Examples:
  floe registry get Layer region=eu package=numpy --version 7 --data ./layers
  floe registry get Layer region=eu package=numpy --alias lts --json \\
      --data ./layers | jq .item

A version that is gone is told as well, with the moment since when it is. Exit code 3: there is no such version, or no such \
alias.";

/// Get a version by its number, or by an alias
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct Get {
    /// The number
    #[arg(long, value_name = "N", required_unless_present = "alias")]
    version: Option<u64>,

    /// The alias that leads to it
    #[arg(long, value_name = "NAME", conflicts_with = "version")]
    alias: Option<String>,

    #[command(flatten)]
    names: Names,

    #[command(flatten)]
    place: RegistryPlace,
}

impl Get {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.place.run(async |schema, versions| {
            let group = self.names.group(versions)?;
            let (found, asked) = match (self.version, &self.alias) {
                (Some(number), _) => (
                    versions.version(&group, number).await?,
                    format!("version={number}"),
                ),
                (None, alias) => {
                    let alias = alias.as_deref().unwrap_or_default();
                    (
                        versions.by_alias(&group, alias).await?,
                        format!("alias={alias}"),
                    )
                }
            };
            let version = found.ok_or_else(|| {
                Failure::unmet(format!(
                    "there is no such version: registry={} group={} {asked}",
                    schema.name,
                    group.as_str()
                ))
            })?;
            tell_version(self.place.output, schema, &version);
            Ok(())
        })
    }
}
