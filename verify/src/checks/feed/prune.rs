//! Prunes streams: of those that may be, what all consumers are done with.

use std::collections::BTreeMap;

use floe::events::feed::{Checkpoint, Partition, Reader, TableLog};
use floe::events::{EventStore, StreamName};

use super::journal::Journal;
use super::setting::{
    Files, GROUP, Orders, PARTITIONS, POLL, VIEW, consumer, is_pruned, note, passes,
};
use crate::Failure;

/// Prunes beside those who write.
pub(super) struct Pruner {
    store: EventStore,
    files: Files,
    journal: Journal,
    readers: BTreeMap<Partition, Reader<TableLog>>,
}

impl Pruner {
    pub(super) fn new(store: EventStore, orders: &Orders) -> Result<Self, Failure> {
        let log = || TableLog::new(store.db().clone(), store.feed_index().options().clone());
        let readers = PARTITIONS.all();
        let readers = readers.map(|partition| {
            let reader = Reader::new(log(), partition, Checkpoint::START);
            (partition, reader)
        });
        Ok(Self {
            readers: readers.collect(),
            files: orders.files.clone(),
            journal: Journal::open(&orders.files.written())?,
            store,
        })
    }

    /// Goes on until it is given up.
    pub(super) async fn run(mut self) -> Result<(), Failure> {
        loop {
            for partition in PARTITIONS.all() {
                match self.prune(partition).await {
                    Err(error) if !passes(&error) => {
                        note(&self.files, &format!("pruner: {error}"))?;
                    }
                    _ => {}
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Prunes what a partition tells of up to where all consumers are done.
    async fn prune(&mut self, partition: Partition) -> floe::Result<()> {
        let group = consumer(&self.store, GROUP, partition).checkpoint().await?;
        let view = consumer(&self.store, VIEW, partition).checkpoint().await?;
        let done = group.min(view);
        let Some(reader) = self.readers.get_mut(&partition) else {
            return Ok(());
        };
        let mut ends: BTreeMap<StreamName, u64> = BTreeMap::new();
        while reader.checkpoint() < done
            && let Some(batch) = reader.next().await?
        {
            let spans = batch.spans.into_iter();
            for span in spans.filter(|span| is_pruned(&span.stream)) {
                ends.insert(span.stream.clone(), span.end());
            }
        }
        for (stream, end) in ends {
            let pruned = self.store.prune(&stream, end).await?;
            // Who counts finds none that was not told.
            drop(self.journal.tell(format_args!("pruned {}", pruned.deleted)));
        }
        Ok(())
    }
}
