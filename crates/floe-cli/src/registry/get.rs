//! `floe registry get`: prints a version by number or alias.

use super::print::print_version;
use super::{GroupArgs, GroupContext};
use crate::{Failure, Result};

/// Get a version by number or alias
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry get Layer region=eu package=numpy --version 7 --data ./layers
  floe registry get Layer region=eu package=numpy --alias lts --json \\
      --data ./layers | jq .item

Deleted versions are printed too, with the time of deletion. Exit code 3: there is no such version or alias.")]
pub(super) struct Get {
    /// Number of the version
    #[arg(long, value_name = "N", required_unless_present = "alias")]
    version: Option<u64>,

    /// Alias of the version
    #[arg(long, value_name = "NAME", conflicts_with = "version")]
    alias: Option<String>,

    #[command(flatten)]
    pub(super) group: GroupArgs,
}

impl Get {
    pub(super) async fn run(&self, context: GroupContext<'_>) -> Result {
        let (output, alias) = (self.group.registry.target.output, self.alias.as_deref());
        let (versions, group) = (context.versions, context.group);
        let (found, selector) = match (self.version, alias.unwrap_or_default()) {
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
                "{} {selector}",
                context.unmet("there is no such version")
            ))
        })?;
        print_version(output, context.schema, &version)
    }
}
