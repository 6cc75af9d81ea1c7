//! `floe feed`: looks at the feed of a table of events, and moves the checkpoints of its consumers.
//!
//! One file per command. What they share is here: the feed that was found, its partitions and its groups.

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
use floe::events::feed::{Checkpoint, Consumer, Filter, Partition, Reader, TableLog};
use floe::events::{EventStore, StreamName};

use super::indexer::explained as broken;
use crate::{Failure, Output, Place, Result, commands, describe, note, print};

/// Where the checkpoints of groups are kept.
const CHECKPOINT_CATEGORY: &str = "$ReaderCheckpoint";

commands! {
    /// Look at the feed of a table of events, and move the checkpoints of its consumers
    #[command(after_help = "\
Examples:
  # partitions, groups, how far each has come
  floe feed status --table shop
  floe feed read --table shop --from 3@12 --max 20 --events
  floe feed checkpoint --table shop --group mail --set start --yes
  floe feed parked --table shop --group mail
  # what is appended from now on
  floe feed tail --table shop
  # whether every group keeps up
  floe feed lag --table shop --max 1000
  # whether the feed tells every event once, and in order
  floe feed verify --table shop

A feed is made by `floe indexer`. Each partition is a chain of epochs; a checkpoint is a place in it, written as \
epoch@offset. A group of consumers stores one checkpoint for each partition.")]
    FeedCommand:
    Status(status::Status) in at,
    Checkpoint(checkpoint::CheckpointCommand) in at,
    Parked(parked::ParkedCommand) in at,
    Read(read::ReadCommand) in at,
    Tail(tail::Tail) in at,
    Lag(lag::LagCommand) in at,
    Verify(verify::Verify) in at,
}

/// Where the feed is, and how the result is printed.
#[derive(Debug, Args)]
struct FeedArgs {
    #[command(flatten)]
    output: Output,

    #[command(flatten)]
    place: Place,
}

/// Which streams are printed.
#[derive(Debug, Args)]
struct Categories {
    /// Of streams of this category alone; may be given several times
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
}

impl Categories {
    fn filter(&self) -> Filter {
        let categories = self.category.iter();
        categories.fold(Filter::default(), |filter, name| filter.category(name))
    }
}

/// The feed of a table.
struct FoundFeed {
    store: EventStore,
    log: TableLog,
    partitions: Vec<Partition>,
}

/// A group of consumers, and a partition of which it has stored a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    group: String,
    partition: Partition,
}

impl FeedArgs {
    fn run(&self, work: impl AsyncFnOnce(&FoundFeed) -> Result) -> Result {
        let work = async |store: &EventStore| work(&FoundFeed::of(store).await?).await;
        self.place.run(work)
    }
}

impl FoundFeed {
    async fn of(store: &EventStore) -> Result<Self> {
        let store = store.clone();
        let index = store.feed_index();
        let table = &index.options().table;
        if describe(store.db(), table).await?.is_none() {
            return Err(Failure::broken(format!(
                "there is no feed, for there is no index table: table={table}; `floe indexer` makes it"
            )));
        }
        let log = TableLog::new(store.db().clone(), index.options().clone());
        let partitions = match store.feed_partitions().await.map_err(broken)? {
            Some(partitions) => partitions.all().collect(),
            // A feed that others have begun names them itself.
            None => log
                .read_index()
                .await
                .map_err(broken)?
                .partitions()
                .collect(),
        };
        Ok(Self {
            store,
            log,
            partitions,
        })
    }

    /// The groups that have stored a checkpoint (of this name, or all), with the partitions of which they have. Reads the whole
    /// index table.
    async fn members(&self, group: Option<&str>) -> Result<Vec<Member>> {
        let index = self.store.feed_index();
        let streams = index.streams(Some(CHECKPOINT_CATEGORY)).collect();
        let streams = streams.await.map_err(broken)?;
        let mut members = Vec::new();
        for stream in &streams {
            if let Some(member) = Member::of(stream)
                && self.can_read(&member, stream).await?
            {
                members.push(member);
            }
        }
        members.retain(|member| group.is_none_or(|group| member.group == group));
        members.sort();
        Ok(members)
    }

    /// Whether a checkpoint is one of ours. Others keep theirs under the same category.
    async fn can_read(&self, member: &Member, stream: &StreamName) -> Result<bool> {
        match self.consumer(member).checkpoint().await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::InvalidEvent => {
                note(&format!(
                    "passing over a checkpoint of another program: stream={stream}"
                ));
                Ok(false)
            }
            Err(error) => Err(broken(error)),
        }
    }

    /// The partitions that were asked for: this one, or all.
    fn chosen(&self, partition: Option<u32>) -> Result<Vec<Partition>> {
        let Some(number) = partition else {
            return Ok(self.partitions.clone());
        };
        let partition = Partition::new(number);
        match self.partitions.contains(&partition) {
            true => Ok(vec![partition]),
            false => Err(Failure::usage(format!(
                "the feed has no such partition: partition={number} partitions={}",
                self.partitions.len()
            ))),
        }
    }

    fn consumer(&self, member: &Member) -> Consumer {
        let store = self.store.clone();
        Consumer::new(store, member.group.as_str(), member.partition)
    }

    fn reader(&self, partition: Partition, from: Checkpoint) -> Reader<TableLog> {
        Reader::new(self.log.clone(), partition, from)
    }

    /// Where a partition ends now.
    async fn tail(&self, partition: Partition) -> Result<Checkpoint> {
        let reader = self.reader(partition, Checkpoint::START);
        reader.tail().await.map_err(broken)
    }
}

impl Member {
    /// Whose checkpoint a stream is, by its name: the group and the partition.
    fn of(stream: &StreamName) -> Option<Self> {
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
