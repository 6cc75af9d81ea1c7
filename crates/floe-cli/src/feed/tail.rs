//! `floe feed tail`: what is appended from now on, as it comes.

use clap::Args;
use floe::events::Recorded;
use floe::events::feed::limits::POLL;
use floe::events::feed::{EventBatch, Filter, Subscription};
use floe_store::json::Writer;

use super::read::write_event;
use super::{Failure, FoundFeed, Place, broken, print};
use crate::out::Output;
use crate::out::table::escaped;
use crate::signals::Signals;
use crate::{moment, note};

const AFTER_HELP: &str = "\
Examples:
  floe feed tail --table shop --endpoint http://127.0.0.1:8000
  floe feed tail --table shop --last 10 --once --data ./shop
  floe feed tail --table shop --category Cart --json

A line for each event of every partition: time, stream, index, type and what it says. Events come when `floe indexer` has \
brought them to the feed. Ctrl-C ends it. With --json each line is an object: partition, checkpoint, stream, index, type, \
time_ms and the rest, as `floe feed read --events` has them.";

/// Follow what is appended, event by event
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct Tail {
    /// Begin with this many of the last events of the feed
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    last: usize,

    /// End at the tail, instead of waiting for more
    #[arg(long)]
    once: bool,

    /// Of streams of this category alone; may be given several times
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    place: Place,
}

/// A partition that is followed.
struct Followed {
    partition: u32,
    events: Subscription,
}

impl Tail {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let feed = FoundFeed::open(&self.place).await?;
        let signals = Signals::new()?;
        let followed = self.tell_last(&feed).await?;
        if !self.once {
            note("following; Ctrl-C ends it");
            tokio::select! {
                followed = self.follow(followed) => followed?,
                () = signals.stop() => {}
            }
        }
        feed.close()
    }

    /// Tells the last events there are, and goes on behind them.
    async fn tell_last(&self, feed: &FoundFeed) -> Result<Vec<Followed>, Failure> {
        let categories = self.category.iter();
        let filter = categories.fold(Filter::default(), |filter, name| filter.category(name));
        let mut followed = Vec::new();
        let mut last: Vec<(u64, String)> = Vec::new();
        for partition in &feed.partitions {
            let events = feed.found.store.feed().partition(*partition);
            let events = events.filter(filter.clone());
            let mut events = match self.last {
                0 => events.from_tail().await.map_err(broken)?,
                _ => events.from_start(),
            };
            while self.last > 0
                && let Some(batch) = events.next().await.map_err(broken)?
            {
                last.extend(self.lines(partition.number(), &batch));
                // The order of the time is that of the lines; those before are never told.
                last.sort_by_key(|(time, _)| *time);
                let cut = last.len().saturating_sub(self.last);
                last.drain(..cut);
            }
            followed.push(Followed {
                partition: partition.number(),
                events,
            });
        }
        last.iter().all(|(_, line)| print(line));
        Ok(followed)
    }

    async fn follow(&self, mut followed: Vec<Followed>) -> Result<(), Failure> {
        loop {
            let mut is_idle = true;
            for Followed { partition, events } in &mut followed {
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
    fn lines(&self, partition: u32, batch: &EventBatch) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        for (stream, events) in &batch.streams {
            for event in events {
                let line = match self.output.json {
                    true => json_line(partition, batch, stream.as_str(), event),
                    false => line(stream.as_str(), event),
                };
                lines.push((event.time.as_millis(), line));
            }
        }
        lines
    }
}

/// The line of an event, for people.
pub(super) fn line(stream: &str, recorded: &Recorded) -> String {
    let data = String::from_utf8_lossy(&recorded.event.data);
    let line = format!(
        "{}  {stream:<20}  {:>4}  {:<12}  {}",
        moment::text(recorded.time),
        recorded.index,
        recorded.event.event_type,
        escaped(&data)
    );
    line.trim_end().to_owned()
}

fn json_line(partition: u32, batch: &EventBatch, stream: &str, recorded: &Recorded) -> String {
    let mut writer = Writer::with_capacity(256);
    writer.object(|w| {
        w.name("partition").number(partition);
        w.name("checkpoint").string(&batch.checkpoint.to_string());
        w.name("stream").string(stream);
        write_event(w, recorded);
    });
    String::from_utf8(writer.into_bytes()).unwrap_or_default()
}
