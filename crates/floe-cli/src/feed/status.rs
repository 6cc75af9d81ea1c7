//! `floe feed status`: where the feed ends, and how far each group has come.

use clap::Args;
use floe::events::feed::{Checkpoint, Lag, Partition};
use floe_store::json::Writer;

use super::{Failure, FoundFeed, Member, Place, broken, print, print_json};
use crate::out::{Output, Table, grouped};

const AFTER_HELP: &str = "\
Examples:
  floe feed status --table shop
  floe feed status --table shop --json \\
      | jq '.groups[] | select(.lag_events > 1000)'

The lag is how many events a group has before it, and for how many seconds the oldest of them has been in the feed. It is \
counted from the index alone. To find the groups the whole index table is read.";

/// Tell where the feed ends, and how far each group of consumers has come
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct Status {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    place: Place,
}

/// What there is to tell of a group in a partition.
pub(super) struct Standing {
    pub(super) member: Member,
    pub(super) checkpoint: Checkpoint,
    pub(super) lag: Lag,
    pub(super) parked: usize,
}

impl Status {
    pub(super) async fn run(&self) -> Result<(), Failure> {
        let feed = FoundFeed::open(&self.place).await?;
        let mut tails: Vec<(Partition, Checkpoint)> = Vec::new();
        for partition in &feed.partitions {
            tails.push((*partition, feed.tail(*partition).await?));
        }
        let mut standings = Vec::new();
        for member in feed.members().await? {
            standings.push(Standing::of(&feed, member).await?);
        }
        match self.output.json {
            true => self.tell_json(&tails, &standings),
            false => self.tell(&tails, &standings),
        }
        feed.close()
    }

    fn tell(&self, tails: &[(Partition, Checkpoint)], standings: &[Standing]) {
        let table = &self.place.table;
        let mut facts = Table::of_facts();
        facts.fact("events", table);
        facts.fact("feed", format!("{table}-index"));
        facts.print();
        print("");
        let mut partitions = Table::new(["partition", "epoch", "tail"]);
        for (partition, tail) in tails {
            let epoch = tail.epoch().to_string();
            partitions.row([partition.to_string(), epoch, tail.to_string()]);
        }
        partitions.print();
        print("");
        match standings {
            [] => drop(print("no group has stored a checkpoint")),
            standings => tell_standings(standings),
        }
    }

    fn tell_json(&self, tails: &[(Partition, Checkpoint)], standings: &[Standing]) {
        let table = &self.place.table;
        print_json(|w| {
            w.object(|w| {
                w.name("table").string(table);
                w.name("index").string(&format!("{table}-index"));
                w.name("partitions").array(|w| {
                    for (partition, tail) in tails {
                        w.object(|w| {
                            w.name("partition").number(partition);
                            w.name("epoch").number(tail.epoch());
                            w.name("tail").string(&tail.to_string());
                        });
                    }
                });
                w.name("groups").array(|w| {
                    standings.iter().for_each(|standing| standing.write(w));
                });
            });
        });
    }
}

impl Standing {
    pub(super) async fn of(feed: &FoundFeed, member: Member) -> Result<Self, Failure> {
        let consumer = feed.consumer(&member);
        let checkpoint = consumer.checkpoint().await.map_err(broken)?;
        Ok(Self {
            checkpoint,
            lag: consumer.lag().await.map_err(broken)?,
            parked: consumer.parked().await.map_err(broken)?.len(),
            member,
        })
    }

    pub(super) fn write(&self, w: &mut Writer) {
        w.object(|w| {
            w.name("group").string(&self.member.group);
            w.name("partition").number(self.member.partition);
            w.name("checkpoint").string(&self.checkpoint.to_string());
            w.name("lag_events").number(self.lag.events);
            w.name("lag_seconds").number(self.lag.age.as_secs());
            w.name("parked").number(self.parked);
        });
    }
}

/// Prints how far groups have come.
pub(super) fn tell_standings(standings: &[Standing]) {
    let mut table = Table::new([
        "group",
        "partition",
        "checkpoint",
        "events behind",
        "seconds",
        "parked",
    ]);
    for standing in standings {
        table.row([
            standing.member.group.clone(),
            standing.member.partition.to_string(),
            standing.checkpoint.to_string(),
            grouped(standing.lag.events),
            grouped(standing.lag.age.as_secs()),
            standing.parked.to_string(),
        ]);
    }
    table.print();
}
