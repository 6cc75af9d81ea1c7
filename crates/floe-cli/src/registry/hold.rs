//! `floe registry pin`, `unpin` and `alias`: what keeps a version from expiring.

use clap::Args;

use super::{Called, GroupPlace, Numbered};
use crate::{Result, members};

/// Keep a version from expiring
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry pin Layer region=eu package=numpy --version 3 --data ./layers

Exit code 3: there is no such version, or it is not deployed any more.")]
pub(super) struct Pin {
    #[command(flatten)]
    pub(super) version: Numbered,
}

/// Let a version go that was pinned
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry unpin Layer region=eu package=numpy --version 3 --data ./layers

If it is deprecated, it goes after the retention, counted from now. Exit code 3: there is no such version, or it is not \
deployed any more.")]
pub(super) struct Unpin {
    #[command(flatten)]
    pub(super) version: Numbered,
}

/// Have an alias lead to a version, or remove it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry alias Layer region=eu package=numpy --alias lts --version 3 \\
      --data ./layers
  floe registry alias Layer region=eu package=numpy --alias lts --remove \\
      --data ./layers
  floe registry get Layer region=eu package=numpy --alias lts --data ./layers

The alias moves from wherever it led, in one commit. The version that it leads to does not expire, and cannot be retired. \
Exit code 3: there is no such version, or it is not deployed any more.")]
pub(super) struct Alias {
    /// The alias
    #[arg(long, value_name = "NAME")]
    alias: String,

    /// The number of the version that it is to lead to
    #[arg(long, value_name = "N", required_unless_present = "remove")]
    version: Option<u64>,

    /// Remove the alias
    #[arg(long, conflicts_with = "version")]
    remove: bool,

    #[command(flatten)]
    pub(super) group: GroupPlace,
}

impl Pin {
    pub(super) async fn run(&self, called: Called<'_>) -> Result {
        self.version.pin(called, true).await
    }
}

impl Unpin {
    pub(super) async fn run(&self, called: Called<'_>) -> Result {
        self.version.pin(called, false).await
    }
}

impl Numbered {
    async fn pin(&self, called: Called<'_>, is_pinned: bool) -> Result {
        let (versions, group, number) = (called.versions, called.group, self.version);
        let (is_changed, done) = match is_pinned {
            true => (versions.pin(group, number).await?, "pinned"),
            false => (versions.unpin(group, number).await?, "let go"),
        };
        self.group
            .print_done(is_changed, done, &format!("version {number}"));
        Ok(())
    }
}

impl Alias {
    pub(super) async fn run(&self, called: Called<'_>) -> Result {
        let (versions, group, alias) = (called.versions, called.group, &self.alias);
        let (is_changed, what) = match self.version {
            Some(number) => {
                let moved = versions.set_alias(group, alias, number).await?;
                (moved, format!("alias {alias} to version {number}"))
            }
            None => {
                let removed = versions.remove_alias(group, alias).await?;
                (removed, format!("no alias {alias}"))
            }
        };
        self.group.print_done(is_changed, "done", &what);
        Ok(())
    }
}

impl GroupPlace {
    /// Prints what was done, and whether anything was to be done.
    fn print_done(&self, is_changed: bool, done: &str, what: &str) {
        let so = if is_changed { done } else { "so already" };
        let line = format_args!("{so}: {what}");
        let output = self.place.at.output;
        output.line(members!["changed": is_changed], &line);
    }
}
