//! Where the feed comes from: shards that split, close, expire and are trimmed, and streams that are switched on again.
//!
//! Whatever happens to them, and wherever an indexer dies, the feed tells every event once and in the order of its
//! stream; or the indexer says that it cannot.

mod cloud;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::support::no_time;
use cloud::Cloud;
use floe::events::feed::{
    Checkpoint, EpochLimits, IndexerOptions, IndexerSummary, Partitions, Reader, TableLog,
};
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, StreamName};
use floe::{Db, Error, ErrorKind};
use floe_store::Env;
use floe_store::env::SeededRandom;
use no_time::NoTime;

struct World {
    cloud: Arc<Cloud>,
    store: EventStore,
    options: IndexerOptions,
}

impl World {
    /// A feed of two partitions with small epochs, of streams that calve often.
    async fn new() -> Self {
        let cloud = Arc::new(Cloud::new("shop"));
        let db = Db::with_parts(cloud.clone(), Env::system(), Arc::new(NoTime));
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
            cloud,
            store,
            options,
        }
    }

    async fn append(&self, id: u64, count: u64) {
        let stream = StreamName::new("Cart", &id).unwrap();
        let events = (0..count).map(|_| EventData::new("Added", "{}"));
        let appended = self.store.append(&stream, Expected::Any, events);
        appended.await.unwrap();
        self.cloud.spread().await;
    }

    async fn index(&self) -> Result<IndexerSummary, Error> {
        self.index_with(self.options.clone()).await
    }

    async fn index_with(&self, options: IndexerOptions) -> Result<IndexerSummary, Error> {
        let mut indexer = self.store.indexer(options).unwrap();
        indexer.run_until_caught_up().await
    }

    /// Lets an indexer run for so many turns. `true` if it has caught up by then.
    async fn index_for(&self, options: IndexerOptions, turns: u64) -> bool {
        let mut indexer = self.store.indexer(options).unwrap();
        tokio::select! {
            biased;
            indexed = indexer.run_until_caught_up() => {
                indexed.unwrap();
                true
            }
            () = yield_for(turns) => false,
        }
    }

    /// What the feed tells of each stream. Fails where it tells anything twice, or not in order.
    async fn told(&self) -> BTreeMap<StreamName, u64> {
        let index = self.store.feed_index();
        let mut told = BTreeMap::new();
        for partition in partitions().all() {
            let log = TableLog::new(self.store.db().clone(), index.options().clone());
            let mut reader = Reader::new(log, partition, Checkpoint::START);
            while let Some(batch) = reader.next().await.unwrap() {
                for span in batch.spans {
                    let next: &mut u64 = told.entry(span.stream.clone()).or_default();
                    assert_eq!(span.start, *next, "{}", span.stream);
                    *next = span.end();
                }
            }
        }
        told
    }

    async fn written(&self) -> BTreeMap<StreamName, u64> {
        let mut written = BTreeMap::new();
        for stream in self.store.streams(None).collect().await.unwrap() {
            let version = self.store.version(&stream).await.unwrap();
            written.insert(stream, version);
        }
        written
    }

    /// The feed is the streams.
    async fn check(&self, context: &str) {
        assert_eq!(self.told().await, self.written().await, "{context}");
    }
}

fn partitions() -> Partitions {
    Partitions::new(NonZeroU32::new(2).unwrap())
}

async fn yield_for(turns: u64) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

/// Two shards of which each has split, in two streams.
async fn family() -> World {
    let world = World::new().await;
    world.cloud.go_on(0, 2);
    for round in 0..3 {
        for id in 0..4 {
            world.append(id, 1 + (id + round) % 3).await;
        }
        match round {
            0 => world.cloud.go_on(0, 2),
            1 => world.cloud.switch_on_again(),
            _ => world.cloud.go_on(0, 1),
        }
    }
    world
}

/// It is dropped at each await in turn. Who comes next brings all that is missing, and nothing twice.
#[tokio::test]
async fn wherever_an_indexer_dies_the_next_one_goes_on() {
    let mut deaths = 0;
    loop {
        let world = family().await;
        let is_done = world.index_for(world.options.clone(), deaths).await;
        world.append(1, 1).await;
        // The one after it dies as well, a little further on.
        world.index_for(world.options.clone(), deaths + 3).await;
        world.index().await.unwrap();
        world.check(&format!("death after {deaths} turns")).await;
        assert_eq!(world.index().await.unwrap(), IndexerSummary::default());
        if is_done {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 100, "there are more awaits than {deaths}");
}

/// Shards split, go on, end and are forgotten; streams are switched on again. Indexers under two names die at any
/// moment, and several run at once.
#[tokio::test]
async fn whatever_becomes_of_the_shards_the_feed_is_the_streams() {
    for seed in 0..25 {
        let random = SeededRandom::new(seed);
        let world = World::new().await;
        let named = [world.options.clone(), world.options.clone().name("other")];
        for _ in 0..40 {
            let of_open = random.below(world.cloud.open() as u64) as usize;
            match random.below(12) {
                0 => world.cloud.go_on(of_open, 1),
                1 => world.cloud.go_on(of_open, 2),
                2 => world.cloud.go_on(of_open, 3),
                3 => world.cloud.switch_on_again(),
                4 => {
                    // What was read may be forgotten.
                    for options in &named {
                        world.index_with(options.clone()).await.unwrap();
                    }
                    world.cloud.forget_closed();
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

/// An indexer that keeps running sees shards and streams come and go.
#[tokio::test]
async fn an_indexer_follows_the_shards_without_being_started_again() {
    for seed in 0..10 {
        let random = SeededRandom::new(seed);
        let world = World::new().await;
        let mut indexer = world.store.indexer(world.options.clone()).unwrap();
        for _ in 0..30 {
            let of_open = random.below(world.cloud.open() as u64) as usize;
            match random.below(8) {
                0 => world.cloud.go_on(of_open, 2),
                1 => world.cloud.switch_on_again(),
                2 => {
                    indexer.run_until_caught_up().await.unwrap();
                    world.cloud.forget_closed();
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
async fn a_stream_that_was_switched_on_again_is_read_after_the_one_before() {
    let world = World::new().await;
    for _ in 0..4 {
        for _ in 0..5 {
            world.append(1, 1).await;
        }
        world.cloud.switch_on_again();
    }
    let indexed = world.index().await.unwrap();
    assert_eq!(indexed.events, 20);
    world.check("four streams").await;
    world.cloud.forget_closed();
    world.append(1, 1).await;
    assert_eq!(world.index().await.unwrap().events, 1);
    world.check("the streams before are gone").await;
}

fn is_missing(indexed: Result<IndexerSummary, Error>, words: &str) {
    let error = indexed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingEvents, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

/// What was trimmed before it was read: the ways in which that shows.
#[tokio::test]
async fn records_that_are_gone_before_they_were_read_are_told() {
    let shard =
        "unread change records may have been trimmed: shard=2026-01-01T00:00:00.000/shardId-";

    // In a shard that was read in part.
    let world = World::new().await;
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.cloud.trim();
    world.append(3, 1).await;
    is_missing(
        world.index().await,
        &format!("{shard}00000000000000000001 position=After("),
    );

    // With the shard itself, of which there is a child.
    let world = World::new().await;
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.cloud.go_on(0, 1);
    world.cloud.forget_closed();
    world.append(3, 1).await;
    is_missing(
        world.index().await,
        &format!("{shard}00000000000000000001 position=After("),
    );

    // At the beginning of a child whose parent was read to its end.
    let world = World::new().await;
    world.append(1, 2).await;
    world.cloud.go_on(0, 1);
    world.index().await.unwrap();
    world.append(1, 1).await;
    world.cloud.go_on(0, 1);
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.cloud.go_on(0, 1);
    world.append(2, 2).await;
    world.cloud.trim();
    world.append(3, 1).await;
    is_missing(world.index().await, shard);

    // A whole stream.
    let world = World::new().await;
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.append(2, 2).await;
    world.cloud.switch_on_again();
    world.cloud.forget_closed();
    world.append(3, 1).await;
    is_missing(
        world.index().await,
        &format!("{shard}00000000000000000001 position=After("),
    );
}

/// The streams still have what their records told, so who goes on brings it where it is missed.
#[tokio::test]
async fn who_goes_on_without_them_tells_what_the_streams_still_have() {
    let world = World::new().await;
    world.append(1, 2).await;
    world.append(2, 1).await;
    world.index().await.unwrap();
    world.append(1, 3).await;
    world.append(2, 1).await;
    world.append(3, 5).await;
    world.cloud.trim();
    world.append(1, 1).await;
    assert!(world.index().await.is_err());
    let accepting = world.options.clone().accept_trimmed();
    let indexed = world.index_with(accepting).await.unwrap();
    // Of the others nobody knows, until something is appended to them.
    assert_eq!(indexed.events, 4);
    let told = world.told().await;
    let name = |id: u64| StreamName::new("Cart", &id).unwrap();
    assert_eq!(told, [(name(1), 6), (name(2), 1)].into());
    world.append(2, 1).await;
    is_missing(
        world.index().await,
        "the feed would skip events: stream=Cart-2 expected=1 found=2",
    );
    let accepting = world.options.clone().accept_trimmed();
    assert_eq!(world.index_with(accepting).await.unwrap().events, 2);
    assert_eq!(world.told().await.get(&name(2)), Some(&3));
}

#[tokio::test]
async fn what_was_read_may_go() {
    let world = World::new().await;
    world.append(1, 2).await;
    world.cloud.go_on(0, 2);
    world.append(1, 2).await;
    world.index().await.unwrap();
    world.cloud.forget_closed();
    world.append(1, 1).await;
    world.append(2, 1).await;
    assert_eq!(world.index().await.unwrap().events, 2);
    world.check("what was read is gone").await;
}

/// A feed that is begun late tells of what is left, as it says of itself.
#[tokio::test]
async fn a_feed_that_is_begun_late_begins_with_what_is_left() {
    let world = World::new().await;
    world.append(1, 2).await;
    world.cloud.go_on(0, 2);
    world.append(2, 1).await;
    world.cloud.trim();
    world.cloud.forget_closed();
    world.append(3, 2).await;
    assert_eq!(world.index().await.unwrap().events, 2);
}
