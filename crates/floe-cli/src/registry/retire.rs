//! `floe registry retire`: retires a version.

use super::{GroupContext, VersionArgs};
use crate::{Result, members};

/// Retire a version: it is no longer deployed, but stays in the history
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe registry retire Layer region=eu package=numpy --version 3 --data ./layers

The version is removed from the list of deployed versions, and stays in the history with the time of deletion. If it was the \
latest, the newest older version that is still deployed becomes the latest. Retiring a deleted version changes nothing. Exit \
code 3: there is no such version, or it has an alias.")]
pub(super) struct Retire {
    #[command(flatten)]
    pub(super) version: VersionArgs,
}

impl Retire {
    pub(super) async fn run(&self, context: GroupContext<'_>) -> Result {
        let version = self.version.version;
        let (versions, group) = (context.versions, context.group);
        let is_changed = versions.retire(group, version).await?;
        let latest = versions.latest(group).await?.map(|latest| latest.number);
        let done = if is_changed {
            "retired"
        } else {
            "already deleted"
        };
        let latest_text = latest.map_or_else(
            || "there is no latest version".to_owned(),
            |latest| format!("the latest is version {latest}"),
        );
        self.version.group.registry.target.output.line(
            members!["version": version, "retired": is_changed, "latest": latest],
            &format_args!("{done}: version {version}; {latest_text}"),
        )
    }
}
