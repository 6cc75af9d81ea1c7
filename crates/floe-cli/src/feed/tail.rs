//! `floe feed tail`: what is appended from now on, as it comes.

use floe::events::feed::limits::POLL;
use floe::events::feed::{EventBatch, Partition, Subscription};

use super::event::{json_line, line, write_event};
use super::{Categories, FeedArgs, FoundFeed, Result, broken, print};
use crate::{Signals, note};

/// Follow what is appended, event by event
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed tail --table shop --endpoint http://127.0.0.1:8000
  floe feed tail --table shop --last 10 --once --data ./shop
  floe feed tail --table shop --category Cart --json

A line for each event of every partition: time, stream, index, type and what it says. Events come when `floe indexer` has \
brought them to the feed. Ctrl-C ends it. With --json each line is an object: partition, checkpoint, stream, index, type, \
time_ms and the rest, as `floe feed read --events` has them.")]
pub(super) struct Tail {
    /// Begin with this many of the last events of the feed
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    last: usize,

    /// End at the tail, instead of waiting for more
    #[arg(long)]
    once: bool,

    #[command(flatten)]
    categories: Categories,

    #[command(flatten)]
    pub(super) at: FeedArgs,
}

/// A partition that is followed, and its events.
type Followed = (Partition, Subscription);

impl Tail {
    pub(super) async fn run(&self, feed: &FoundFeed) -> Result {
        let signals = Signals::new()?;
        let followed = self.print_last(feed).await?;
        if self.once {
            return Ok(());
        }
        note("following; Ctrl-C ends it");
        tokio::select! {
            followed = self.follow(followed) => followed,
            () = signals.stop() => Ok(()),
        }
    }

    /// Prints the last events there are, and goes on behind them.
    async fn print_last(&self, feed: &FoundFeed) -> Result<Vec<Followed>> {
        let mut followed = Vec::new();
        let mut last: Vec<(u64, String)> = Vec::new();
        for partition in &feed.partitions {
            let events = feed.store.feed().partition(*partition);
            let events = events.filter(self.categories.filter());
            let mut events = match self.last {
                0 => events.from_tail().await.map_err(broken)?,
                _ => events.from_start(),
            };
            while self.last > 0
                && let Some(batch) = events.next().await.map_err(broken)?
            {
                last.extend(self.lines(*partition, &batch));
                // The order of the time is that of the lines; those before are never printed.
                last.sort_by_key(|(time, _)| *time);
                let cut = last.len().saturating_sub(self.last);
                last.drain(..cut);
            }
            followed.push((*partition, events));
        }
        last.iter().all(|(_, line)| print(line));
        Ok(followed)
    }

    async fn follow(&self, mut followed: Vec<Followed>) -> Result {
        loop {
            let mut is_idle = true;
            for (partition, events) in &mut followed {
                while let Some(batch) = events.next().await.map_err(broken)? {
                    is_idle = false;
                    let lines = self.lines(*partition, &batch);
                    if !lines.iter().all(|(_, line)| print(line)) {
                        return Ok(());
                    }
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
                let line = match self.at.output.json {
                    true => json_line(partition, batch.checkpoint, stream, &|w| {
                        write_event(w, event);
                    }),
                    false => line(stream, event),
                };
                lines.push((event.time.as_millis(), line));
            }
        }
        lines
    }
}
