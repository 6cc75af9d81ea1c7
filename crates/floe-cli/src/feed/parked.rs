//! `floe feed parked`: the streams that consumers did not get on with.

use super::{FeedArgs, FoundFeed, Result, broken, note};
use crate::{Table, object};

/// Tell which streams are parked, from where on and why
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed parked --table shop --group mail
  floe feed parked --table shop --json

A stream is parked when its handler has failed too often. Its events from the index on are passed by, up to the end, \
until the program tries again what is parked (Consumer::retry_parked).")]
pub(super) struct ParkedCommand {
    /// Of this group alone [default: of all]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    #[command(flatten)]
    pub(super) at: FeedArgs,
}

impl ParkedCommand {
    pub(super) async fn run(&self, feed: &FoundFeed) -> Result {
        let mut rows = Vec::new();
        for member in feed.members(self.group.as_deref()).await? {
            let parked = feed.consumer(&member).parked().await.map_err(broken)?;
            rows.extend(parked.into_iter().map(|parked| (member.clone(), parked)));
        }
        if rows.is_empty() && !self.at.output.json {
            note("nothing is parked");
            return Ok(());
        }
        self.at.output.rows(
            rows,
            |w, (member, parked)| {
                object!(w;
                    "group": member.group, "partition": member.partition.number(),
                    "stream": parked.stream.as_str(), "index": parked.index, "end": parked.end,
                    "reason": parked.reason
                );
            },
            Table::new(["group", "partition", "stream", "from", "to", "reason"]),
            |(member, parked)| {
                [
                    member.group.clone(),
                    member.partition.number().to_string(),
                    parked.stream.to_string(),
                    parked.index.to_string(),
                    parked.end.to_string(),
                    parked.reason.clone(),
                ]
            },
        );
        Ok(())
    }
}
