//! `floe registry latest` and `floe registry deployed`: what is in use.

use clap::Args;

use super::print::{print_version, print_versions};
use super::{Called, Found, GroupPlace};
use crate::Result;

/// Tell the latest version of a group, or of all groups that have a name
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry latest Layer region=eu package=numpy --data ./layers
  # of all regions
  floe registry latest Layer package=numpy --data ./layers
  # of all groups, where they are one partition
  floe registry latest Build --json --data ./layers | jq .version

With all names of the group it is one version. With some of them it is one of each group that has these names, for which \
there must be an index by one of them. Without any it is one of each group, if the partition key is the version. Exit code \
3: the group has no latest version.")]
pub(super) struct Latest {
    #[command(flatten)]
    pub(super) group: GroupPlace,
}

/// Tell all versions that are deployed in the groups that have a name
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry deployed Layer region=eu --data ./layers
  floe registry deployed Layer package=numpy --json \\
      --endpoint http://127.0.0.1:8000

The latest and the deprecated, as far as the index knows. There must be an index by one of the names that are given.")]
pub(super) struct Deployed {
    #[command(flatten)]
    pub(super) group: GroupPlace,
}

impl Latest {
    pub(super) async fn run(&self, (schema, versions): Found<'_>) -> Result {
        let names = self.group.pairs();
        let found = versions.latest_named(&names).await?;
        match (names.len() >= schema.group.len(), found.first()) {
            (true, Some(version)) => print_version(self.group.place.at.output, schema, version),
            (true, None) => {
                let called = Called {
                    schema,
                    versions,
                    group: &versions.group(&names)?,
                };
                return Err(called.unmet("there is no latest version"));
            }
            (false, _) => print_versions(self.group.place.at.output, schema, &found, true),
        }
        Ok(())
    }
}

impl Deployed {
    pub(super) async fn run(&self, (schema, versions): Found<'_>) -> Result {
        let found = versions.deployed_named(&self.group.pairs()).await?;
        print_versions(self.group.place.at.output, schema, &found, true);
        Ok(())
    }
}
