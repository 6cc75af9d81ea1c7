//! The source of the feed: shards that split, close, expire and are trimmed, and change streams that are enabled again.
//!
//! In all these cases, and wherever an indexer is killed, the feed contains every event once and in the order of its
//! stream, or the indexer fails with an error.

mod simulated_streams;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::support::no_time;
use floe::events::feed::{
    Checkpoint, EpochLimits, IndexerOptions, IndexerSummary, Partitions, Reader, TableLog,
};
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, StreamName};
use floe::{Db, Error, ErrorKind};
use floe_store::Env;
use floe_store::env::SeededRandom;
use no_time::NoTime;
use simulated_streams::SimulatedStreams;

/// A store with a feed whose indexer reads simulated change streams.
struct World {
    change_streams: Arc<SimulatedStreams>,
    store: EventStore,
    options: IndexerOptions,
}

impl World {
    /// Creates a feed of two partitions with small epochs, for streams that calve often.
    async fn new() -> Self {
        let change_streams = Arc::new(SimulatedStreams::new("shop"));
        let db = Db::with_parts(change_streams.clone(), Env::system(), Arc::new(NoTime));
        let store = db.event_store(EventStoreOptions::new("shop").tip_events_max(3));
        store.ensure_table().await.unwrap();
        store.ensure_feed().await.unwrap();
        let mut limits = EpochLimits::default();
        limits.version_max = 5;
        let options = IndexerOptions::new()
            .partitions(partitions())
            .batch_max(7)
            .limits(limits);
        Self {
            change_streams,
            store,
            options,
        }
    }

    async fn append(&self, id: u64, count: u64) {
        let stream = StreamName::new("Cart", &id).unwrap();
        let events = (0..count).map(|_| EventData::new("Added", "{}"));
        let appended = self.store.append(&stream, Expected::Any, events);
        appended.await.unwrap();
        self.change_streams.distribute_records().await;
    }

    async fn index(&self) -> Result<IndexerSummary, Error> {
        self.index_with(self.options.clone()).await
    }

    async fn index_with(&self, options: IndexerOptions) -> Result<IndexerSummary, Error> {
        let mut indexer = self.store.indexer(options).unwrap();
        indexer.run_until_caught_up().await
    }

    /// Runs an indexer for a number of yields, then drops it. Returns whether it has caught up.
    async fn index_for(&self, options: IndexerOptions, yields: u64) -> bool {
        let mut indexer = self.store.indexer(options).unwrap();
        tokio::select! {
            biased;
            indexed = indexer.run_until_caught_up() => {
                indexed.unwrap();
                true
            }
            () = yield_times(yields) => false,
        }
    }

    /// Reads the next index of each stream from the feed. Panics on repetitions and gaps.
    async fn fed(&self) -> BTreeMap<StreamName, u64> {
        let index = self.store.feed_index();
        let mut fed = BTreeMap::new();
        for partition in partitions().all() {
            let log = TableLog::new(self.store.db().clone(), index.options().clone());
            let mut reader = Reader::new(log, partition, Checkpoint::START);
            while let Some(batch) = reader.next().await.unwrap() {
                for span in batch.spans {
                    let next: &mut u64 = fed.entry(span.stream.clone()).or_default();
                    assert_eq!(span.start, *next, "{}", span.stream);
                    *next = span.end();
                }
            }
        }
        fed
    }

    async fn written(&self) -> BTreeMap<StreamName, u64> {
        let mut written = BTreeMap::new();
        for stream in self.store.streams(None).collect().await.unwrap() {
            let version = self.store.version(&stream).await.unwrap();
            written.insert(stream, version);
        }
        written
    }

    /// Checks that the feed contains all events of all streams.
    async fn check(&self, context: &str) {
        assert_eq!(self.fed().await, self.written().await, "{context}");
    }
}

fn partitions() -> Partitions {
    Partitions::new(NonZeroU32::new(2).unwrap())
}

async fn yield_times(count: u64) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// A world with two change streams whose shards have split.
async fn world_with_split_shards() -> World {
    let world = World::new().await;
    world.change_streams.split_shard(0, 2);
    for round in 0..3 {
        for id in 0..4 {
            world.append(id, 1 + (id + round) % 3).await;
        }
        match round {
            0 => world.change_streams.split_shard(0, 2),
            1 => world.change_streams.recreate_stream(),
            _ => world.change_streams.split_shard(0, 1),
        }
    }
    world
}

/// The indexer is dropped at each await in turn. The next one adds all missing events, and none twice.
#[tokio::test]
async fn indexer_killed_at_any_await_is_resumed_without_loss() {
    let mut yields = 0;
    loop {
        let world = world_with_split_shards().await;
        let has_caught_up = world.index_for(world.options.clone(), yields).await;
        world.append(1, 1).await;
        // The next indexer is dropped too, a little later.
        world.index_for(world.options.clone(), yields + 3).await;
        world.index().await.unwrap();
        world.check(&format!("killed after {yields} yields")).await;
        assert_eq!(world.index().await.unwrap(), IndexerSummary::default());
        if has_caught_up {
            break;
        }
        yields += 1;
    }
    assert!(yields > 100, "too few awaits were tested: {yields}");
}

/// Shards split, end and are removed; streams are enabled again. Indexers with two names are killed at random, and
/// several run concurrently.
#[tokio::test]
async fn feed_is_complete_after_any_change_of_shards() {
    for seed in 0..25 {
        let random = SeededRandom::new(seed);
        let world = World::new().await;
        let named = [world.options.clone(), world.options.clone().name("other")];
        for _ in 0..40 {
            let shard = random.below(world.change_streams.open_shards() as u64) as usize;
            match random.below(12) {
                0 => world.change_streams.split_shard(shard, 1),
                1 => world.change_streams.split_shard(shard, 2),
                2 => world.change_streams.split_shard(shard, 3),
                3 => world.change_streams.recreate_stream(),
                4 => {
                    // Shards may be removed after they were read.
                    for options in &named {
                        world.index_with(options.clone()).await.unwrap();
                    }
                    world.change_streams.remove_closed_shards();
                }
                5 | 6 => {
                    let options = named[random.below(2) as usize].clone();
                    world.index_for(options, random.below(120)).await;
                }
                7 => {
                    let [one, other] = &named;
                    tokio::join!(
                        world.index_for(one.clone(), random.below(300)),
                        world.index_for(one.clone(), random.below(300)),
                        world.index_for(other.clone(), random.below(300)),
                    );
                }
                _ => world.append(random.below(6), 1 + random.below(4)).await,
            }
        }
        world.index().await.unwrap();
        world.check(&format!("seed {seed}")).await;
        let again = world.index_with(named[1].clone()).await.unwrap();
        assert_eq!(again.events, 0, "seed {seed}");
    }
}

/// New shards and streams are found without a restart.
#[tokio::test]
async fn running_indexer_follows_changes_of_shards() {
    for seed in 0..10 {
        let random = SeededRandom::new(seed);
        let world = World::new().await;
        let mut indexer = world.store.indexer(world.options.clone()).unwrap();
        for _ in 0..30 {
            let shard = random.below(world.change_streams.open_shards() as u64) as usize;
            match random.below(8) {
                0 => world.change_streams.split_shard(shard, 2),
                1 => world.change_streams.recreate_stream(),
                2 => {
                    indexer.run_until_caught_up().await.unwrap();
                    world.change_streams.remove_closed_shards();
                }
                3 => {
                    indexer.run_until_caught_up().await.unwrap();
                }
                _ => world.append(random.below(6), 1 + random.below(3)).await,
            }
        }
        indexer.run_until_caught_up().await.unwrap();
        world.check(&format!("seed {seed}")).await;
    }
}

#[tokio::test]
async fn change_streams_of_a_table_are_read_one_after_another() {
    let world = World::new().await;
    for _ in 0..4 {
        for _ in 0..5 {
            world.append(1, 1).await;
        }
        world.change_streams.recreate_stream();
    }
    let indexed = world.index().await.unwrap();
    assert_eq!(indexed.events, 20);
    world.check("four streams").await;
    world.change_streams.remove_closed_shards();
    world.append(1, 1).await;
    assert_eq!(world.index().await.unwrap().events, 1);
    world.check("the earlier streams are removed").await;
}

fn assert_missing_events(indexed: Result<IndexerSummary, Error>, text: &str) {
    let error = indexed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingEvents, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[tokio::test]
async fn trimming_unread_records_is_an_error() {
    let shard =
        "unread change records may have been trimmed: shard=2026-01-01T00:00:00.000/shardId-";

    // Records of a shard that was read in part.
    let world = World::new().await;
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.change_streams.trim_records();
    world.append(3, 1).await;
    assert_missing_events(
        world.index().await,
        &format!("{shard}00000000000000000001 position=After("),
    );

    // A removed shard that has a child.
    let world = World::new().await;
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.change_streams.split_shard(0, 1);
    world.change_streams.remove_closed_shards();
    world.append(3, 1).await;
    assert_missing_events(
        world.index().await,
        &format!("{shard}00000000000000000001 position=After("),
    );

    // The first records of a child whose parent was read to its end.
    let world = World::new().await;
    world.append(1, 2).await;
    world.change_streams.split_shard(0, 1);
    world.index().await.unwrap();
    world.append(1, 1).await;
    world.change_streams.split_shard(0, 1);
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.change_streams.split_shard(0, 1);
    world.append(2, 2).await;
    world.change_streams.trim_records();
    world.append(3, 1).await;
    assert_missing_events(world.index().await, shard);

    // A removed change stream.
    let world = World::new().await;
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.change_streams.recreate_stream();
    world.change_streams.remove_closed_shards();
    world.append(3, 1).await;
    assert_missing_events(
        world.index().await,
        &format!("{shard}00000000000000000001 position=After("),
    );
}

/// The events of trimmed records are still in their streams. They are added to the feed at the next append to the
/// stream.
#[tokio::test]
async fn accept_trimmed_fills_gaps_from_the_streams() {
    let world = World::new().await;
    world.append(1, 2).await;
    world.append(2, 1).await;
    world.index().await.unwrap();
    world.append(1, 3).await;
    world.append(2, 1).await;
    world.append(3, 5).await;
    world.change_streams.trim_records();
    world.append(1, 1).await;
    assert!(world.index().await.is_err());
    let accepting = world.options.clone().accept_trimmed();
    let indexed = world.index_with(accepting).await.unwrap();
    // Gaps in the other streams are found at the next append to them.
    assert_eq!(indexed.events, 4);
    let fed = world.fed().await;
    let name = |id: u64| StreamName::new("Cart", &id).unwrap();
    assert_eq!(fed, [(name(1), 6), (name(2), 1)].into());
    world.append(2, 1).await;
    assert_missing_events(
        world.index().await,
        "the feed would skip events: stream=Cart-2 expected=1 found=2",
    );
    let accepting = world.options.clone().accept_trimmed();
    assert_eq!(world.index_with(accepting).await.unwrap().events, 2);
    assert_eq!(world.fed().await.get(&name(2)), Some(&3));
}

#[tokio::test]
async fn removing_shards_that_were_read_is_no_error() {
    let world = World::new().await;
    world.append(1, 2).await;
    world.change_streams.split_shard(0, 2);
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.change_streams.remove_closed_shards();
    world.append(1, 1).await;
    world.append(2, 1).await;
    assert_eq!(world.index().await.unwrap().events, 2);
    world.check("the shards that were read are removed").await;
}

#[tokio::test]
async fn feed_that_starts_late_contains_the_remaining_records() {
    let world = World::new().await;
    world.append(1, 2).await;
    world.change_streams.split_shard(0, 2);
    world.append(2, 1).await;
    world.change_streams.trim_records();
    world.change_streams.remove_closed_shards();
    world.append(3, 2).await;
    assert_eq!(world.index().await.unwrap().events, 2);
}
