//! `floe events append`: one event, at the end of a stream.

use floe::events::{EventData, Expected, StreamName};

use super::parse_stream;
use crate::{EventsArgs, Failure, Result, events_table, input, members};

/// Append an event to a stream
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe events append Cart-7 --type ItemAdded --body '{\"sku\":\"tea\"}' \\
      --data ./shop
  floe events append Cart-7 --type Paid --expect 3 \\
      --endpoint http://127.0.0.1:8000
  floe events append Cart-7 --type Noted --body @note.json --expect new \\
      --data ./shop

The body is stored as it is given; @FILE stands for what is in a file, - for the standard input. An append whose answer was \
lost is settled, never made twice. Exit code 3: the stream is at another version than --expect says.")]
pub(super) struct Append {
    /// The stream: Category-id
    #[arg(value_name = "STREAM", value_parser = parse_stream)]
    stream: StreamName,

    /// The type of the event
    #[arg(long = "type", value_name = "NAME")]
    event_type: String,

    /// What it says
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    body: String,

    /// What is told besides
    #[arg(long, value_name = "TEXT")]
    meta: Option<String>,

    /// How many events the stream must have: a number, or new if it must not be there [default: any]
    #[arg(long, value_name = "VERSION", value_parser = parse_expected)]
    expect: Option<Expected>,

    /// Make the table, if it is missing
    #[arg(long)]
    create_table: bool,

    #[command(flatten)]
    at: EventsArgs,
}

impl Append {
    pub(super) fn run(&self) -> Result {
        if self.event_type.is_empty() {
            return Err(Failure::usage("--type is empty: an event has a type"));
        }
        let mut event =
            EventData::new(self.event_type.as_str(), input::text("--body", &self.body)?);
        if let Some(meta) = &self.meta {
            event = event.meta(input::text("--meta", meta)?);
        }
        self.at.place.run(async |store| {
            if self.create_table {
                store.ensure_table().await?;
            }
            events_table(store).await?;
            let expected = self.expect.unwrap_or(Expected::Any);
            let appended = store.append(&self.stream, expected, [event]);
            let (stream, version) = (self.stream.as_str(), appended.await?);
            self.at.output.line(
                members!["stream": stream, "version": version],
                &format_args!("appended: stream={stream} version={version}"),
            );
            Ok(())
        })
    }
}

fn parse_expected(text: &str) -> Result<Expected, String> {
    match (text, text.parse()) {
        ("new", _) => Ok(Expected::New),
        (_, Ok(version)) => Ok(Expected::Exact(version)),
        _ => Err("not a number of events, or new".to_owned()),
    }
}
