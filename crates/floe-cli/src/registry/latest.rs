//! `floe registry latest` and `floe registry deployed`: print deployed versions.

use clap::Args;

use super::print::{print_version, print_versions};
use super::{GroupArgs, GroupContext, RegistryContext};
use crate::Result;

/// Print the latest version of a group, or of all groups with given key fields
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry latest Layer region=eu package=numpy --data ./layers
  # the latest versions of all regions
  floe registry latest Layer package=numpy --data ./layers
  # the latest versions of all groups, if their pointers share a partition
  floe registry latest Build --json --data ./layers | jq .version

With all key fields, prints the latest version of the group. With some of them, prints the latest version of each matching \
group, which needs an index by one of the fields. Without any, prints the latest version of every group, if the partition key is \
the version. Exit code 3: the group has no latest version.")]
pub(super) struct Latest {
    #[command(flatten)]
    pub(super) group: GroupArgs,
}

/// List the deployed versions of all groups with given key fields
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe registry deployed Layer region=eu --data ./layers
  floe registry deployed Layer package=numpy --json \\
      --endpoint http://127.0.0.1:8000

Prints latest and deprecated versions. Reads an index by one of the given fields, which must exist and is eventually consistent \
in Amazon DynamoDB.")]
pub(super) struct Deployed {
    #[command(flatten)]
    pub(super) group: GroupArgs,
}

impl Latest {
    pub(super) async fn run(&self, (schema, versions): RegistryContext<'_>) -> Result {
        let names = self.group.pairs();
        let found = versions.latest_named(&names).await?;
        match (names.len() >= schema.group.len(), found.first()) {
            (true, Some(version)) => {
                print_version(self.group.registry.target.output, schema, version)
            }
            (true, None) => {
                let context = GroupContext {
                    schema,
                    versions,
                    group: &versions.group(&names)?,
                };
                Err(context.unmet("there is no latest version"))
            }
            (false, _) => print_versions(self.group.registry.target.output, schema, &found, true),
        }
    }
}

impl Deployed {
    pub(super) async fn run(&self, (schema, versions): RegistryContext<'_>) -> Result {
        let found = versions.deployed_named(&self.group.pairs()).await?;
        print_versions(self.group.registry.target.output, schema, &found, true)
    }
}
