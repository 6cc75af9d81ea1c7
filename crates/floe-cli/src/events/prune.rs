//! `floe events prune`: deletes events at the beginning of a stream.

use clap::Args;
use floe::events::{Pruned, StreamName};

use super::parse_stream;
use crate::Failure;
use crate::ask::confirm;
use crate::out::{Output, print};
use crate::place::Place;

const AFTER_HELP: &str = "\
Examples:
  floe events prune Cart-7 --before 100 --data ./shop
  floe events prune Cart-7 --before 100 --data ./shop --yes

The version of the stream and its snapshots stay. Events that share a batch with later ones stay as well, and are told as \
deferred. From then on the state of the stream can be told only from a snapshot. It asks before; without a terminal to \
ask at, nothing is deleted unless --yes is given. Exit code 3: there is no such stream.";

/// Delete the events of a stream before an index
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
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
    output: Output,

    #[command(flatten)]
    place: Place,
}

impl Prune {
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
            let what = format!(
                "deleting events of stream={} before={} version={version}",
                self.stream, self.before
            );
            confirm(self.yes, &what, "nothing was deleted")?;
            let pruned = found.store.prune(&self.stream, self.before).await?;
            self.tell(pruned);
            Ok(())
        })
    }

    fn tell(&self, pruned: Pruned) {
        let Pruned {
            deleted,
            deferred,
            lowest,
            ..
        } = pruned;
        self.output.tell(
            |w| {
                w.object(|w| {
                    w.name("stream").string(self.stream.as_str());
                    w.name("deleted").number(deleted);
                    w.name("deferred").number(deferred);
                    w.name("lowest").number(lowest);
                });
            },
            || {
                print(format!(
                    "pruned: stream={} deleted={deleted} deferred={deferred} lowest={lowest}",
                    self.stream
                ));
            },
        );
    }
}
