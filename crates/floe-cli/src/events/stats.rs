//! `floe events stats`: counts streams and events by category.

use std::collections::BTreeMap;

use floe::events::EventStore;

use crate::{EventsArgs, Result, Table, grouped, object};

/// Count the streams and events of a table, by category
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe events stats --data ./shop
  floe events stats --table shop --category Cart --json \\
      --endpoint http://127.0.0.1:8000

Reads the whole table, and the Tip of each stream. Pruned events are counted. System streams are counted only if --category \
names them.")]
pub(super) struct Stats {
    /// Count only this category
    #[arg(long, value_name = "NAME")]
    category: Option<String>,

    #[command(flatten)]
    pub(super) target: EventsArgs,
}

/// The counts of a category.
#[derive(Clone, Copy, Default)]
struct Counters {
    streams: u64,
    events: u64,
    longest: u64,
}

impl Stats {
    pub(super) async fn run(&self, store: &EventStore) -> Result {
        let mut counted: BTreeMap<String, Counters> = BTreeMap::new();
        let mut streams = store.streams(self.category.as_deref());
        while let Some(page) = streams.next_page().await? {
            for stream in page {
                if stream.is_system() && self.category.is_none() {
                    continue;
                }
                let version = store.version(&stream).await?;
                let of = counted.entry(stream.category().to_owned()).or_default();
                of.streams += 1;
                of.events += version;
                of.longest = of.longest.max(version);
            }
        }
        self.target.output.rows(
            &counted,
            |w, (category, of)| {
                object!(w;
                    "category": category, "streams": of.streams, "events": of.events,
                    "longest": of.longest
                );
            },
            Table::new(["category", "streams", "events", "longest"]),
            |(category, of)| {
                let [streams, events, longest] = [of.streams, of.events, of.longest].map(grouped);
                [(*category).clone(), streams, events, longest]
            },
        )
    }
}
