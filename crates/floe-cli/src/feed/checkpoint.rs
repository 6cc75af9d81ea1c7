//! `floe feed checkpoint`: prints the checkpoints of a group, or moves them.

use std::str::FromStr;

use floe::events::feed::{Checkpoint, Partition};

use super::status::{GroupProgress, print_progress};
use super::{Failure, Feed, FeedArgs, GroupPartition, Result, feed_failure};
use crate::{confirm, note, validated};

/// Print the checkpoints of a group, or move them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed checkpoint --table shop --aws --group mail
  # handle all events again
  floe feed checkpoint --table shop --aws --group mail --set start --yes
  # start a new group at the end of the feed
  floe feed checkpoint --table shop --aws --group audit --set tail --yes
  floe feed checkpoint --table shop --aws --group mail --partition 2 --set 3@57

If moved back, events are handled again; if moved ahead, the events in between are never handled. Parked streams stay parked. \
Workers of the group can keep running: they notice the move and restart from the new checkpoint.

A move must be confirmed: at the terminal, after the store, its region and the table were printed, or with --yes. A checkpoint after the end of the feed is rejected.")]
pub(super) struct CheckpointCommand {
    /// Name of the consumer group
    #[arg(long, value_name = "NAME", value_parser = parse_group)]
    group: String,

    /// Partition [default: all]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// Move the group to this checkpoint: epoch@offset, start or tail
    #[arg(long, value_name = "CHECKPOINT")]
    set: Option<CheckpointArg>,

    /// Move without confirmation
    #[arg(long, requires = "set")]
    yes: bool,

    #[command(flatten)]
    pub(super) target: FeedArgs,
}

/// A checkpoint on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckpointArg {
    Start,
    Tail,
    At(Checkpoint),
}

/// A move of a group in a partition.
struct Move {
    group_partition: GroupPartition,
    from: Checkpoint,
    to: Checkpoint,
}

impl CheckpointCommand {
    pub(super) async fn run(&self, feed: &Feed) -> Result {
        let partitions = feed.selected(self.partition)?;
        if let Some(target) = self.set {
            let moves = self.moves(feed, &partitions, target).await?;
            self.confirm(feed, &moves).await?;
            for Move {
                group_partition,
                to,
                ..
            } in moves
            {
                feed.consumer(&group_partition)
                    .move_to(to)
                    .await
                    .map_err(feed_failure)?;
            }
        }
        let group_partitions = partitions
            .iter()
            .map(|partition| self.group_partition(*partition));
        let progress = GroupProgress::load_all(feed, group_partitions).await?;
        print_progress(self.target.output, &progress)
    }

    async fn moves(
        &self,
        feed: &Feed,
        partitions: &[Partition],
        target: CheckpointArg,
    ) -> Result<Vec<Move>> {
        if matches!(target, CheckpointArg::At(_)) && partitions.len() > 1 {
            return Err(Failure::usage(format!(
                "a checkpoint belongs to one partition: partitions={}; select it with --partition",
                partitions.len()
            )));
        }
        let mut moves = Vec::new();
        for partition in partitions {
            let (group_partition, tail) = (
                self.group_partition(*partition),
                feed.tail(*partition).await?,
            );
            let to = target.resolve(tail);
            if to > tail {
                return Err(Failure::usage(format!(
                    "the checkpoint is after the end of the feed: partition={partition} checkpoint={to} tail={tail}"
                )));
            }
            let consumer = feed.consumer(&group_partition);
            let from = consumer.checkpoint().await.map_err(feed_failure)?;
            moves.push(Move {
                group_partition,
                from,
                to,
            });
        }
        Ok(moves)
    }

    /// Prints the moves, and asks the user to confirm them unless `--yes` was given.
    async fn confirm(&self, feed: &Feed, moves: &[Move]) -> Result {
        for Move {
            group_partition,
            from,
            to,
        } in moves
        {
            let GroupPartition { group, partition } = group_partition;
            note(&format!(
                "moving group={group} partition={partition} from={from} to={to}"
            ));
        }
        let facts = feed.facts(&self.target.events.store).await?;
        confirm(self.yes, "moving the group", &facts, "nothing was moved")
    }

    fn group_partition(&self, partition: Partition) -> GroupPartition {
        GroupPartition {
            group: self.group.clone(),
            partition,
        }
    }
}

impl CheckpointArg {
    /// The checkpoint in a partition with this end.
    const fn resolve(self, tail: Checkpoint) -> Checkpoint {
        match self {
            Self::Start => Checkpoint::START,
            Self::Tail => tail,
            Self::At(checkpoint) => checkpoint,
        }
    }

    /// The checkpoint in a partition. Reads the end of the partition if needed.
    pub(super) async fn resolve_in(self, feed: &Feed, partition: Partition) -> Result<Checkpoint> {
        let tail = match self {
            Self::Tail => feed.tail(partition).await?,
            Self::Start | Self::At(_) => Checkpoint::START,
        };
        Ok(self.resolve(tail))
    }
}

impl FromStr for CheckpointArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "start" => Ok(Self::Start),
            "tail" => Ok(Self::Tail),
            text => {
                let checkpoint = text.parse().map(Self::At);
                checkpoint
                    .map_err(|_| "expected a checkpoint such as 1@57, start or tail".to_owned())
            }
        }
    }
}

/// Parses the name of a group. `_` separates it from the partition in the name of the checkpoint stream.
fn parse_group(text: &str) -> Result<String, String> {
    let is_valid = !text.is_empty() && !text.contains('_');
    validated(
        text,
        is_valid,
        "the name of a group cannot be empty or contain _",
    )
}
