//! `floe registry pin`, `unpin` and `alias`: exempt versions from expiry.

use clap::Args;

use super::{GroupArgs, GroupContext, VersionArgs};
use crate::{Result, members};

/// Exempt a version from expiry
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry pin Layer region=eu package=numpy --version 3 --data ./layers

Exit code 3: there is no such version, or it is no longer deployed.")]
pub(super) struct Pin {
    #[command(flatten)]
    pub(super) version: VersionArgs,
}

/// Remove the pin of a version
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry unpin Layer region=eu package=numpy --version 3 --data ./layers

If the version is deprecated, it expires after the retention, counted from now. Exit code 3: there is no such version, or it is \
no longer deployed.")]
pub(super) struct Unpin {
    #[command(flatten)]
    pub(super) version: VersionArgs,
}

/// Set or remove an alias of a version
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry alias Layer region=eu package=numpy --alias lts --version 3 \\
      --data ./layers
  floe registry alias Layer region=eu package=numpy --alias lts --remove \\
      --data ./layers
  floe registry get Layer region=eu package=numpy --alias lts --data ./layers

An existing alias is moved in one commit. A version with an alias does not expire and cannot be retired. Exit code 3: there is \
no such version, or it is no longer deployed.")]
pub(super) struct Alias {
    /// Name of the alias
    #[arg(long, value_name = "NAME")]
    alias: String,

    /// Number of the version
    #[arg(long, value_name = "N", required_unless_present = "remove")]
    version: Option<u64>,

    /// Remove the alias
    #[arg(long, conflicts_with = "version")]
    remove: bool,

    #[command(flatten)]
    pub(super) group: GroupArgs,
}

impl Pin {
    pub(super) async fn run(&self, context: GroupContext<'_>) -> Result {
        self.version.pin(context, true).await
    }
}

impl Unpin {
    pub(super) async fn run(&self, context: GroupContext<'_>) -> Result {
        self.version.pin(context, false).await
    }
}

impl VersionArgs {
    async fn pin(&self, context: GroupContext<'_>, is_pinned: bool) -> Result {
        let (versions, group, number) = (context.versions, context.group, self.version);
        let (is_changed, done) = if is_pinned {
            (versions.pin(group, number).await?, "pinned")
        } else {
            (versions.unpin(group, number).await?, "unpinned")
        };
        self.group
            .print_change(is_changed, done, &format!("version {number}"))
    }
}

impl Alias {
    pub(super) async fn run(&self, context: GroupContext<'_>) -> Result {
        let (versions, group, alias) = (context.versions, context.group, &self.alias);
        let (is_changed, done, subject) = match self.version {
            Some(number) => {
                let moved = versions.set_alias(group, alias, number).await?;
                (moved, "set", format!("alias {alias} to version {number}"))
            }
            None => {
                let removed = versions.remove_alias(group, alias).await?;
                (removed, "removed", format!("alias {alias}"))
            }
        };
        self.group.print_change(is_changed, done, &subject)
    }
}

impl GroupArgs {
    /// Prints the change, or that nothing had to be changed.
    fn print_change(&self, is_changed: bool, done: &str, subject: &str) -> Result {
        let result = if is_changed { done } else { "unchanged" };
        let line = format_args!("{result}: {subject}");
        let output = self.registry.target.output;
        output.line(members!["changed": is_changed], &line)
    }
}
