//! `floe feed parked`: lists the parked streams of consumer groups.

use super::{Feed, FeedArgs, Result, feed_failure, note};
use crate::{Table, object};

/// List the parked streams of consumer groups, with their errors
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed parked --table shop --aws --group mail
  floe feed parked --table shop --aws --json

A stream is parked after the last attempt of its handler failed. Its events from the index on are skipped, up to the end, \
until the program retries parked streams (FeedConsumer::retry_parked).")]
pub(super) struct ParkedCommand {
    /// Name of the consumer group [default: all]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    #[command(flatten)]
    pub(super) target: FeedArgs,
}

impl ParkedCommand {
    pub(super) async fn run(&self, feed: &Feed) -> Result {
        let mut rows = Vec::new();
        for group_partition in feed.group_partitions(self.group.as_deref()).await? {
            let parked = feed
                .consumer(&group_partition)
                .parked()
                .await
                .map_err(feed_failure)?;
            rows.extend(
                parked
                    .into_iter()
                    .map(|parked| (group_partition.clone(), parked)),
            );
        }
        if rows.is_empty() && !self.target.output.is_json() {
            note("no parked streams");
            return Ok(());
        }
        self.target.output.rows(
            rows,
            |w, (group_partition, parked)| {
                object!(w;
                    "group": group_partition.group, "partition": group_partition.partition.number(),
                    "stream": parked.stream.as_str(), "index": parked.index, "end": parked.end,
                    "reason": parked.reason
                );
            },
            Table::new(["group", "partition", "stream", "from", "to", "reason"]),
            |(group_partition, parked)| {
                [
                    group_partition.group.clone(),
                    group_partition.partition.number().to_string(),
                    parked.stream.to_string(),
                    parked.index.to_string(),
                    parked.end.to_string(),
                    parked.reason.clone(),
                ]
            },
        )
    }
}
