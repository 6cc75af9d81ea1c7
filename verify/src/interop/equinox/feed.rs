//! The feed exchanged with equinox-js: each side reads and continues the epochs of the other.

use floe::Db;
use floe::events::feed::log::EpochSource;
use floe::events::feed::{Checkpoint, EpochLimits, IndexerOptions, Partition, Reader, TableLog};
use floe::events::{EventData, EventStore, Expected, StreamName};

use super::{Equinox, count_differing};
use crate::Failure;

/// The script of the other implementation for the feed.
const SCRIPT: &str = "feed.mjs";

/// Returns the number of spans at the end, and the number of lines that differed in any comparison.
pub(super) async fn exchange(db: &Db, equinox: &Equinox) -> Result<(usize, usize), Failure> {
    let store = db.events();
    store.ensure_feed().await?;
    index(&store).await?;
    let mut differing = compare(&store, equinox).await?.1;
    // The other side continues our last epoch, closes it and starts more.
    equinox.run(SCRIPT, &["write", "other"]).await?;
    differing += compare(&store, equinox).await?.1;
    let stream = StreamName::parse("Counter-late")?;
    let late = (0..5).map(|_| EventData::new("Added", "{}"));
    for event in late {
        store.append(&stream, Expected::Any, [event]).await?;
        index(&store).await?;
    }
    let (spans, more) = compare(&store, equinox).await?;
    Ok((spans, differing + more))
}

/// Indexes appended events into small epochs.
async fn index(store: &EventStore) -> Result<(), Failure> {
    let mut limits = EpochLimits::default();
    limits.version_max = 3;
    let options = IndexerOptions::new().batch_max(4).limits(limits);
    store.indexer(options)?.run_until_caught_up().await?;
    Ok(())
}

async fn compare(store: &EventStore, equinox: &Equinox) -> Result<(usize, usize), Failure> {
    let here = read(store).await?;
    let there = equinox.run(SCRIPT, &["read"]).await?;
    Ok((here.len() - 1, count_differing(&here, &there)))
}

/// Describes the feed.
async fn read(store: &EventStore) -> Result<Vec<String>, Failure> {
    let log = TableLog::new(store.db().clone(), store.feed_index().options().clone());
    let mut reader = Reader::new(log.clone(), Partition::FIRST, Checkpoint::START);
    let mut lines = Vec::new();
    while let Some(batch) = reader.next().await? {
        for span in batch.spans {
            lines.push(format!(
                "span\t{}\t{}\t{}\t{}",
                batch.checkpoint.as_u64(),
                span.stream,
                span.start,
                span.types.join(",")
            ));
        }
    }
    let active = log.read_index().await?.active(Partition::FIRST);
    lines.push(format!("tail\t{}\t{active}", reader.tail().await?.as_u64()));
    Ok(lines)
}
