//! `floe registry pin`, `unpin` and `alias`: what keeps a version from expiring.

use clap::Args;

use super::{Names, Numbered, RegistryPlace};
use crate::Failure;
use crate::out::{Output, print};

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
#[group(skip)]
pub(super) struct Pin {
    #[command(flatten)]
    version: Numbered,
}

/// Let a version go that was pinned
#[derive(Debug, Args)]
#[command(after_help = UNPIN_HELP)]
#[group(skip)]
pub(super) struct Unpin {
    #[command(flatten)]
    version: Numbered,
}

/// Have an alias lead to a version, or remove it
#[derive(Debug, Args)]
#[command(after_help = ALIAS_HELP)]
#[group(skip)]
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
        self.place.run(async |_, versions| {
            let group = self.names.group(versions)?;
            let is_changed = match is_pinned {
                true => versions.pin(&group, self.version).await?,
                false => versions.unpin(&group, self.version).await?,
            };
            let done = if is_pinned { "pinned" } else { "let go" };
            tell(
                self.place.output,
                done,
                &format!("version {}", self.version),
                is_changed,
            );
            Ok(())
        })
    }
}

impl Alias {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.place.run(async |_, versions| {
            let group = self.names.group(versions)?;
            let (is_changed, done) = match self.version {
                Some(number) => {
                    let moved = versions.set_alias(&group, &self.alias, number).await?;
                    (moved, format!("alias {} to version {number}", self.alias))
                }
                None => {
                    let removed = versions.remove_alias(&group, &self.alias).await?;
                    (removed, format!("no alias {}", self.alias))
                }
            };
            tell(self.place.output, "done", &done, is_changed);
            Ok(())
        })
    }
}

/// Tells what was done, and whether anything was to be done.
fn tell(output: Output, done: &str, what: &str, is_changed: bool) {
    output.tell(
        |w| w.object(|w| w.name("changed").bool(is_changed)),
        || {
            let so = if is_changed { done } else { "so already" };
            print(format!("{so}: {what}"));
        },
    );
}
