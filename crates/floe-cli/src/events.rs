//! `floe events`: streams of events.

mod append;
mod prune;
mod read;
mod stats;

use floe::events::{EventStore, StreamName};

use crate::{Failure, Result, commands};

commands! {
    /// Read, append to, count and prune streams of events
    #[command(after_help = "\
Examples:
  floe events append Cart-7 --type ItemAdded --body '{\"sku\":\"tea\"}' \\
      --data ./shop
  floe events read Cart-7 --data ./shop
  floe events stats --data ./shop
  floe events prune Cart-7 --before 100 --data ./shop --yes

A stream is named Category-id. It is kept as Equinox keeps it; the table is `events`, unless --table names another.")]
    EventsCommand:
    Read(read::Read) in at,
    Append(append::Append),
    Stats(stats::Stats) in at,
    Prune(prune::Prune) in at,
}

/// The name of a stream.
fn parse_stream(text: &str) -> Result<StreamName, String> {
    StreamName::parse(text).map_err(|_| "not the name of a stream, such as Cart-7".to_owned())
}

/// How many events a stream has. Fails if there is no such stream.
async fn version(store: &EventStore, stream: &StreamName, table: &str) -> Result<u64> {
    match store.version(stream).await? {
        0 => Err(Failure::unmet(format!(
            "there is no such stream: stream={stream} table={table}"
        ))),
        version => Ok(version),
    }
}
