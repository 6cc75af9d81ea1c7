//! `floe registry pin`, `unpin` and `alias`: what keeps a version from expiring.

use clap::Args;

use super::{Names, Numbered, RegistryPlace};
use crate::{Failure, Output, members};

const PIN_HELP: &str = "\
Examples:
  floe registry pin Layer region=eu package=numpy --version 3 --data ./layers

Exit code 3: there is no such version, or it is not deployed any more.";

const UNPIN_HELP: &str = "\
Examples:
  floe registry unpin Layer region=eu package=numpy --version 3 --data ./layers

If it is deprecated, it goes after the retention, counted from now. Exit code 3: there is no such version, or it is not \
deployed any more.";

const ALIAS_HELP: &str = "\
Examples:
  floe registry alias Layer region=eu package=numpy --alias lts --version 3 \\
      --data ./layers
  floe registry alias Layer region=eu package=numpy --alias lts --remove \\
      --data ./layers
  floe registry get Layer region=eu package=numpy --alias lts --data ./layers

The alias moves from wherever it led, in one commit. The version that it leads to does not expire, and cannot be retired. \
Exit code 3: there is no such version, or it is not deployed any more.";

/// Keep a version from expiring
#[derive(Debug, Args)]
#[command(after_help = PIN_HELP)]
pub(super) struct Pin {
    #[command(flatten)]
    version: Numbered,
}

/// Let a version go that was pinned
#[derive(Debug, Args)]
#[command(after_help = UNPIN_HELP)]
pub(super) struct Unpin {
    #[command(flatten)]
    version: Numbered,
}

/// Have an alias lead to a version, or remove it
#[derive(Debug, Args)]
#[command(after_help = ALIAS_HELP)]
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
    names: Names,

    #[command(flatten)]
    place: RegistryPlace,
}

impl Pin {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.version.pin(true)
    }
}

impl Unpin {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.version.pin(false)
    }
}

impl Numbered {
    fn pin(&self, is_pinned: bool) -> Result<(), Failure> {
        let (output, number) = (self.place.at.output, self.version);
        self.place.run_on_group(&self.names, async |called| {
            let (versions, group) = (called.versions, called.group);
            let (is_changed, done) = match is_pinned {
                true => (versions.pin(group, number).await?, "pinned"),
                false => (versions.unpin(group, number).await?, "let go"),
            };
            print_done(output, is_changed, done, &format!("version {number}"));
            Ok(())
        })
    }
}

impl Alias {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let (output, alias) = (self.place.at.output, &self.alias);
        self.place.run_on_group(&self.names, async |called| {
            let (versions, group) = (called.versions, called.group);
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
            print_done(output, is_changed, "done", &what);
            Ok(())
        })
    }
}

/// Prints what was done, and whether anything was to be done.
fn print_done(output: Output, is_changed: bool, done: &str, what: &str) {
    let so = if is_changed { done } else { "so already" };
    output.line(
        members!["changed": is_changed],
        &format_args!("{so}: {what}"),
    );
}
