//! `floe feed lag`: how far each group is behind the end of the feed.

use clap::Args;

use super::status::{Standing, tell_standings};
use super::{Failure, FoundFeed, Member, Place, print_json};
use crate::out::Output;

const AFTER_HELP: &str = "\
Examples:
  floe feed lag --table shop
  floe feed lag --table shop --group mail --max 1000 || page somebody

The lag is how many events a group has before it, and for how many seconds the oldest of them has been in the feed. Exit \
code 3: a group has more than --max events before it, or there is no such group.";

/// Tell how far each group of consumers is behind
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct LagCommand {
    /// Of this group alone [default: of all]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    /// The most events that a group may be behind, in all partitions together
    #[arg(long, value_name = "N")]
    max: Option<u64>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    place: Place,
}

impl LagCommand {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let feed = FoundFeed::open(&self.place).await?;
        let is_asked = |member: &Member| self.group.as_ref().is_none_or(|g| *g == member.group);
        let mut standings = Vec::new();
        for member in feed.members().await? {
            if is_asked(&member) {
                standings.push(Standing::of(&feed, member).await?);
            }
        }
        feed.close()?;
        if let (Some(group), []) = (&self.group, standings.as_slice()) {
            return Err(Failure::unmet(format!(
                "there is no such group, or it has stored no checkpoint yet: group={group}"
            )));
        }
        self.tell(&standings);
        self.check(&standings)
    }

    fn tell(&self, standings: &[Standing]) {
        if self.output.json {
            for standing in standings {
                print_json(|w| standing.write(w));
            }
            return;
        }
        tell_standings(standings);
    }

    /// Whether every group keeps up.
    fn check(&self, standings: &[Standing]) -> Result<(), Failure> {
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
