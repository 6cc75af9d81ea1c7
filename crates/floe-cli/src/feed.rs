//! `floe feed`: inspects the feed of an event table, and moves the checkpoints of its consumers.
//!
//! One file per command. This file has what they share: the feed, its partitions and its groups.

mod checkpoint;
pub(super) mod event;
mod lag;
mod parked;
mod read;
mod status;
mod tail;
mod verify;

use clap::Args;
use floe::ErrorKind;
use floe::events::feed::log::EpochSource;
use floe::events::feed::{Checkpoint, FeedConsumer, Filter, Partition, Reader, TableLog};
use floe::events::{EventStore, StreamName};

use super::indexer::feed_failure;
use crate::{
    EventTable, Failure, Output, Result, Store, commands, describe, missing_table, note, print,
};

/// The category of the streams that store checkpoints.
const CHECKPOINT_CATEGORY: &str = "$ReaderCheckpoint";

commands! {
    /// Inspect the feed of an event table, and move the checkpoints of its consumers
    #[command(after_help = "\
Examples:
  # partitions, and the progress of each group
  floe feed status --table shop --aws
  floe feed read --table shop --aws --from 3@12 --max 20 --events
  floe feed checkpoint --table shop --aws --group mail --set start --yes
  floe feed parked --table shop --aws --group mail
  # follow new events
  floe feed tail --table shop --aws
  # fail if a group is more than 1000 events behind
  floe feed lag --table shop --aws --max 1000
  # check that the feed has every event once and in order
  floe feed verify --table shop --aws

`floe indexer` creates the feed. Each partition is a chain of epochs; a checkpoint is a position in it, written as \
epoch@offset. A group of consumers stores one checkpoint for each partition.")]
    FeedCommand:
    Status(status::Status) in target,
    Checkpoint(checkpoint::CheckpointCommand) in target,
    Parked(parked::ParkedCommand) in target,
    Read(read::ReadCommand) in target,
    Tail(tail::Tail) in target,
    Lag(lag::LagCommand) in target,
    Verify(verify::Verify) in target,
}

/// The event table of the feed, and the output format.
#[derive(Debug, Args)]
struct FeedArgs {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    events: EventTable,
}

/// The categories to print.
#[derive(Debug, Args)]
struct Categories {
    /// Print only streams of this category; can be repeated
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
}

impl Categories {
    fn filter(&self) -> Filter {
        let categories = self.category.iter();
        categories.fold(Filter::default(), |filter, name| filter.category(name))
    }
}

/// The feed of an event table.
struct Feed {
    store: EventStore,
    log: TableLog,
    partitions: Vec<Partition>,
}

/// A group of consumers, and a partition for which it has stored a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupPartition {
    group: String,
    partition: Partition,
}

impl FeedArgs {
    fn run(&self, command: impl AsyncFnOnce(&Feed) -> Result) -> Result {
        self.events
            .run(async |store: &EventStore| command(&Feed::open(store).await?).await)
    }
}

impl Feed {
    async fn open(store: &EventStore) -> Result<Self> {
        let store = store.clone();
        let index = store.feed_index();
        let table = &index.options().table;
        if describe(store.db(), table).await?.is_none() {
            return Err(Failure::failed(format!(
                "there is no feed: the index table does not exist: table={table}; `floe indexer` creates it"
            )));
        }
        let log = TableLog::new(store.db().clone(), index.options().clone());
        let partitions = match store.feed_partitions().await.map_err(feed_failure)? {
            Some(partitions) => partitions.all().collect(),
            // The feed was created by another implementation: its index lists the partitions.
            None => log
                .read_index()
                .await
                .map_err(feed_failure)?
                .partitions()
                .collect(),
        };
        Ok(Self {
            store,
            log,
            partitions,
        })
    }

    /// The facts that identify the table with the checkpoints.
    async fn facts(&self, store: &Store) -> Result<String> {
        let index = self.store.feed_index();
        let table = describe(index.db(), &index.options().table).await?;
        let table = table.ok_or_else(|| missing_table(&index.options().table))?;
        Ok(store.facts(&table))
    }

    /// All partitions with a stored checkpoint, of one group or of all groups. Reads the whole index table.
    async fn group_partitions(&self, group: Option<&str>) -> Result<Vec<GroupPartition>> {
        let index = self.store.feed_index();
        let streams = index.streams(Some(CHECKPOINT_CATEGORY)).collect();
        let streams = streams.await.map_err(feed_failure)?;
        let mut group_partitions = Vec::new();
        for stream in &streams {
            if let Some(group_partition) = GroupPartition::parse(stream)
                && self.can_read(&group_partition, stream).await?
            {
                group_partitions.push(group_partition);
            }
        }
        group_partitions
            .retain(|group_partition| group.is_none_or(|group| group_partition.group == group));
        group_partitions.sort();
        Ok(group_partitions)
    }

    /// Whether a checkpoint has our format. Other programs store theirs in the same category.
    async fn can_read(
        &self,
        group_partition: &GroupPartition,
        stream: &StreamName,
    ) -> Result<bool> {
        match self.consumer(group_partition).checkpoint().await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::InvalidEvent => {
                note(&format!(
                    "ignoring a checkpoint of another program: stream={stream}"
                ));
                Ok(false)
            }
            Err(error) => Err(feed_failure(error)),
        }
    }

    /// The given partition, or all.
    fn selected(&self, partition: Option<u32>) -> Result<Vec<Partition>> {
        let Some(number) = partition else {
            return Ok(self.partitions.clone());
        };
        let partition = Partition::new(number);
        if self.partitions.contains(&partition) {
            return Ok(vec![partition]);
        }
        Err(Failure::usage(format!(
            "the feed has no such partition: partition={number} partitions={}",
            self.partitions.len()
        )))
    }

    fn consumer(&self, group_partition: &GroupPartition) -> FeedConsumer {
        let store = self.store.clone();
        FeedConsumer::new(
            store,
            group_partition.group.as_str(),
            group_partition.partition,
        )
    }

    fn reader(&self, partition: Partition, from: Checkpoint) -> Reader<TableLog> {
        Reader::new(self.log.clone(), partition, from)
    }

    /// The current end of a partition.
    async fn tail(&self, partition: Partition) -> Result<Checkpoint> {
        let reader = self.reader(partition, Checkpoint::START);
        reader.tail().await.map_err(feed_failure)
    }
}

impl GroupPartition {
    /// Parses the group and the partition from the name of a checkpoint stream.
    fn parse(stream: &StreamName) -> Option<Self> {
        let parts: Vec<&str> = stream.parts().collect();
        let [group, partition] = parts[..] else {
            return None;
        };
        Some(Self {
            group: group.to_owned(),
            partition: Partition::new(partition.parse().ok()?),
        })
    }
}
