//! `floe feed read`: prints what the feed tells, from any place on.

use clap::Args;
use floe::events::feed::limits::POLL;
use floe::events::feed::{Checkpoint, Filter, Partition, Reader, Span, Subscription, TableLog};
use floe::events::{Recorded, StreamName};
use floe_store::json::{Reader as Json, Writer};

use super::checkpoint::Target;
use super::{Failure, FoundFeed, Place, broken, print, tail};
use crate::out::Output;
use crate::out::table::escaped;
use crate::signals::Signals;

const AFTER_HELP: &str = "\
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
reading can be continued from the last line.";

/// Print what the feed tells, from any place on
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
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

    /// Of streams of this category alone; may be given several times
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,

    /// With what the events say, which is read from their streams
    #[arg(long)]
    events: bool,

    /// Wait at the tail for what comes, without an end; Ctrl-C ends it
    #[arg(long, conflicts_with = "max")]
    follow: bool,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    place: Place,
}

/// What is read: the index alone, or the events.
enum Reading {
    Spans(Box<Reader<TableLog>>),
    Events(Box<Subscription>),
}

impl ReadCommand {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let feed = FoundFeed::open(&self.place).await?;
        let mut reading = self.begin(&feed).await?;
        match self.follow {
            true => {
                let signals = Signals::new()?;
                tokio::select! {
                    followed = self.follow(&mut reading) => followed?,
                    () = signals.stop() => {}
                }
            }
            false => self.print_some(&mut reading).await?,
        }
        feed.close()
    }

    async fn begin(&self, feed: &FoundFeed) -> Result<Reading, Failure> {
        feed.chosen(Some(self.partition))?;
        let partition = Partition::new(self.partition);
        let from = match self.from {
            Target::Start => Checkpoint::START,
            Target::Tail => feed.tail(partition).await?,
            Target::At(from) => from,
        };
        let categories = self.category.iter();
        let filter = categories.fold(Filter::default(), |filter, name| filter.category(name));
        Ok(match self.events {
            false => Reading::Spans(Box::new(feed.reader(partition, from).filter(filter))),
            true => {
                let events = feed.found.store.feed().partition(partition).filter(filter);
                Reading::Events(Box::new(events.from(from)))
            }
        })
    }

    async fn print_some(&self, reading: &mut Reading) -> Result<(), Failure> {
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

    async fn follow(&self, reading: &mut Reading) -> Result<(), Failure> {
        loop {
            match self.next(reading).await? {
                Some(lines) if lines.iter().all(print) => {}
                Some(_) => return Ok(()),
                None => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// The lines of the next batch; `None` at the tail.
    async fn next(&self, reading: &mut Reading) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        let mut lines = Vec::new();
        match reading {
            Reading::Spans(reader) => {
                let Some(batch) = reader.next().await.map_err(broken)? else {
                    return Ok(None);
                };
                for span in &batch.spans {
                    let write = |w: &mut Writer| {
                        w.name("index").number(span.start);
                        w.name("types")
                            .array(|w| span.types.iter().for_each(|case| w.string(case)));
                    };
                    lines.push(match self.output.json {
                        true => self.line(batch.checkpoint, &span.stream, write),
                        false => span_line(batch.checkpoint, span).into_bytes(),
                    });
                }
            }
            Reading::Events(subscription) => {
                let Some(batch) = subscription.next().await.map_err(broken)? else {
                    return Ok(None);
                };
                for (stream, events) in &batch.streams {
                    for event in events {
                        let write = |w: &mut Writer| write_event(w, event);
                        lines.push(match self.output.json {
                            true => self.line(batch.checkpoint, stream, write),
                            false => event_line(batch.checkpoint, stream, event).into_bytes(),
                        });
                    }
                }
            }
        }
        Ok(Some(lines))
    }

    fn line(
        &self,
        checkpoint: Checkpoint,
        stream: &StreamName,
        write: impl FnOnce(&mut Writer),
    ) -> Vec<u8> {
        let mut writer = Writer::with_capacity(256);
        writer.object(|w| {
            w.name("partition").number(self.partition);
            w.name("checkpoint").string(&checkpoint.to_string());
            w.name("stream").string(stream.as_str());
            write(w);
        });
        writer.into_bytes()
    }
}

fn span_line(checkpoint: Checkpoint, span: &Span) -> String {
    let types: Vec<_> = span.types.iter().map(|case| escaped(case)).collect();
    let (stream, types) = (span.stream.as_str(), types.join(", "));
    format!(
        "{:<6}  {stream:<20}  {:>4}  {types}",
        checkpoint.to_string(),
        span.start
    )
}

fn event_line(checkpoint: Checkpoint, stream: &StreamName, event: &Recorded) -> String {
    format!(
        "{:<6}  {}",
        checkpoint.to_string(),
        tail::line(stream.as_str(), event)
    )
}

/// The members of an event.
pub(crate) fn write_event(w: &mut Writer, recorded: &Recorded) {
    let event = &recorded.event;
    w.name("index").number(recorded.index);
    w.name("type").string(&event.event_type);
    w.name("time_ms").number(recorded.time.as_millis());
    write_body(w, ["data", "data_base64"], &event.data);
    write_body(w, ["meta", "meta_base64"], &event.meta);
    for (name, id) in [
        ("correlation_id", &event.correlation_id),
        ("causation_id", &event.causation_id),
    ] {
        if let Some(id) = id {
            w.name(name).string(id);
        }
    }
}

/// A body as it is if it is JSON, and in base 64 if not.
fn write_body(w: &mut Writer, [as_json, as_base64]: [&str; 2], body: &[u8]) {
    if body.is_empty() {
        return;
    }
    match std::str::from_utf8(body).ok().filter(|text| is_json(text)) {
        // Ends of lines stand between the words of JSON alone, and would end ours.
        Some(text) => w.name(as_json).number(text.replace(['\n', '\r'], " ")),
        None => w.name(as_base64).base64(body),
    }
}

fn is_json(text: &str) -> bool {
    let mut reader = Json::new(text);
    reader.skip().is_ok() && reader.finish().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_told_in_one_line_whatever_they_are() {
        for (body, expected) in [
            (&b""[..], "{}"),
            (br#"{"a":1}"#, r#"{"data":{"a":1}}"#),
            (b"{\n\"a\":\r\n1}", r#"{"data":{ "a":  1}}"#),
            (b"7", r#"{"data":7}"#),
            (b"{", r#"{"data_base64":"ew=="}"#),
            (b"{} {}", r#"{"data_base64":"e30ge30="}"#),
            (&[0xff], r#"{"data_base64":"/w=="}"#),
        ] {
            let mut writer = Writer::with_capacity(64);
            writer.object(|w| write_body(w, ["data", "data_base64"], body));
            let written = String::from_utf8(writer.into_bytes()).unwrap();
            assert_eq!(written, expected);
        }
    }
}
