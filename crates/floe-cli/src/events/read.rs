//! `floe events read`: prints the events of a stream.

use floe::events::{EventStore, StreamName};

use super::{parse_stream, version};
use crate::feed::event::write_event;
use crate::{EventsArgs, Result, Table, note, utc};

/// Read the events of a stream
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe events read Cart-7 --data ./shop
  floe events read Cart-7 --backward --max 5 --data ./shop
  floe events read Cart-7 --from 100 --json --endpoint http://127.0.0.1:8000 \\
      | jq -c .data

With --json, each line is an event: index, type, time_ms, and data, meta, correlation_id and causation_id if present. \
Exit code 3: there is no such stream.")]
pub(super) struct Read {
    /// Name of the stream: Category-id
    #[arg(value_name = "STREAM", value_parser = parse_stream)]
    stream: StreamName,

    /// Index of the first event to read, counted from 0 [default: the first, or with --backward the last]
    #[arg(long, value_name = "INDEX")]
    from: Option<u64>,

    /// Read backward, from the newest event
    #[arg(long)]
    backward: bool,

    /// Maximum number of events
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    max: u64,

    #[command(flatten)]
    pub(super) target: EventsArgs,
}

impl Read {
    pub(super) async fn run(&self, store: &EventStore) -> Result {
        let version = version(store, &self.stream, &self.target.events.table).await?;
        let mut read = store.read(&self.stream).max_count(self.max);
        if let Some(from) = self.from {
            read = read.from(from);
        }
        if self.backward {
            read = read.backward();
        }
        let events = read.collect().await?;
        self.target.output.rows(
            &events,
            |w, event| w.object(|w| write_event(w, event)),
            Table::new(["index", "time", "type", "data"]),
            |recorded| {
                [
                    recorded.index.to_string(),
                    utc::date_time(recorded.time),
                    recorded.event.event_type.clone(),
                    String::from_utf8_lossy(&recorded.event.data).into_owned(),
                ]
            },
        )?;
        if !self.target.output.is_json() {
            note(&format!("events={} version={version}", events.len()));
        }
        Ok(())
    }
}
