//! `floe feed lag`: prints how far each group is behind the end of the feed.

use super::status::{GroupProgress, print_progress};
use super::{Failure, Feed, FeedArgs, Result};

/// Print the lag of each consumer group
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed lag --table shop --aws
  floe feed lag --table shop --aws --group mail --max 1000 || ./alert.sh

The lag is the number of events that a group has not processed, and the age in seconds of the oldest of them in the feed. \
Exit code 3: a group is more than --max events behind, or there is no such group.")]
pub(super) struct LagCommand {
    /// Name of the consumer group [default: all]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// Fail if a group is more than this number of events behind, over all partitions
    #[arg(long, value_name = "N")]
    max: Option<u64>,

    #[command(flatten)]
    pub(super) target: FeedArgs,
}

impl LagCommand {
    pub(super) async fn run(&self, feed: &Feed) -> Result {
        let group_partitions = feed.group_partitions(self.group.as_deref()).await?;
        let progress = GroupProgress::load_all(feed, group_partitions).await?;
        if let (Some(group), []) = (&self.group, progress.as_slice()) {
            return Err(Failure::unmet(format!(
                "there is no such group, or it has stored no checkpoint yet: group={group}"
            )));
        }
        print_progress(self.target.output, &progress)?;
        self.check(&progress)
    }

    /// Fails if a group is more than `--max` events behind.
    fn check(&self, all: &[GroupProgress]) -> Result {
        let Some(max) = self.max else { return Ok(()) };
        for progress in all {
            let group = &progress.group_partition.group;
            let of_group = all
                .iter()
                .filter(|other| other.group_partition.group == *group);
            let events: u64 = of_group.map(|progress| progress.lag.events).sum();
            if events > max {
                return Err(Failure::unmet(format!(
                    "a group is behind: group={group} events={events} max={max}"
                )));
            }
        }
        Ok(())
    }
}
