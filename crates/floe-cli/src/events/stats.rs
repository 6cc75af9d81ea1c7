//! `floe events stats`: how many streams and events there are, by category.

use std::collections::BTreeMap;

use clap::Args;

use crate::Failure;
use crate::out::{Output, Table, grouped, print_json};
use crate::place::Place;

const AFTER_HELP: &str = "\
Examples:
  floe events stats --data ./shop
  floe events stats --table shop --category Cart --json \\
      --endpoint http://127.0.0.1:8000

It reads the whole table, and the end of each stream. Events that were pruned count. Streams of the store itself are told \
only if --category names them.";

/// Count the streams and events of a table, by category
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
#[group(skip)]
pub(super) struct Stats {
    /// Only this category
    #[arg(long, value_name = "NAME")]
    category: Option<String>,

    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    place: Place,
}

/// What is counted of a category.
#[derive(Clone, Copy, Default)]
struct Counted {
    streams: u64,
    events: u64,
    longest: u64,
}

impl Stats {
    pub(super) fn run(&self) -> Result<(), Failure> {
        self.place.run(async |found| {
            found.events_table().await?;
            let mut counted: BTreeMap<String, Counted> = BTreeMap::new();
            let mut streams = found.store.streams(self.category.as_deref());
            while let Some(page) = streams.next_page().await? {
                for stream in page {
                    if stream.is_system() && self.category.is_none() {
                        continue;
                    }
                    let version = found.store.version(&stream).await?;
                    let of = counted.entry(stream.category().to_owned()).or_default();
                    of.streams += 1;
                    of.events += version;
                    of.longest = of.longest.max(version);
                }
            }
            self.tell(&counted);
            Ok(())
        })
    }

    fn tell(&self, counted: &BTreeMap<String, Counted>) {
        if self.output.json {
            for (category, of) in counted {
                print_json(|w| {
                    w.object(|w| {
                        w.name("category").string(category);
                        w.name("streams").number(of.streams);
                        w.name("events").number(of.events);
                        w.name("longest").number(of.longest);
                    });
                });
            }
            return;
        }
        let mut table = Table::new(["category", "streams", "events", "longest"]);
        for (category, of) in counted {
            table.row([
                category.as_str(),
                &grouped(of.streams),
                &grouped(of.events),
                &grouped(of.longest),
            ]);
        }
        table.print();
    }
}
