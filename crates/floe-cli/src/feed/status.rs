//! `floe feed status`: where the feed ends, and how far each group has come.

use floe::events::feed::{Checkpoint, Lag, Partition};
use floe_store::json::Writer;

use super::{FeedArgs, FoundFeed, Member, Result, broken, print};
use crate::{Each, Output, Table, Text, grouped, object};

/// Tell where the feed ends, and how far each group of consumers has come
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed status --table shop
  floe feed status --table shop --json \\
      | jq '.groups[] | select(.lag_events > 1000)'

The lag is how many events a group has before it, and for how many seconds the oldest of them has been in the feed. It is \
counted from the index alone. To find the groups the whole index table is read.")]
pub(super) struct Status {
    #[command(flatten)]
    pub(super) at: FeedArgs,
}

/// How far a group has come in a partition.
pub(super) struct Standing {
    pub(super) member: Member,
    pub(super) lag: Lag,
    checkpoint: Checkpoint,
    parked: usize,
}

impl Status {
    pub(super) async fn run(&self, feed: &FoundFeed) -> Result {
        let mut tails: Vec<(Partition, Checkpoint)> = Vec::new();
        for partition in &feed.partitions {
            tails.push((*partition, feed.tail(*partition).await?));
        }
        let standings = Standing::of_all(feed, feed.members(None).await?).await?;
        let table = &self.at.place.table;
        let tail = |w: &mut Writer, (partition, tail): &(Partition, Checkpoint)| {
            object!(w;
                "partition": partition.number(), "epoch": tail.epoch(), "tail": Text(tail)
            );
        };
        let json = |w: &mut Writer| {
            object!(w;
                "table": table, "index": format!("{table}-index"),
                "partitions": Each(&tails, tail), "groups": Each(&standings, Standing::write)
            );
        };
        let people = || print_status(table, &tails, &standings);
        self.at.output.either(&json, &people);
        Ok(())
    }
}

fn print_status(table: &str, tails: &[(Partition, Checkpoint)], standings: &[Standing]) {
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
        standings => print_standings(Output { json: false }, standings),
    }
}

impl Standing {
    /// How far these have come.
    pub(super) async fn of_all(
        feed: &FoundFeed,
        members: impl IntoIterator<Item = Member>,
    ) -> Result<Vec<Self>> {
        let mut standings = Vec::new();
        for member in members {
            let consumer = feed.consumer(&member);
            standings.push(Self {
                checkpoint: consumer.checkpoint().await.map_err(broken)?,
                lag: consumer.lag().await.map_err(broken)?,
                parked: consumer.parked().await.map_err(broken)?.len(),
                member,
            });
        }
        Ok(standings)
    }

    fn write(w: &mut Writer, standing: &Self) {
        let (member, lag) = (&standing.member, &standing.lag);
        object!(w;
            "group": member.group, "partition": member.partition.number(),
            "checkpoint": Text(standing.checkpoint), "lag_events": lag.events,
            "lag_seconds": lag.age.as_secs(), "parked": standing.parked
        );
    }
}

/// Prints how far groups have come.
pub(super) fn print_standings(output: Output, standings: &[Standing]) {
    output.rows(
        standings,
        |w, standing| Standing::write(w, standing),
        Table::new([
            "group",
            "partition",
            "checkpoint",
            "events behind",
            "seconds",
            "parked",
        ]),
        |standing| {
            [
                standing.member.group.clone(),
                standing.member.partition.to_string(),
                standing.checkpoint.to_string(),
                grouped(standing.lag.events),
                grouped(standing.lag.age.as_secs()),
                standing.parked.to_string(),
            ]
        },
    );
}
