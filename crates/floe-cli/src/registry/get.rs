//! `floe registry get`: a version by its number, or by an alias.

use super::print::print_version;
use super::{Called, GroupPlace};
use crate::{Failure, Result};

/// Get a version by its number, or by an alias
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry get Layer region=eu package=numpy --version 7 --data ./layers
  floe registry get Layer region=eu package=numpy --alias lts --json \\
      --data ./layers | jq .item

A version that is gone is told as well, with the moment since when it is. Exit code 3: there is no such version, or no such \
alias.")]
pub(super) struct Get {
    /// The number
    #[arg(long, value_name = "N", required_unless_present = "alias")]
    version: Option<u64>,

    /// The alias that leads to it
    #[arg(long, value_name = "NAME", conflicts_with = "version")]
    alias: Option<String>,

    #[command(flatten)]
    pub(super) group: GroupPlace,
}

impl Get {
    pub(super) async fn run(&self, called: Called<'_>) -> Result {
        let (output, alias) = (self.group.place.at.output, self.alias.as_deref());
        let (versions, group) = (called.versions, called.group);
        let (found, asked) = match (self.version, alias.unwrap_or_default()) {
            (Some(number), _) => {
                let found = versions.version(group, number).await?;
                (found, format!("version={number}"))
            }
            (None, alias) => {
                let found = versions.by_alias(group, alias).await?;
                (found, format!("alias={alias}"))
            }
        };
        let version = found.ok_or_else(|| {
            Failure::unmet(format!(
                "{} {asked}",
                called.unmet("there is no such version")
            ))
        })?;
        print_version(output, called.schema, &version);
        Ok(())
    }
}
