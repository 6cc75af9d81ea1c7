//! `floe feed read`: prints the feed from any checkpoint.

use floe::events::feed::limits::POLL;
use floe::events::feed::{Checkpoint, Partition, Reader, Span, Subscription, TableLog};
use floe::events::{Recorded, StreamName};

use super::checkpoint::CheckpointArg;
use super::event::{json_line, line, write_event};
use super::{Categories, Feed, FeedArgs, Result, feed_failure, print};
use crate::{AsArray, Signals, escaped, write_members};

/// Print the feed from any checkpoint
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # the spans of all streams
  floe feed read --table shop --aws
  # the events with their bodies
  floe feed read --table shop --aws --from 3@12 --events
  floe feed read --table shop --from tail --follow --events --category Cart \\
      --json --aws

Without --events, each line is a span of a stream: checkpoint, stream, index of the first event, types. With --events, each \
line is an event: checkpoint, time, stream, index, type and body.

With --json, each line is an object: partition, checkpoint, stream and index; types, or type, time_ms, and data, meta, \
correlation_id and causation_id if present. Bodies that are not JSON are printed in base 64, as data_base64 and meta_base64.

Reading can be resumed from the checkpoint of a line after all lines with this checkpoint were processed. Batches are printed \
whole, so the last line is always such a line.")]
pub(super) struct ReadCommand {
    /// Partition to read
    #[arg(long, value_name = "N", default_value = "0")]
    partition: u32,

    /// Start at this checkpoint: epoch@offset, start or tail
    #[arg(long, value_name = "CHECKPOINT", default_value = "start")]
    from: CheckpointArg,

    /// Maximum number of lines; a batch that exceeds it is not printed, unless it is the first
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,

    #[command(flatten)]
    categories: Categories,

    /// Print events with their bodies, which are read from the streams
    #[arg(long)]
    events: bool,

    /// Wait for new events at the end of the feed; stop with Ctrl-C
    #[arg(long, conflicts_with = "max")]
    follow: bool,

    #[command(flatten)]
    pub(super) target: FeedArgs,
}

/// The source of the lines: the index only, or the events.
enum LineSource {
    Spans(Box<Reader<TableLog>>),
    Events(Box<Subscription>),
}

impl ReadCommand {
    pub(super) async fn run(&self, feed: &Feed) -> Result {
        let mut source = self.open(feed).await?;
        if !self.follow {
            return self.print_once(&mut source).await;
        }
        let signals = Signals::new()?;
        tokio::select! {
            result = self.follow(&mut source) => result,
            () = signals.stop() => Ok(()),
        }
    }

    async fn open(&self, feed: &Feed) -> Result<LineSource> {
        feed.selected(Some(self.partition))?;
        let partition = Partition::new(self.partition);
        let from = self.from.resolve_in(feed, partition).await?;
        let filter = self.categories.filter();
        Ok(if self.events {
            let events = feed.store.feed().partition(partition).filter(filter);
            LineSource::Events(Box::new(events.from(from)))
        } else {
            LineSource::Spans(Box::new(feed.reader(partition, from).filter(filter)))
        })
    }

    async fn print_once(&self, source: &mut LineSource) -> Result {
        let (mut printed, lines_max) = (0, usize::try_from(self.max).unwrap_or(usize::MAX));
        while let Some(lines) = self.next(source).await? {
            let fits = printed == 0 || printed + lines.len() <= lines_max;
            printed += lines.len();
            if !fits {
                break;
            }
            lines.iter().try_for_each(print)?;
        }
        Ok(())
    }

    async fn follow(&self, source: &mut LineSource) -> Result {
        loop {
            match self.next(source).await? {
                Some(lines) => lines.iter().try_for_each(print)?,
                None => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// The lines of the next batch; `None` at the tail.
    async fn next(&self, source: &mut LineSource) -> Result<Option<Vec<String>>> {
        let lines = match source {
            LineSource::Spans(reader) => reader.next().await.map_err(feed_failure)?.map(|batch| {
                let line = |span| self.span_line(batch.checkpoint, span);
                batch.spans.iter().map(line).collect()
            }),
            LineSource::Events(subscription) => {
                let batch = subscription.next().await.map_err(feed_failure)?;
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
        if self.target.output.is_json() {
            let partition = Partition::new(self.partition);
            return json_line(partition, checkpoint, &span.stream, &|w| {
                write_members!(w; "index": span.start, "types": AsArray(&span.types, |w, name| w.string(name)));
            });
        }
        let types: Vec<_> = span.types.iter().map(|name| escaped(name)).collect();
        let (stream, types) = (span.stream.as_str(), types.join(", "));
        let checkpoint = checkpoint.to_string();
        format!("{checkpoint:<6}  {stream:<20}  {:>4}  {types}", span.start)
    }

    fn event_line(&self, checkpoint: Checkpoint, stream: &StreamName, event: &Recorded) -> String {
        if self.target.output.is_json() {
            let partition = Partition::new(self.partition);
            return json_line(partition, checkpoint, stream, &|w| write_event(w, event));
        }
        let checkpoint = checkpoint.to_string();
        format!("{checkpoint:<6}  {}", line(stream, event))
    }
}
