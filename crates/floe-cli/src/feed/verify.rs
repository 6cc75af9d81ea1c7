//! `floe feed verify`: whether the feed tells every event once, and in the order of its stream.

use std::collections::BTreeMap;

use floe::events::feed::Checkpoint;
use floe::events::{EventStore, StreamName};
use floe_store::json::Writer;

use super::{Failure, FeedArgs, FoundFeed, Result, broken, print};
use crate::{Table, grouped, object};

/// The most faults that are printed one by one.
const FAULTS_MAX: usize = 100;

/// Check that the feed tells every event once, and in order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed verify --table shop --data ./shop
  floe feed verify --table shop --endpoint http://127.0.0.1:8000 --json

It reads the whole feed and compares it with the streams: an event that was told twice or out of its order is a fault, and so \
is one that was passed over. What was appended and is not in the feed yet is told as behind, which `floe indexer --once` \
brings. Run it while nobody appends, or what comes meanwhile is told as behind too.

The exit code is 0 if the feed tells all there is, 3 if it is behind, and 1 if there is a fault.")]
pub(super) struct Verify {
    #[command(flatten)]
    pub(super) at: FeedArgs,
}

/// What was found in the feed.
#[derive(Default)]
struct Verified {
    events: u64,
    /// The index that must come next of each stream.
    next: BTreeMap<StreamName, u64>,
    faults: Vec<String>,
    faults_total: u64,
    /// Events that are in streams and not in the feed yet.
    behind: u64,
}

impl Verify {
    pub(super) async fn run(&self, feed: &FoundFeed) -> Result {
        let mut verified = Verified::default();
        for partition in &feed.partitions {
            let mut reader = feed.reader(*partition, Checkpoint::START);
            while let Some(batch) = reader.next().await.map_err(broken)? {
                for span in &batch.spans {
                    let count = u64::try_from(span.types.len()).unwrap_or(0);
                    verified.span(&span.stream, span.start, count);
                }
            }
        }
        verified.compare(&feed.store).await?;
        let output = self.at.output;
        output.either(&|w| verified.write(w), &|| verified.print());
        verified.check()
    }
}

impl Verified {
    /// Compares what the feed has with how many events the streams have.
    async fn compare(&mut self, store: &EventStore) -> Result {
        let mut streams = store.streams(None);
        while let Some(page) = streams.next_page().await.map_err(broken)? {
            for stream in page.iter().filter(|stream| !stream.is_system()) {
                let version = store.version(stream).await.map_err(broken)?;
                let found = self.next.get(stream).copied().unwrap_or(0);
                self.behind += version.saturating_sub(found);
                if found > version {
                    self.fault(format!(
                        "the feed tells more than there is: stream={stream} told={found} version={version}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn span(&mut self, stream: &StreamName, start: u64, count: u64) {
        self.events += count;
        let next = self.next.get(stream).copied().unwrap_or(0);
        if start > next {
            self.fault(format!(
                "events were passed over: stream={stream} from={next} to={start}"
            ));
        } else if start < next {
            self.fault(format!(
                "events were told twice: stream={stream} from={start} to={next}"
            ));
        }
        let end = next.max(start + count);
        self.next.insert(stream.clone(), end);
    }

    fn fault(&mut self, fault: String) {
        self.faults_total += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    fn print(&self) {
        let mut facts = Table::of_facts();
        let streams = u64::try_from(self.next.len()).unwrap_or(0);
        facts.fact("streams", grouped(streams));
        facts.fact("events", grouped(self.events));
        facts.fact("behind", grouped(self.behind));
        facts.fact("faults", grouped(self.faults_total));
        facts.print();
        self.faults.iter().for_each(|fault| {
            print(fault);
        });
    }

    fn write(&self, w: &mut Writer) {
        object!(w;
            "streams": self.next.len(), "events": self.events, "behind": self.behind,
            "faults_total": self.faults_total, "faults": self.faults
        );
    }

    fn check(&self) -> Result {
        match (self.faults_total, self.behind) {
            (0, 0) => Ok(()),
            (0, behind) => Err(Failure::unmet(format!(
                "the feed is behind the streams: events={behind}; `floe indexer --once` brings them"
            ))),
            (faults, _) => Err(Failure::broken(format!(
                "the feed does not tell every event once and in order: faults={faults}"
            ))),
        }
    }
}
