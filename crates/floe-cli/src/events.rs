//! `floe events`: event streams.

mod append;
mod create;
mod prune;
mod read;
mod stats;

use floe::events::{EventStore, StreamName};

use crate::{Failure, Result, commands};

commands! {
    /// Create event tables; read, append to, count and prune event streams
    #[command(after_help = "\
Examples:
  floe events create --data ./shop --new
  floe events append Cart-7 --type ItemAdded --body '{\"sku\":\"tea\"}' \\
      --data ./shop
  floe events read Cart-7 --data ./shop
  floe events stats --data ./shop
  floe events prune Cart-7 --before 100 --data ./shop --yes

A stream is named Category-id. Streams are stored in the format of Equinox, in the table `events` unless --table is set.")]
    EventsCommand:
    Create(create::Create),
    Read(read::Read) in target,
    Append(append::Append),
    Stats(stats::Stats) in target,
    Prune(prune::Prune) in target,
}

/// Parses the name of a stream.
fn parse_stream(text: &str) -> Result<StreamName, String> {
    StreamName::parse(text).map_err(|_| "expected the name of a stream, such as Cart-7".to_owned())
}

/// The version of a stream. Fails if the stream does not exist.
async fn version(store: &EventStore, stream: &StreamName, table: &str) -> Result<u64> {
    match store.version(stream).await? {
        0 => Err(Failure::unmet(format!(
            "there is no such stream: stream={stream} table={table}"
        ))),
        version => Ok(version),
    }
}
