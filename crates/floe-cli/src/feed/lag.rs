//! `floe feed lag`: how far each group is behind the end of the feed.

use super::status::{Standing, print_standings};
use super::{Failure, FeedArgs, FoundFeed, Result};

/// Tell how far each group of consumers is behind
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed lag --table shop
  floe feed lag --table shop --group mail --max 1000 || page somebody

The lag is how many events a group has before it, and for how many seconds the oldest of them has been in the feed. Exit \
code 3: a group has more than --max events before it, or there is no such group.")]
pub(super) struct LagCommand {
    /// Of this group alone [default: of all]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// The most events that a group may be behind, in all partitions together
    #[arg(long, value_name = "N")]
    max: Option<u64>,

    #[command(flatten)]
    pub(super) at: FeedArgs,
}

impl LagCommand {
    pub(super) async fn run(&self, feed: &FoundFeed) -> Result {
        let members = feed.members(self.group.as_deref()).await?;
        let standings = Standing::of_all(feed, members).await?;
        if let (Some(group), []) = (&self.group, standings.as_slice()) {
            return Err(Failure::unmet(format!(
                "there is no such group, or it has stored no checkpoint yet: group={group}"
            )));
        }
        print_standings(self.at.output, &standings);
        self.check(&standings)
    }

    /// Whether every group keeps up.
    fn check(&self, standings: &[Standing]) -> Result {
        let Some(max) = self.max else { return Ok(()) };
        for standing in standings {
            let group = &standing.member.group;
            let of_group = standings
                .iter()
                .filter(|other| other.member.group == *group);
            let events: u64 = of_group.map(|standing| standing.lag.events).sum();
            if events > max {
                return Err(Failure::unmet(format!(
                    "a group is behind: group={group} events={events} max={max}"
                )));
            }
        }
        Ok(())
    }
}
