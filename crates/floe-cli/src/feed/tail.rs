//! `floe feed tail`: follows the feed.

use floe::events::feed::limits::POLL;
use floe::events::feed::{EventBatch, Partition, Subscription};

use super::event::{json_line, line, write_event};
use super::{Categories, Feed, FeedArgs, Result, feed_failure, print};
use crate::{Signals, note};

/// Print new events as they enter the feed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed tail --table shop --endpoint http://127.0.0.1:8000
  floe feed tail --table shop --last 10 --once --data ./shop
  floe feed tail --table shop --aws --category Cart --json

Prints a line for each event of every partition: time, stream, index, type and body. Events appear when `floe indexer` has \
added them to the feed. With --json, each line is an object as in `floe feed read --events --json`. Stop with Ctrl-C.")]
pub(super) struct Tail {
    /// Number of existing events to print first. Default: 0
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    last: usize,

    /// Exit at the end of the feed instead of waiting for events
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    categories: Categories,

    #[command(flatten)]
    pub(super) target: FeedArgs,
}

/// A followed partition, and its subscription.
type FollowedPartition = (Partition, Subscription);

impl Tail {
    pub(super) async fn run(&self, feed: &Feed) -> Result {
        let signals = Signals::new()?;
        let followed = self.print_last(feed).await?;
        if self.once {
            return Ok(());
        }
        note("waiting for events; stop with Ctrl-C");
        tokio::select! {
            result = self.follow(followed) => result,
            () = signals.stop() => Ok(()),
        }
    }

    /// Prints the last existing events. Returns the subscriptions, positioned after them.
    async fn print_last(&self, feed: &Feed) -> Result<Vec<FollowedPartition>> {
        let mut followed = Vec::new();
        let mut last: Vec<(u64, String)> = Vec::new();
        for partition in &feed.partitions {
            let events = feed.store.feed().partition(*partition);
            let events = events.filter(self.categories.filter());
            let mut events = match self.last {
                0 => events.from_tail().await.map_err(feed_failure)?,
                _ => events.from_start(),
            };
            while self.last > 0
                && let Some(batch) = events.next().await.map_err(feed_failure)?
            {
                last.extend(self.lines(*partition, &batch));
                // Lines are printed in order of time; earlier ones beyond the requested number can be dropped now.
                last.sort_by_key(|(time, _)| *time);
                let cut = last.len().saturating_sub(self.last);
                last.drain(..cut);
            }
            followed.push((*partition, events));
        }
        last.iter().try_for_each(|(_, line)| print(line))?;
        Ok(followed)
    }

    async fn follow(&self, mut followed: Vec<FollowedPartition>) -> Result {
        loop {
            let mut is_idle = true;
            for (partition, events) in &mut followed {
                while let Some(batch) = events.next().await.map_err(feed_failure)? {
                    is_idle = false;
                    let lines = self.lines(*partition, &batch);
                    lines.iter().try_for_each(|(_, line)| print(line))?;
                }
            }
            if is_idle {
                tokio::time::sleep(POLL).await;
            }
        }
    }

    /// The lines of a batch, with their times.
    fn lines(&self, partition: Partition, batch: &EventBatch) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        for (stream, events) in &batch.streams {
            for event in events {
                let line = if self.target.output.is_json() {
                    json_line(partition, batch.checkpoint, stream, &|w| {
                        write_event(w, event);
                    })
                } else {
                    line(stream, event)
                };
                lines.push((event.time.as_millis(), line));
            }
        }
        lines
    }
}
