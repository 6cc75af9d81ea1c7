//! Streams whose shards split while they are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use floe_local::{LocalEngine, Options};
use floe_store::env::SeededRandom;
use floe_store::op::*;
use floe_store::{Engine, Error};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};

use floe_testkit::time::TestEnv;

use super::fixture::{TABLE, count, engine, local, put, thing, things};

async fn arn(engine: &FaultEngine) -> String {
    let table = engine.describe_table(TABLE.to_owned()).await.unwrap();
    table.latest_stream.unwrap().arn
}

async fn shards(engine: &FaultEngine, arn: &str, page: Option<usize>) -> Vec<Shard> {
    let mut request = DescribeStream {
        stream_arn: arn.to_owned(),
        limit: page,
        ..DescribeStream::default()
    };
    let mut shards = Vec::new();
    loop {
        let response = engine.describe_stream(request.clone()).await.unwrap();
        shards.extend(response.shards);
        match response.last_shard_id {
            None => return shards,
            last => request.start_after = last,
        }
    }
}

async fn iterator(engine: &FaultEngine, arn: &str, shard: &str, kind: IteratorKind) -> String {
    let request = GetShardIterator {
        stream_arn: arn.to_owned(),
        shard_id: shard.to_owned(),
        kind,
    };
    engine.get_shard_iterator(request).await.unwrap()
}

async fn records(engine: &FaultEngine, iterator: String, limit: usize) -> GetRecordsOutput {
    let request = GetRecords {
        iterator,
        limit: Some(limit),
    };
    engine.get_records(request).await.unwrap()
}

/// Reads a stream as a consumer should: parents to their end, then their children.
#[derive(Default)]
struct Consumer {
    open: HashMap<String, String>,
    done: BTreeSet<String>,
    seen: Vec<ChangeRecord>,
}

impl Consumer {
    async fn step(&mut self, engine: &FaultEngine, arn: &str, random: &SeededRandom) {
        for shard in shards(engine, arn, Some(10 + random.below(90) as usize)).await {
            let is_ready = shard
                .parent_id
                .is_none_or(|parent| self.done.contains(&parent));
            if is_ready && !self.done.contains(&shard.id) && !self.open.contains_key(&shard.id) {
                let start = iterator(engine, arn, &shard.id, IteratorKind::TrimHorizon).await;
                self.open.insert(shard.id, start);
            }
        }
        for (shard, iterator) in std::mem::take(&mut self.open) {
            let output = records(engine, iterator, 1 + random.below(5) as usize).await;
            self.seen.extend(output.records);
            match output.next_iterator {
                Some(next) => drop(self.open.insert(shard, next)),
                None => drop(self.done.insert(shard)),
            }
        }
    }
}

async fn all_records(engine: &FaultEngine, arn: &str) -> Vec<ChangeRecord> {
    let describe = DescribeStream {
        stream_arn: arn.to_owned(),
        ..DescribeStream::default()
    };
    let inner = engine.inner();
    let mut all = Vec::new();
    for shard in inner.describe_stream(describe).await.unwrap().shards {
        let request = GetShardIterator {
            stream_arn: arn.to_owned(),
            shard_id: shard.id,
            kind: IteratorKind::TrimHorizon,
        };
        let mut iterator = inner.get_shard_iterator(request).await.ok();
        while let Some(text) = iterator {
            let read = GetRecords {
                iterator: text,
                limit: None,
            };
            let output = inner.get_records(read).await.unwrap();
            let is_end = output.records.is_empty();
            all.extend(output.records);
            iterator = output.next_iterator.filter(|_| !is_end);
        }
    }
    all
}

fn by_key(records: &[ChangeRecord]) -> BTreeMap<String, Vec<String>> {
    let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in records {
        let key = format!("{:?}", record.keys);
        by_key.entry(key).or_default().push(record.sequence.clone());
    }
    by_key
}

/// Writes and reads a stream alternately, and compares the records read with all records.
async fn consume(engine: &FaultEngine, seed: u64) {
    let arn = arn(engine).await;
    let random = SeededRandom::new(seed);
    let mut consumer = Consumer::default();
    for n in 0..300 {
        put(engine, thing(random.below(15), n)).await.unwrap();
        if random.below(4) == 0 {
            consumer.step(engine, &arn, &random).await;
        }
    }
    let all = all_records(engine, &arn).await;
    assert_eq!(all.len(), 300);
    let mut idle = 0;
    while consumer.seen.len() < all.len() {
        let before = (consumer.seen.len(), consumer.done.len());
        consumer.step(engine, &arn, &random).await;
        let is_idle = before == (consumer.seen.len(), consumer.done.len());
        idle = if is_idle { idle + 1 } else { 0 };
        assert!(
            idle < 20,
            "seed={seed} seen={} of {}",
            consumer.seen.len(),
            all.len()
        );
    }
    assert_eq!(by_key(&consumer.seen), by_key(&all), "seed={seed}");
    let shards = shards(engine, &arn, None).await;
    assert_eq!(shards.iter().filter(|s| s.parent_id.is_none()).count(), 1);
}

#[tokio::test]
async fn consumer_gets_every_record_once_and_in_order_despite_splits() {
    let mut splits = 0;
    for seed in 0..10 {
        let faults = || Faults::seeded(seed).shard_splits(0.1);
        for engine in [engine(faults()).await, local(faults()).await] {
            consume(&engine, seed).await;
            splits += count(&engine, FaultKind::ShardSplit);
        }
    }
    assert!(splits > 200, "splits={splits}");
}

/// The engine's own shards are replaced after some hours, and their records are trimmed after a day. Virtual shards
/// continue below all virtual parents, and a shard without remaining records ends.
#[tokio::test]
async fn virtual_shards_follow_the_engine_shards_and_their_trimming() {
    let test = TestEnv::seeded(1);
    let inner =
        LocalEngine::memory_with(Options::new().env(test.env.clone()).background(false)).unwrap();
    let inner = Arc::new(inner);
    let engine = FaultEngine::new(inner.clone(), Faults::seeded(1).shard_splits(0.3));
    engine
        .create_table(CreateTable::from(things()))
        .await
        .unwrap();
    let arn = arn(&engine).await;
    let random = SeededRandom::new(1);
    let mut consumer = Consumer::default();
    for n in 0..100 {
        put(&engine, thing(random.below(10), n)).await.unwrap();
        test.advance(Duration::from_secs(15 * 60));
        consumer.step(&engine, &arn, &random).await;
        while inner.run_background_once().unwrap() {}
    }
    for _ in 0..20 {
        consumer.step(&engine, &arn, &random).await;
    }
    assert_eq!(
        consumer.seen.len(),
        100,
        "a consumer that keeps up gets every record"
    );
    assert!(
        by_key(&consumer.seen)
            .values()
            .all(|sequences| sequences.is_sorted())
    );

    let left = all_records(&engine, &arn).await;
    assert!((80..100).contains(&left.len()), "left={}", left.len());
    let mut late = Consumer::default();
    let mut steps = 0;
    while late.seen.len() < left.len() && steps < 500 {
        late.step(&engine, &arn, &random).await;
        steps += 1;
    }
    assert_eq!(
        by_key(&late.seen),
        by_key(&left),
        "a late consumer gets the remaining records"
    );
    assert!(late.done.len() > 5);
}

/// A consumer that does not wait for parents gets changes of an item out of order: splits really change the order.
#[tokio::test]
async fn reading_children_first_breaks_the_order() {
    let engine = engine(Faults::seeded(1)).await;
    let arn = arn(&engine).await;
    put(&*engine, thing(1, 1)).await.unwrap();
    engine
        .script(Operation::DescribeStream, FaultKind::ShardSplit)
        .unwrap();
    shards(&engine, &arn, None).await;
    put(&*engine, thing(1, 2)).await.unwrap();
    let mut seen = Vec::new();
    for shard in shards(&engine, &arn, None).await.iter().rev() {
        let start = iterator(&engine, &arn, &shard.id, IteratorKind::TrimHorizon).await;
        seen.extend(records(&engine, start, 10).await.records);
    }
    let sequences: Vec<_> = seen.iter().map(|record| &record.sequence).collect();
    assert_eq!(sequences.len(), 2);
    assert!(sequences[0] > sequences[1]);
}

#[tokio::test]
async fn children_start_after_the_end_of_a_split_shard() {
    let engine = engine(Faults::seeded(2)).await;
    let arn = arn(&engine).await;
    for n in 0..10 {
        put(&*engine, thing(n, n)).await.unwrap();
    }
    let root = shards(&engine, &arn, None).await[0].clone();
    let reader = iterator(&engine, &arn, &root.id, IteratorKind::TrimHorizon).await;
    let latest = iterator(&engine, &arn, &root.id, IteratorKind::Latest).await;
    let first = records(&engine, reader, 4).await;
    engine
        .script(Operation::GetRecords, FaultKind::ShardSplit)
        .unwrap();
    let second = records(&engine, first.next_iterator.unwrap(), 4).await;
    for n in 10..30 {
        put(&*engine, thing(n, n)).await.unwrap();
    }
    // The current reader reads the parent to its end.
    let third = records(&engine, second.next_iterator.unwrap(), 4).await;
    assert_eq!((third.records.len(), third.next_iterator), (2, None));
    // A reader at the tip is sent on to the children.
    let news = records(&engine, latest, 10).await;
    assert_eq!((news.records.len(), news.next_iterator), (0, None));

    let all = shards(&engine, &arn, None).await;
    let parent = all.iter().find(|s| s.id == root.id).unwrap();
    let end = parent.ending_sequence.clone().unwrap();
    assert_eq!(end, third.records.last().unwrap().sequence);
    let children: Vec<&Shard> = all
        .iter()
        .filter(|s| s.parent_id.as_ref() == Some(&root.id))
        .collect();
    assert!((1..=2).contains(&children.len()));
    let mut found = 0;
    for child in children {
        assert!(child.starting_sequence > end && child.ending_sequence.is_none());
        let start = iterator(&engine, &arn, &child.id, IteratorKind::TrimHorizon).await;
        let news = records(&engine, start, 100).await;
        assert!(news.next_iterator.is_some());
        found += news.records.len();
        let latest = iterator(&engine, &arn, &child.id, IteratorKind::Latest).await;
        assert_eq!(records(&engine, latest, 100).await.records, []);
        if let Some(last) = news.records.last() {
            let sequence = last.sequence.clone();
            let at = IteratorKind::AtSequenceNumber(sequence.clone());
            let again = iterator(&engine, &arn, &child.id, at).await;
            assert_eq!(records(&engine, again, 1).await.records.first(), Some(last));
            let after = IteratorKind::AfterSequenceNumber(sequence);
            let behind = iterator(&engine, &arn, &child.id, after).await;
            assert_eq!(records(&engine, behind, 1).await.records, []);
        }
    }
    assert_eq!(found, 20);
}

#[tokio::test]
async fn shards_are_described_in_pages() {
    let engine = engine(Faults::seeded(3)).await;
    let arn = arn(&engine).await;
    for n in 0..30 {
        put(&*engine, thing(n, n)).await.unwrap();
        engine
            .script(Operation::DescribeStream, FaultKind::ShardSplit)
            .unwrap();
        shards(&engine, &arn, Some(100)).await;
    }
    let all = shards(&engine, &arn, None).await;
    assert!(all.len() > 30);
    assert_eq!(shards(&engine, &arn, Some(7)).await, all);
    let mut known = BTreeSet::new();
    for shard in &all {
        assert!(
            shard
                .parent_id
                .as_ref()
                .is_none_or(|parent| known.contains(parent))
        );
        known.insert(shard.id.clone());
    }
}

#[tokio::test]
async fn unknown_shards_and_streams_are_not_found() {
    let engine = engine(Faults::seeded(4).shard_splits(1.0)).await;
    let arn = arn(&engine).await;
    put(&*engine, thing(1, 1)).await.unwrap();
    let request = |arn: &str, shard: &str| GetShardIterator {
        stream_arn: arn.to_owned(),
        shard_id: shard.to_owned(),
        kind: IteratorKind::TrimHorizon,
    };
    let shard = format!("{}.9", shards(&engine, &arn, None).await[0].id);
    let response = engine.get_shard_iterator(request(&arn, &shard)).await;
    assert!(
        matches!(response, Err(Error::ResourceNotFound(_))),
        "{response:?}"
    );
    let elsewhere = format!("{arn}0");
    let response = engine.get_shard_iterator(request(&elsewhere, &shard)).await;
    assert!(
        matches!(response, Err(Error::ResourceNotFound(_))),
        "{response:?}"
    );
    let nowhere = GetRecords {
        iterator: "nowhere".to_owned(),
        limit: None,
    };
    assert!(engine.get_records(nowhere).await.is_err());
}
