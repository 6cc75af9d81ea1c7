//! `floe events prune`: deletes events at the beginning of a stream.

use floe::events::{EventStore, StreamName};

use super::{parse_stream, version};
use crate::{EventsArgs, Result, confirm, members};

/// Delete the events of a stream before an index
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe events prune Cart-7 --before 100 --data ./shop
  floe events prune Cart-7 --before 100 --data ./shop --yes

The version of the stream and its snapshots stay. Events that share a batch with later ones stay as well, and are told as \
deferred. From then on the state of the stream can be told only from a snapshot. It asks before; without a terminal to \
ask at, nothing is deleted unless --yes is given. Exit code 3: there is no such stream.")]
pub(super) struct Prune {
    /// The stream: Category-id
    #[arg(value_name = "STREAM", value_parser = parse_stream)]
    stream: StreamName,

    /// The first event that stays, counted from 0
    #[arg(long, value_name = "INDEX")]
    before: u64,

    /// Delete them without asking
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    pub(super) at: EventsArgs,
}

impl Prune {
    pub(super) async fn run(&self, store: &EventStore) -> Result {
        let (stream, before) = (&self.stream, self.before);
        let version = version(store, stream, &self.at.place.table).await?;
        let what = format!("deleting events of stream={stream} before={before} version={version}");
        confirm(self.yes, &what, "nothing was deleted")?;
        let pruned = store.prune(stream, before).await?;
        let (deleted, deferred, lowest) = (pruned.deleted, pruned.deferred, pruned.lowest);
        self.at.output.line(
            members![
                "stream": stream.as_str(), "deleted": deleted, "deferred": deferred,
                "lowest": lowest
            ],
            &format_args!(
                "pruned: stream={stream} deleted={deleted} deferred={deferred} lowest={lowest}"
            ),
        );
        Ok(())
    }
}
