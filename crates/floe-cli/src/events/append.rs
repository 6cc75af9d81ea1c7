//! `floe events append`: appends one event to a stream.

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

The body is stored unchanged; @FILE reads a file, - reads standard input. The event is appended at most once: if the response \
is lost, the outcome is reconciled. Exit code 3: the stream is not at the version of --expect.")]
pub(super) struct Append {
    /// Name of the stream: Category-id
    #[arg(value_name = "STREAM", value_parser = parse_stream)]
    stream: StreamName,

    /// Type of the event
    #[arg(long = "type", value_name = "NAME")]
    event_type: String,

    /// Body of the event. Default: empty
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    body: String,

    /// Metadata of the event
    #[arg(long, value_name = "TEXT")]
    meta: Option<String>,

    /// Expected version of the stream: its number of events, or new if it must not exist [default: any]
    #[arg(long, value_name = "VERSION", value_parser = parse_expected)]
    expect: Option<Expected>,

    /// Create the table if it does not exist
    #[arg(long)]
    create_table: bool,

    #[command(flatten)]
    target: EventsArgs,
}

impl Append {
    pub(super) fn run(&self) -> Result {
        if self.event_type.is_empty() {
            return Err(Failure::usage("--type cannot be empty"));
        }
        let mut event =
            EventData::new(self.event_type.as_str(), input::text("--body", &self.body)?);
        if let Some(meta) = &self.meta {
            event = event.meta(input::text("--meta", meta)?);
        }
        self.target.events.run(async |store| {
            if self.create_table {
                store.ensure_table().await?;
            }
            events_table(store).await?;
            let expected = self.expect.unwrap_or(Expected::Any);
            let appended = store.append(&self.stream, expected, [event]);
            let (stream, version) = (self.stream.as_str(), appended.await?);
            self.target.output.line(
                members!["stream": stream, "version": version],
                &format_args!("appended: stream={stream} version={version}"),
            )
        })
    }
}

fn parse_expected(text: &str) -> Result<Expected, String> {
    match (text, text.parse()) {
        ("new", _) => Ok(Expected::New),
        (_, Ok(version)) => Ok(Expected::Exact(version)),
        _ => Err("expected a number of events, or new".to_owned()),
    }
}
