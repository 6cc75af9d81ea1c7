//! `floe feed read`: prints what the feed tells, from any place on.

use floe::events::feed::limits::POLL;
use floe::events::feed::{Checkpoint, Partition, Reader, Span, Subscription, TableLog};
use floe::events::{Recorded, StreamName};

use super::checkpoint::Target;
use super::event::{json_line, line, write_event};
use super::{Categories, FeedArgs, FoundFeed, Result, broken, print};
use crate::{Each, Signals, escaped, write_members};

/// Print what the feed tells, from any place on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # what was appended to which streams
  floe feed read --table shop
  # and what the events say
  floe feed read --table shop --from 3@12 --events
  floe feed read --table shop --from tail --follow --events --category Cart \\
      --json

Without --events a line is a span of a stream: checkpoint, stream, index of the first event, types. With --events it is an \
event: checkpoint, time, stream, index, type and what it says.

With --json each line is an object: partition, checkpoint, stream and index; types, or type, time_ms, and data, meta, \
correlation_id and causation_id where there are any. Bodies that are no JSON come in base 64, as data_base64 and \
meta_base64.

The checkpoint of a line is where to go on once all lines with it are dealt with. Batches are printed whole, so a \
reading can be continued from the last line.")]
pub(super) struct ReadCommand {
    /// The partition
    #[arg(long, value_name = "N", default_value = "0")]
    partition: u32,

    /// From there on: epoch@offset, start or tail
    #[arg(long, value_name = "PLACE", default_value = "start")]
    from: Target,

    /// The most lines; a batch that would go beyond is not printed, unless it is the first
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,

    #[command(flatten)]
    categories: Categories,

    /// With what the events say, which is read from their streams
    #[arg(long)]
    events: bool,

    /// Wait at the tail for what comes, without an end; Ctrl-C ends it
    #[arg(long, conflicts_with = "max")]
    follow: bool,

    #[command(flatten)]
    pub(super) at: FeedArgs,
}

/// What is read: the index alone, or the events.
enum Reading {
    Spans(Box<Reader<TableLog>>),
    Events(Box<Subscription>),
}

impl ReadCommand {
    pub(super) async fn run(&self, feed: &FoundFeed) -> Result {
        let mut reading = self.begin(feed).await?;
        if !self.follow {
            return self.print_some(&mut reading).await;
        }
        let signals = Signals::new()?;
        tokio::select! {
            followed = self.follow(&mut reading) => followed,
            () = signals.stop() => Ok(()),
        }
    }

    async fn begin(&self, feed: &FoundFeed) -> Result<Reading> {
        feed.chosen(Some(self.partition))?;
        let partition = Partition::new(self.partition);
        let from = self.from.in_partition(feed, partition).await?;
        let filter = self.categories.filter();
        Ok(match self.events {
            false => Reading::Spans(Box::new(feed.reader(partition, from).filter(filter))),
            true => {
                let events = feed.store.feed().partition(partition).filter(filter);
                Reading::Events(Box::new(events.from(from)))
            }
        })
    }

    async fn print_some(&self, reading: &mut Reading) -> Result {
        let (mut printed, lines_max) = (0, usize::try_from(self.max).unwrap_or(usize::MAX));
        while let Some(lines) = self.next(reading).await? {
            let fits = printed == 0 || printed + lines.len() <= lines_max;
            printed += lines.len();
            if !fits || !lines.iter().all(print) {
                break;
            }
        }
        Ok(())
    }

    async fn follow(&self, reading: &mut Reading) -> Result {
        loop {
            match self.next(reading).await? {
                Some(lines) if lines.iter().all(print) => {}
                Some(_) => return Ok(()),
                None => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// The lines of the next batch; `None` at the tail.
    async fn next(&self, reading: &mut Reading) -> Result<Option<Vec<String>>> {
        let lines = match reading {
            Reading::Spans(reader) => reader.next().await.map_err(broken)?.map(|batch| {
                let line = |span| self.span_line(batch.checkpoint, span);
                batch.spans.iter().map(line).collect()
            }),
            Reading::Events(subscription) => {
                let batch = subscription.next().await.map_err(broken)?;
                batch.map(|batch| {
                    let streams = batch.streams.iter();
                    let events = streams.flat_map(|(stream, events)| {
                        let events = events.iter();
                        events.map(|event| self.event_line(batch.checkpoint, stream, event))
                    });
                    events.collect()
                })
            }
        };
        Ok(lines)
    }

    fn span_line(&self, checkpoint: Checkpoint, span: &Span) -> String {
        if self.at.output.json {
            let partition = Partition::new(self.partition);
            return json_line(partition, checkpoint, &span.stream, &|w| {
                write_members!(w; "index": span.start, "types": Each(&span.types, |w, case| w.string(case)));
            });
        }
        let types: Vec<_> = span.types.iter().map(|case| escaped(case)).collect();
        let (stream, types) = (span.stream.as_str(), types.join(", "));
        let checkpoint = checkpoint.to_string();
        format!("{checkpoint:<6}  {stream:<20}  {:>4}  {types}", span.start)
    }

    fn event_line(&self, checkpoint: Checkpoint, stream: &StreamName, event: &Recorded) -> String {
        if self.at.output.json {
            let partition = Partition::new(self.partition);
            return json_line(partition, checkpoint, stream, &|w| write_event(w, event));
        }
        let checkpoint = checkpoint.to_string();
        format!("{checkpoint:<6}  {}", line(stream, event))
    }
}
