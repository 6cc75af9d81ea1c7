//! `floe feed status`: prints the end of each partition, and the progress of each group.

use floe::events::feed::{Checkpoint, Lag, Partition};
use floe_store::json::Writer;

use super::{Feed, FeedArgs, GroupPartition, Result, feed_failure, print};
use crate::{AsArray, AsText, Output, Table, grouped, object};

/// Print the end of each partition, and the progress of each consumer group
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed status --table shop --aws
  floe feed status --table shop --aws --json \\
      | jq '.groups[] | select(.lag_events > 1000)'

The lag is the number of events that a group has not processed, and the age in seconds of the oldest of them in the feed. It \
is computed from the index only. The whole index table is read to find the groups.")]
pub(super) struct Status {
    #[command(flatten)]
    pub(super) target: FeedArgs,
}

/// The progress of a group in a partition.
pub(super) struct GroupProgress {
    pub(super) group_partition: GroupPartition,
    pub(super) lag: Lag,
    checkpoint: Checkpoint,
    parked: usize,
}

impl Status {
    pub(super) async fn run(&self, feed: &Feed) -> Result {
        let mut tails: Vec<(Partition, Checkpoint)> = Vec::new();
        for partition in &feed.partitions {
            tails.push((*partition, feed.tail(*partition).await?));
        }
        let progress = GroupProgress::load_all(feed, feed.group_partitions(None).await?).await?;
        let table = &self.target.events.table;
        let tail = |w: &mut Writer, (partition, tail): &(Partition, Checkpoint)| {
            object!(w;
                "partition": partition.number(), "epoch": tail.epoch(), "tail": AsText(tail)
            );
        };
        let json = |w: &mut Writer| {
            object!(w;
                "table": table, "index": format!("{table}-index"),
                "partitions": AsArray(&tails, tail), "groups": AsArray(&progress, GroupProgress::write)
            );
        };
        let text = || print_feed_status(table, &tails, &progress);
        self.target.output.either(&json, &text)
    }
}

fn print_feed_status(
    table: &str,
    tails: &[(Partition, Checkpoint)],
    progress: &[GroupProgress],
) -> Result {
    let mut summary = Table::key_value();
    summary.entry("events", table);
    summary.entry("feed", format!("{table}-index"));
    summary.print()?;
    print("")?;
    let mut partitions = Table::new(["partition", "epoch", "tail"]);
    for (partition, tail) in tails {
        let epoch = tail.epoch().to_string();
        partitions.row([partition.to_string(), epoch, tail.to_string()]);
    }
    partitions.print()?;
    print("")?;
    match progress {
        [] => print("no group has stored a checkpoint"),
        progress => print_progress(Output::default(), progress),
    }
}

impl GroupProgress {
    /// Loads the progress of groups in partitions.
    pub(super) async fn load_all(
        feed: &Feed,
        group_partitions: impl IntoIterator<Item = GroupPartition>,
    ) -> Result<Vec<Self>> {
        let mut progress = Vec::new();
        for group_partition in group_partitions {
            let consumer = feed.consumer(&group_partition);
            progress.push(Self {
                checkpoint: consumer.checkpoint().await.map_err(feed_failure)?,
                lag: consumer.lag().await.map_err(feed_failure)?,
                parked: consumer.parked().await.map_err(feed_failure)?.len(),
                group_partition,
            });
        }
        Ok(progress)
    }

    fn write(w: &mut Writer, progress: &Self) {
        let (group_partition, lag) = (&progress.group_partition, &progress.lag);
        object!(w;
            "group": group_partition.group, "partition": group_partition.partition.number(),
            "checkpoint": AsText(progress.checkpoint), "lag_events": lag.events,
            "lag_seconds": lag.age.as_secs(), "parked": progress.parked
        );
    }
}

/// Prints the progress of groups.
pub(super) fn print_progress(output: Output, progress: &[GroupProgress]) -> Result {
    output.rows(
        progress,
        |w, progress| GroupProgress::write(w, progress),
        Table::new([
            "group",
            "partition",
            "checkpoint",
            "events behind",
            "seconds",
            "parked",
        ]),
        |progress| {
            [
                progress.group_partition.group.clone(),
                progress.group_partition.partition.to_string(),
                progress.checkpoint.to_string(),
                grouped(progress.lag.events),
                grouped(progress.lag.age.as_secs()),
                progress.parked.to_string(),
            ]
        },
    )
}
