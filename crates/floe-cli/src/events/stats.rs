//! `floe events stats`: how many streams and events there are, by category.

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

It reads the whole table, and the end of each stream. Events that were pruned count. Streams of the store itself are told \
only if --category names them.")]
pub(super) struct Stats {
    /// Only this category
    #[arg(long, value_name = "NAME")]
    category: Option<String>,

    #[command(flatten)]
    pub(super) at: EventsArgs,
}

/// What is counted of a category.
#[derive(Clone, Copy, Default)]
struct Counted {
    streams: u64,
    events: u64,
    longest: u64,
}

impl Stats {
    pub(super) async fn run(&self, store: &EventStore) -> Result {
        let mut counted: BTreeMap<String, Counted> = BTreeMap::new();
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
        self.at.output.rows(
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
        );
        Ok(())
    }
}
