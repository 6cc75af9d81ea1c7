//! `floe feed verify`: checks that the feed has every event once, in the order of its stream.

use std::collections::BTreeMap;

use floe::events::feed::Checkpoint;
use floe::events::{EventStore, StreamName};
use floe_store::json::Writer;

use super::{Failure, Feed, FeedArgs, Result, feed_failure, print};
use crate::{Table, grouped, object};

/// Maximum number of faults that are printed in detail.
const FAULTS_MAX: usize = 100;

/// Check that the feed has every event once and in order
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe feed verify --table shop --data ./shop
  floe feed verify --table shop --endpoint http://127.0.0.1:8000 --json

Reads the whole feed and compares it with the streams. Duplicate, missing and misordered events are faults. Events that were \
appended but are not in the feed yet are counted as behind; `floe indexer --once` adds them. Run it while no events are \
appended, otherwise the new events count as behind too.

Exit codes: 0 if the feed is complete; 3 if it is behind; 1 if it has faults.")]
pub(super) struct Verify {
    #[command(flatten)]
    pub(super) target: FeedArgs,
}

/// The result of comparing the feed with the streams.
#[derive(Default)]
struct Verification {
    events: u64,
    /// The expected next index of each stream.
    next: BTreeMap<StreamName, u64>,
    faults: Vec<String>,
    faults_total: u64,
    /// Number of events that are not in the feed yet.
    behind: u64,
}

impl Verify {
    pub(super) async fn run(&self, feed: &Feed) -> Result {
        let mut verification = Verification::default();
        for partition in &feed.partitions {
            let mut reader = feed.reader(*partition, Checkpoint::START);
            while let Some(batch) = reader.next().await.map_err(feed_failure)? {
                for span in &batch.spans {
                    let count = u64::try_from(span.types.len()).unwrap_or(0);
                    verification.span(&span.stream, span.start, count);
                }
            }
        }
        verification.compare(&feed.store).await?;
        let output = self.target.output;
        output.either(&|w| verification.write(w), &|| verification.print())?;
        verification.check()
    }
}

impl Verification {
    /// Compares the number of events in the feed with the versions of the streams.
    async fn compare(&mut self, store: &EventStore) -> Result {
        let mut streams = store.streams(None);
        while let Some(page) = streams.next_page().await.map_err(feed_failure)? {
            for stream in page.iter().filter(|stream| !stream.is_system()) {
                let version = store.version(stream).await.map_err(feed_failure)?;
                let found = self.next.get(stream).copied().unwrap_or(0);
                self.behind += version.saturating_sub(found);
                if found > version {
                    self.fault(format!(
                        "the feed has events that are not in the stream: stream={stream} feed={found} version={version}"
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
                "events are missing: stream={stream} from={next} to={start}"
            ));
        } else if start < next {
            self.fault(format!(
                "events are duplicated: stream={stream} from={start} to={next}"
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

    fn print(&self) -> Result {
        let mut summary = Table::key_value();
        let streams = u64::try_from(self.next.len()).unwrap_or(0);
        summary.entry("streams", grouped(streams));
        summary.entry("events", grouped(self.events));
        summary.entry("behind", grouped(self.behind));
        summary.entry("faults", grouped(self.faults_total));
        summary.print()?;
        self.faults.iter().try_for_each(print)
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
                "the feed is behind the streams: events={behind}; `floe indexer --once` adds them"
            ))),
            (faults, _) => Err(Failure::failed(format!(
                "the feed has missing, duplicated or misordered events: faults={faults}"
            ))),
        }
    }
}
