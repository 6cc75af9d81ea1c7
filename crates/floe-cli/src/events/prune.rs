//! `floe events prune`: deletes the oldest events of a stream.

use floe::events::{EventStore, StreamName};

use super::{parse_stream, version};
use crate::{EventsArgs, Result, confirm, events_table, members};

/// Delete the events of a stream before an index
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe events prune Cart-7 --before 100 --data ./shop
  floe events prune Cart-7 --before 100 --data ./shop --yes

The version of the stream and its snapshots do not change. Events that share a batch with later events are not deleted and \
reported as deferred. Afterwards, the state of the stream can only be loaded from a snapshot. The deletion must be confirmed: \
at the terminal, after the store, its region and the table were printed, or with --yes. Exit code 3: there is no such stream.")]
pub(super) struct Prune {
    /// Name of the stream: Category-id
    #[arg(value_name = "STREAM", value_parser = parse_stream)]
    stream: StreamName,

    /// Delete events before this index, counted from 0
    #[arg(long, value_name = "INDEX")]
    before: u64,

    /// Delete without confirmation
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    pub(super) target: EventsArgs,
}

impl Prune {
    pub(super) async fn run(&self, store: &EventStore) -> Result {
        let (stream, before) = (&self.stream, self.before);
        let version = version(store, stream, &self.target.events.table).await?;
        let table = events_table(store).await?;
        let facts = self.target.events.store.facts(&table);
        let facts = format!("{facts} stream={stream} before={before} version={version}");
        confirm(self.yes, "deleting events", &facts, "nothing was deleted")?;
        let pruned = store.prune(stream, before).await?;
        let (deleted, deferred, lowest) = (pruned.deleted, pruned.deferred, pruned.lowest);
        self.target.output.line(
            members![
                "stream": stream.as_str(), "deleted": deleted, "deferred": deferred,
                "lowest": lowest
            ],
            &format_args!(
                "pruned: stream={stream} deleted={deleted} deferred={deferred} lowest={lowest}"
            ),
        )
    }
}
