//! Start, filtering and end of a reader.

use floe_store::Timestamp;
use floe_store::env::SeededRandom;

use super::*;
use crate::events::feed::ingester::Ingester;
use crate::events::feed::limits::EpochLimits;
use crate::events::feed::log::memory::{MemoryLog, Task, poll_once};

const PARTITION: Partition = Partition::FIRST;

/// One event of a stream. Even ids are carts, odd ids are orders.
fn span(id: u64, index: u64) -> Span {
    let category = if id.is_multiple_of(2) {
        "Cart"
    } else {
        "Order"
    };
    let stream = StreamName::new(category, &id).unwrap();
    Span::new(stream, index, ["Happened"])
}

fn ingester(log: &MemoryLog, version_max: u64) -> Ingester<MemoryLog> {
    let limits = EpochLimits {
        version_max,
        ..EpochLimits::default()
    };
    Ingester::new(log.without_faults(), PARTITION, limits).unwrap()
}

async fn write(ingester: &mut Ingester<MemoryLog>, spans: Vec<Span>) -> Checkpoint {
    let outcome = ingester.ingest(spans, Timestamp::default()).await;
    outcome.unwrap().checkpoint
}

fn reader(log: &MemoryLog, checkpoint: Checkpoint) -> Reader<MemoryLog> {
    Reader::new(log.clone(), PARTITION, checkpoint)
}

async fn rest(reader: &mut Reader<MemoryLog>) -> Vec<FeedBatch> {
    let mut batches = Vec::new();
    while let Some(batch) = reader.next().await.unwrap() {
        assert_eq!(batch.checkpoint, reader.checkpoint());
        batches.push(batch);
    }
    batches
}

fn checkpoints(batches: &[FeedBatch]) -> Vec<String> {
    let checkpoint = |batch: &FeedBatch| batch.checkpoint.to_string();
    batches.iter().map(checkpoint).collect()
}

#[tokio::test]
async fn reader_continues_past_closed_epochs_to_the_tail() {
    let log = MemoryLog::new();
    let mut reader = reader(&log, Checkpoint::START);
    assert_eq!(reader.next().await.unwrap(), None);
    let mut ingester = ingester(&log, 2);
    for index in 0..5 {
        write(&mut ingester, vec![span(1, index), span(2, index)]).await;
    }
    let batches = rest(&mut reader).await;
    assert_eq!(checkpoints(&batches), ["0@1", "0@2", "1@1", "1@2", "2@1"]);
    for (index, batch) in (0..).zip(&batches) {
        assert_eq!(batch.spans, [span(1, index), span(2, index)]);
    }
    assert_eq!(reader.tail().await.unwrap(), reader.checkpoint());
    // Writers continue at the tail.
    let end = write(&mut ingester, vec![span(1, 5)]).await;
    assert_eq!(checkpoints(&rest(&mut reader).await), ["2@2"]);
    assert_eq!(reader.checkpoint(), end);
}

#[tokio::test]
async fn tail_is_found_if_the_index_is_behind() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, 1);
    for index in 0..3 {
        write(&mut ingester, vec![span(1, index)]).await;
    }
    log.state().snapshot = Default::default();
    let mut reader = Reader::at_tail(log.clone(), PARTITION).await.unwrap();
    assert_eq!(reader.checkpoint().to_string(), "3@0");
    assert_eq!(reader.next().await.unwrap(), None);
    write(&mut ingester, vec![span(1, 3)]).await;
    assert_eq!(rest(&mut reader).await.len(), 1);
}

#[tokio::test]
async fn checkpoint_at_the_end_of_an_epoch_continues_in_the_next() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, 2);
    for index in 0..3 {
        write(&mut ingester, vec![span(1, index)]).await;
    }
    // Epoch 0 has two batches and its end.
    for offset in [2, 3, 999_999] {
        let mut reader = reader(&log, Checkpoint::of(0, offset).unwrap());
        assert_eq!(checkpoints(&rest(&mut reader).await), ["1@1"], "{offset}");
    }
}

#[tokio::test]
async fn filtered_batches_advance_the_checkpoint() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, 2);
    for id in 0..4 {
        write(&mut ingester, vec![span(id, 0)]).await;
    }
    let mut carts = reader(&log, Checkpoint::START).filter(Filter::default().category("Cart"));
    let batches = rest(&mut carts).await;
    assert_eq!(checkpoints(&batches), ["0@1", "0@2", "1@1", "1@2"]);
    let spans: Vec<_> = batches.into_iter().map(|batch| batch.spans).collect();
    assert_eq!(spans, [vec![span(0, 0)], vec![], vec![span(2, 0)], vec![]]);
}

/// Reads to the tail through a source that sometimes fails, and sometimes restarts from the last checkpoint.
async fn read_with_faults(log: MemoryLog, random: SeededRandom) -> Vec<FeedBatch> {
    let tail = Reader::at_tail(log.without_faults(), PARTITION).await;
    let tail = tail.unwrap().checkpoint();
    let mut reader = reader(&log, Checkpoint::START);
    let mut batches = Vec::new();
    while reader.checkpoint() < tail {
        if let Ok(Some(batch)) = reader.next().await {
            batches.push(batch);
        }
        if random.below(10) == 0 {
            let last = batches.last();
            let saved = last.map_or(Checkpoint::START, |batch: &FeedBatch| batch.checkpoint);
            reader = self::reader(&log, saved);
        }
    }
    batches
}

fn run<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    let result = std::rc::Rc::new(std::cell::RefCell::new(None));
    let sender = result.clone();
    let mut task: Task = Box::pin(async move {
        *sender.borrow_mut() = Some(future.await);
    });
    while !poll_once(&mut task) {}
    result.take().unwrap()
}

#[test]
fn every_batch_is_returned_once_from_any_start() {
    for seed in 0..60 {
        let log = MemoryLog::with_faults(seed);
        let random = SeededRandom::new(seed);
        let (log, random, along) = run(async move {
            let quiet = log.without_faults();
            let mut ingester = ingester(&quiet, 1 + random.below(7));
            let mut follower = reader(&quiet, Checkpoint::START);
            let (mut along, mut ends) = (Vec::new(), [0; 5]);
            for _ in 0..random.below(40) {
                let id = random.below(5);
                let spans = vec![span(id, ends[id as usize])];
                ends[id as usize] += 1;
                write(&mut ingester, spans).await;
                if random.below(3) == 0 {
                    along.extend(rest(&mut follower).await);
                }
            }
            along.extend(rest(&mut follower).await);
            let mut read = [0; 5];
            for span in along.iter().flat_map(|batch| &batch.spans) {
                let id: usize = span.stream.id().parse().unwrap();
                assert_eq!(span.start, read[id]);
                read[id] = span.end();
            }
            assert_eq!(read, ends);
            for (position, batch) in along.iter().enumerate() {
                let mut reader = reader(&quiet, batch.checkpoint);
                assert_eq!(rest(&mut reader).await, along[position + 1..]);
            }
            (log, random, along)
        });
        let with_faults = run(read_with_faults(log, random));
        assert_eq!(with_faults, along);
    }
}
