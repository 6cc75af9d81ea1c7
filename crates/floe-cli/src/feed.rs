//! `floe feed`: looks at the feed of a table of events, and moves the checkpoints of its consumers.
//!
//! One file per command. What they share is here: the feed that was found, its partitions and its groups.

mod checkpoint;
mod lag;
mod parked;
pub(super) mod read;
mod status;
mod tail;
mod verify;

use clap::{Args, Subcommand};
use floe::events::StreamName;
use floe::events::feed::log::EpochSource;
use floe::events::feed::{Checkpoint, Consumer, Partition, Reader, TableLog};
use floe::{Error, ErrorKind};

use super::indexer::explained;
use super::out::{print, print_json};
use super::place::{Found, Place, runtime};
use super::{Failure, note};

const AFTER_HELP: &str = "\
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
epoch@offset. A group of consumers stores one checkpoint for each partition.";

/// Where the checkpoints of groups are kept.
const CHECKPOINT_CATEGORY: &str = "$ReaderCheckpoint";

/// Look at the feed of a table of events, and move the checkpoints of its consumers
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, arg_required_else_help = true)]
#[group(skip)]
pub(super) struct FeedCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(status::Status),
    Checkpoint(checkpoint::CheckpointCommand),
    Parked(parked::ParkedCommand),
    Read(read::ReadCommand),
    Tail(tail::Tail),
    Lag(lag::LagCommand),
    Verify(verify::Verify),
}

impl FeedCommand {
    pub(super) fn run(self) -> Result<(), Failure> {
        runtime()?.block_on(async {
            match &self.command {
                Command::Status(status) => status.run().await,
                Command::Checkpoint(checkpoint) => checkpoint.run().await,
                Command::Parked(parked) => parked.run().await,
                Command::Read(read) => read.run().await,
                Command::Tail(tail) => tail.run().await,
                Command::Lag(lag) => lag.run().await,
                Command::Verify(verify) => verify.run().await,
            }
        })
    }
}

/// The feed of a table.
struct FoundFeed {
    found: Found,
    log: TableLog,
    partitions: Vec<Partition>,
}

/// A group of consumers, and a partition of which it has stored a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    group: String,
    partition: Partition,
}

impl FoundFeed {
    async fn open(place: &Place) -> Result<Self, Failure> {
        let found = place.open().await?;
        let index = found.store.feed_index();
        let table = &index.options().table;
        if found.describe(table).await?.is_none() {
            return Err(Failure::broken(format!(
                "there is no feed, for there is no index table: table={table}; `floe indexer` makes it"
            )));
        }
        let log = TableLog::new(found.store.db().clone(), index.options().clone());
        let partitions = match found.store.feed_partitions().await.map_err(broken)? {
            Some(partitions) => partitions.all().collect(),
            // A feed that others have begun tells them itself.
            None => log
                .read_index()
                .await
                .map_err(broken)?
                .partitions()
                .collect(),
        };
        Ok(Self {
            found,
            log,
            partitions,
        })
    }

    /// The groups that have stored a checkpoint, with the partitions of which they have. Reads the whole index table.
    async fn members(&self) -> Result<Vec<Member>, Failure> {
        let index = self.found.store.feed_index();
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
        members.sort();
        Ok(members)
    }

    /// Whether a checkpoint is one of ours. Others keep theirs under the same category.
    async fn can_read(&self, member: &Member, stream: &StreamName) -> Result<bool, Failure> {
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
    fn chosen(&self, partition: Option<u32>) -> Result<Vec<Partition>, Failure> {
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
        let store = self.found.store.clone();
        Consumer::new(store, member.group.as_str(), member.partition)
    }

    fn reader(&self, partition: Partition, from: Checkpoint) -> Reader<TableLog> {
        Reader::new(self.log.clone(), partition, from)
    }

    /// Where a partition ends now.
    async fn tail(&self, partition: Partition) -> Result<Checkpoint, Failure> {
        let reader = self.reader(partition, Checkpoint::START);
        reader.tail().await.map_err(broken)
    }

    fn close(&self) -> Result<(), Failure> {
        self.found.close()
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

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands errors over")]
fn broken(error: Error) -> Failure {
    explained(&error)
}
