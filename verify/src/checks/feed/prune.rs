//! Prunes events that all consumers have processed, of the streams that may be pruned.

use std::collections::BTreeMap;

use floe::events::feed::{Checkpoint, Partition, Reader, TableLog};
use floe::events::{EventStore, StreamName};

use super::config::{
    Files, GROUP, PARTITIONS, POLL, ProcessArgs, VIEW, consumer, is_pruned, is_transient, note,
};
use super::journal::Journal;
use crate::Failure;

/// Prunes while writers run.
pub(super) struct Pruner {
    store: EventStore,
    files: Files,
    journal: Journal,
    readers: BTreeMap<Partition, Reader<TableLog>>,
}

impl Pruner {
    pub(super) fn new(store: EventStore, args: &ProcessArgs) -> Result<Self, Failure> {
        let log = || TableLog::new(store.db().clone(), store.feed_index().options().clone());
        let readers = PARTITIONS.all();
        let readers = readers.map(|partition| {
            let reader = Reader::new(log(), partition, Checkpoint::START);
            (partition, reader)
        });
        Ok(Self {
            readers: readers.collect(),
            files: args.files.clone(),
            journal: Journal::open(&args.files.written())?,
            store,
        })
    }

    /// Prunes until the task is aborted.
    pub(super) async fn run(mut self) -> Result<(), Failure> {
        loop {
            for partition in PARTITIONS.all() {
                match self.prune(partition).await {
                    Err(error) if !is_transient(&error) => {
                        note(&self.files, &format!("pruner: {error}"))?;
                    }
                    _ => {}
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Prunes the events of a partition up to the lowest checkpoint of all consumers.
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
            // Without the record, the audit counts fewer pruned events.
            drop(
                self.journal
                    .append(format_args!("pruned {}", pruned.deleted)),
            );
        }
        Ok(())
    }
}
