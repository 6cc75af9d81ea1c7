//! `floe events read`: the events of a stream.

use clap::Args;
use floe::events::{Recorded, StreamName};

use super::parse_stream;
use crate::feed::read::write_event;
use crate::moment;
use crate::out::{Output, Table, print_json};
use crate::place::Place;
use crate::{Failure, note};

const AFTER_HELP: &str = "\
Examples:
  floe events read Cart-7 --data ./shop
  floe events read Cart-7 --backward --max 5 --data ./shop
  floe events read Cart-7 --from 100 --json --endpoint http://127.0.0.1:8000 \\
      | jq -c .data

With --json each line is an event: index, type, time_ms, and data, meta, correlation_id and causation_id where there are \
any. Exit code 3: there is no such stream.";

/// Read the events of a stream
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
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
    output: Output,

    #[command(flatten)]
    place: Place,
}

impl Read {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.place.run(async |found| {
            found.events_table().await?;
            let version = found.store.version(&self.stream).await?;
            if version == 0 {
                return Err(Failure::unmet(format!(
                    "there is no such stream: stream={} table={}",
                    self.stream, self.place.table
                )));
            }
            let mut read = found.store.read(&self.stream).max_count(self.max);
            if let Some(from) = self.from {
                read = read.from(from);
            }
            if self.backward {
                read = read.backward();
            }
            let events = read.collect().await?;
            self.tell(&events, version);
            Ok(())
        })
    }

    fn tell(&self, events: &[Recorded], version: u64) {
        if self.output.json {
            for event in events {
                print_json(|w| w.object(|w| write_event(w, event)));
            }
            return;
        }
        let mut table = Table::new(["index", "time", "type", "data"]);
        for recorded in events {
            table.row([
                recorded.index.to_string(),
                moment::text(recorded.time),
                recorded.event.event_type.clone(),
                String::from_utf8_lossy(&recorded.event.data).into_owned(),
            ]);
        }
        table.print();
        note(&format!("events={} version={version}", events.len()));
    }
}
