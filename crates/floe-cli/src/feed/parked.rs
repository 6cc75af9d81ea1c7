//! `floe feed parked`: the streams that consumers did not get on with.

use clap::Args;

use super::{Failure, FoundFeed, Member, Place, broken, note, print_json};
use crate::out::{Output, Table};

const AFTER_HELP: &str = "\
Examples:
  floe feed parked --table shop --group mail
  floe feed parked --table shop --json

A stream is parked when its handler has failed too often. Its events from the index on are passed by, up to the end, \
until the program tries again what is parked (Consumer::retry_parked).";

/// Tell which streams are parked, from where on and why
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct ParkedCommand {
    /// Of this group alone [default: of all]
    #[arg(long, value_name = "NAME")]
    group: Option<String>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    place: Place,
}

impl ParkedCommand {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let feed = FoundFeed::open(&self.place).await?;
        let is_asked = |member: &Member| self.group.as_ref().is_none_or(|g| *g == member.group);
        let mut table = Table::new(["group", "partition", "stream", "from", "to", "reason"]);
        for member in feed.members().await? {
            if !is_asked(&member) {
                continue;
            }
            let Member { group, partition } = &member;
            for parked in feed.consumer(&member).parked().await.map_err(broken)? {
                let (stream, reason) = (parked.stream.as_str(), parked.reason.as_str());
                let (index, end) = (parked.index, parked.end);
                if !self.output.json {
                    let places = [
                        partition.number().to_string(),
                        index.to_string(),
                        end.to_string(),
                    ];
                    let [partition, index, end] = &places;
                    table.row([group.as_str(), partition, stream, index, end, reason]);
                    continue;
                }
                print_json(|w| {
                    w.object(|w| {
                        w.name("group").string(group);
                        w.name("partition").number(partition);
                        w.name("stream").string(stream);
                        w.name("index").number(index);
                        w.name("end").number(end);
                        w.name("reason").string(reason);
                    });
                });
            }
        }
        match table.is_empty() {
            true if !self.output.json => note("nothing is parked"),
            true => {}
            false => drop(table.print()),
        }
        feed.close()
    }
}
