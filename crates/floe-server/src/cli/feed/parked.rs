//! `floe feed parked`: the streams that consumers did not get on with.

use clap::Args;

use super::{Failure, FoundFeed, Member, Place, broken, print, print_json};

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

    /// As a line of JSON for each stream
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: Place,
}

impl ParkedCommand {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let feed = FoundFeed::open(&self.place).await?;
        let is_asked = |member: &Member| self.group.as_ref().is_none_or(|g| *g == member.group);
        for member in feed.members().await? {
            if !is_asked(&member) {
                continue;
            }
            let Member { group, partition } = &member;
            for parked in feed.consumer(&member).parked().await.map_err(broken)? {
                let (stream, reason) = (parked.stream.as_str(), parked.reason.as_str());
                let (index, end) = (parked.index, parked.end);
                match self.json {
                    true => print_json(|w| {
                        w.object(|w| {
                            w.name("group").string(group);
                            w.name("partition").number(partition);
                            w.name("stream").string(stream);
                            w.name("index").number(index);
                            w.name("end").number(end);
                            w.name("reason").string(reason);
                        });
                    }),
                    false => print(format!(
                        "group={group} partition={partition} stream={stream} index={index} end={end} reason={reason:?}"
                    )),
                };
            }
        }
        feed.close()
    }
}
