//! `floe registry retire`: takes a version back.

use super::{Called, Numbered};
use crate::{Result, members};

/// Retire a version: it is not deployed any more, and stays in the history
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry retire Layer region=eu package=numpy --version 3 --data ./layers

It leaves the lists of what is deployed, and stays in the history with the moment of its deletion. If it was the latest, the \
newest before it that is still deployed is the latest again. To retire what is gone changes nothing. Exit code 3: there is \
no such version, or an alias leads to it.")]
pub(super) struct Retire {
    #[command(flatten)]
    pub(super) version: Numbered,
}

impl Retire {
    pub(super) async fn run(&self, called: Called<'_>) -> Result {
        let version = self.version.version;
        let (versions, group) = (called.versions, called.group);
        let is_changed = versions.retire(group, version).await?;
        let latest = versions.latest(group).await?.map(|latest| latest.number);
        let done = match is_changed {
            true => "retired",
            false => "gone already",
        };
        let left = latest.map_or_else(
            || "there is no latest version".to_owned(),
            |latest| format!("the latest is version {latest}"),
        );
        self.version.group.place.at.output.line(
            members!["version": version, "retired": is_changed, "latest": latest],
            &format_args!("{done}: version {version}; {left}"),
        );
        Ok(())
    }
}
