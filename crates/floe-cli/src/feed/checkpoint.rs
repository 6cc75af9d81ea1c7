//! `floe feed checkpoint`: shows how far a group has come, or moves it.

use std::str::FromStr;

use floe::events::feed::{Checkpoint, Partition};

use super::status::{Standing, print_standings};
use super::{Failure, FeedArgs, FoundFeed, Member, Result, broken};
use crate::{checked, confirm, note};

/// Show how far a group has come, or move it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed checkpoint --table shop --group mail
  # handle everything again
  floe feed checkpoint --table shop --group mail --set start --yes
  # a new group, from now on
  floe feed checkpoint --table shop --group audit --set tail --yes
  floe feed checkpoint --table shop --group mail --partition 2 --set 3@57

Further back, events are handled again; further ahead, some are passed over for good. What is parked stays parked. \
Workers of the group may go on running: they notice, and begin anew from there.

It asks before it moves. Without a terminal to ask at, nothing is moved unless --yes is given. A place after the end \
of the feed is refused.")]
pub(super) struct CheckpointCommand {
    /// The group of consumers
    #[arg(long, value_name = "NAME", value_parser = parse_group)]
    group: String,

    /// Of this partition alone [default: of all]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// Go on from there: epoch@offset, start or tail
    #[arg(long, value_name = "PLACE")]
    set: Option<Target>,

    /// Move it without asking
    #[arg(long, requires = "set")]
    yes: bool,

    #[command(flatten)]
    pub(super) at: FeedArgs,
}

/// Where a group is moved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Start,
    Tail,
    At(Checkpoint),
}

/// A move of a group in a partition.
struct Move {
    member: Member,
    from: Checkpoint,
    to: Checkpoint,
}

impl CheckpointCommand {
    pub(super) async fn run(&self, feed: &FoundFeed) -> Result {
        let partitions = feed.chosen(self.partition)?;
        if let Some(target) = self.set {
            let moves = self.moves(feed, &partitions, target).await?;
            self.ask(&moves)?;
            for Move { member, to, .. } in moves {
                feed.consumer(&member).move_to(to).await.map_err(broken)?;
            }
        }
        let members = partitions.iter().map(|partition| self.member(*partition));
        let standings = Standing::of_all(feed, members).await?;
        print_standings(self.at.output, &standings);
        Ok(())
    }

    async fn moves(
        &self,
        feed: &FoundFeed,
        partitions: &[Partition],
        target: Target,
    ) -> Result<Vec<Move>> {
        if matches!(target, Target::At(_)) && partitions.len() > 1 {
            return Err(Failure::usage(format!(
                "a place is one of a partition: partitions={}; say which with --partition",
                partitions.len()
            )));
        }
        let mut moves = Vec::new();
        for partition in partitions {
            let (member, tail) = (self.member(*partition), feed.tail(*partition).await?);
            let to = target.or_tail(tail);
            if to > tail {
                return Err(Failure::usage(format!(
                    "the place is after the end of the feed: partition={partition} place={to} tail={tail}"
                )));
            }
            let consumer = feed.consumer(&member);
            let from = consumer.checkpoint().await.map_err(broken)?;
            moves.push(Move { member, from, to });
        }
        Ok(moves)
    }

    /// Asks whether that is meant, unless it was said before.
    fn ask(&self, moves: &[Move]) -> Result {
        for Move { member, from, to } in moves {
            let Member { group, partition } = member;
            note(&format!(
                "moving group={group} partition={partition} from={from} to={to}"
            ));
        }
        confirm(self.yes, "moving it", "nothing was moved")
    }

    fn member(&self, partition: Partition) -> Member {
        Member {
            group: self.group.clone(),
            partition,
        }
    }
}

impl Target {
    /// The place in a partition that ends here.
    const fn or_tail(self, tail: Checkpoint) -> Checkpoint {
        match self {
            Self::Start => Checkpoint::START,
            Self::Tail => tail,
            Self::At(place) => place,
        }
    }

    /// The place in a partition, whose end is looked for if it is that.
    pub(super) async fn in_partition(
        self,
        feed: &FoundFeed,
        partition: Partition,
    ) -> Result<Checkpoint> {
        let tail = match self {
            Self::Tail => feed.tail(partition).await?,
            Self::Start | Self::At(_) => Checkpoint::START,
        };
        Ok(self.or_tail(tail))
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "start" => Ok(Self::Start),
            "tail" => Ok(Self::Tail),
            text => {
                let place = text.parse().map(Self::At);
                place.map_err(|_| "not a place, such as 1@57, start or tail".to_owned())
            }
        }
    }
}

/// A group that a checkpoint can be stored for.
fn parse_group(text: &str) -> Result<String, String> {
    let is_fit = !text.is_empty() && !text.contains('_');
    checked(text, is_fit, "not the name of a group: it has no _")
}
