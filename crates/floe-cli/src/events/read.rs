//! `floe events read`: the events of a stream.

use floe::events::{EventStore, StreamName};

use super::{parse_stream, version};
use crate::feed::event::write_event;
use crate::{EventsArgs, Result, Table, moment, note};

/// Read the events of a stream
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe events read Cart-7 --data ./shop
  floe events read Cart-7 --backward --max 5 --data ./shop
  floe events read Cart-7 --from 100 --json --endpoint http://127.0.0.1:8000 \\
      | jq -c .data

With --json each line is an event: index, type, time_ms, and data, meta, correlation_id and causation_id where there are \
any. Exit code 3: there is no such stream.")]
pub(super) struct Read {
    /// The stream: Category-id
    #[arg(value_name = "STREAM", value_parser = parse_stream)]
    stream: StreamName,

    /// From this event on, counted from 0
    #[arg(long, value_name = "INDEX")]
    from: Option<u64>,

    /// The last first
    #[arg(long)]
    backward: bool,

    /// The most events
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    max: u64,

    #[command(flatten)]
    pub(super) at: EventsArgs,
}

impl Read {
    pub(super) async fn run(&self, store: &EventStore) -> Result {
        let version = version(store, &self.stream, &self.at.place.table).await?;
        let mut read = store.read(&self.stream).max_count(self.max);
        if let Some(from) = self.from {
            read = read.from(from);
        }
        if self.backward {
            read = read.backward();
        }
        let events = read.collect().await?;
        self.at.output.rows(
            &events,
            |w, event| w.object(|w| write_event(w, event)),
            Table::new(["index", "time", "type", "data"]),
            |recorded| {
                [
                    recorded.index.to_string(),
                    moment::text(recorded.time),
                    recorded.event.event_type.clone(),
                    String::from_utf8_lossy(&recorded.event.data).into_owned(),
                ]
            },
        );
        if !self.at.output.json {
            note(&format!("events={} version={version}", events.len()));
        }
        Ok(())
    }
}
