//! Where a reader begins, what it passes on, and where it ends.

use floe_store::Timestamp;
use floe_store::env::SeededRandom;

use super::*;
use crate::events::feed::ingester::Ingester;
use crate::events::feed::limits::EpochLimits;
use crate::events::feed::log::memory::{MemoryLog, Task, run_on};

const PARTITION: Partition = Partition::FIRST;

/// One event of a stream. Streams with even numbers are carts, the others orders.
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
    Ingester::new(log.without_trouble(), PARTITION, limits).unwrap()
}

async fn write(ingester: &mut Ingester<MemoryLog>, spans: Vec<Span>) -> Checkpoint {
    let taken = ingester.ingest(spans, Timestamp::default()).await;
    taken.unwrap().checkpoint
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

fn places(batches: &[FeedBatch]) -> Vec<String> {
    let place = |batch: &FeedBatch| batch.checkpoint.to_string();
    batches.iter().map(place).collect()
}

#[tokio::test]
async fn a_reader_goes_through_closed_epochs_to_the_tail() {
    let log = MemoryLog::new();
    let mut reader = reader(&log, Checkpoint::START);
    assert_eq!(reader.next().await.unwrap(), None);
    let mut ingester = ingester(&log, 2);
    for index in 0..5 {
        write(&mut ingester, vec![span(1, index), span(2, index)]).await;
    }
    let batches = rest(&mut reader).await;
    assert_eq!(places(&batches), ["0@1", "0@2", "1@1", "1@2", "2@1"]);
    for (index, batch) in (0..).zip(&batches) {
        assert_eq!(batch.spans, [span(1, index), span(2, index)]);
    }
    assert_eq!(reader.tail().await.unwrap(), reader.checkpoint());
    // The tail is where others go on to write.
    let end = write(&mut ingester, vec![span(1, 5)]).await;
    assert_eq!(places(&rest(&mut reader).await), ["2@2"]);
    assert_eq!(reader.checkpoint(), end);
}

#[tokio::test]
async fn the_tail_is_found_where_the_index_is_behind() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, 1);
    for index in 0..3 {
        write(&mut ingester, vec![span(1, index)]).await;
    }
    log.kept().snapshot = Default::default();
    let mut reader = Reader::at_tail(log.clone(), PARTITION).await.unwrap();
    assert_eq!(reader.checkpoint().to_string(), "3@0");
    assert_eq!(reader.next().await.unwrap(), None);
    write(&mut ingester, vec![span(1, 3)]).await;
    assert_eq!(rest(&mut reader).await.len(), 1);
}

#[tokio::test]
async fn a_checkpoint_at_or_behind_the_end_of_an_epoch_goes_on() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, 2);
    for index in 0..3 {
        write(&mut ingester, vec![span(1, index)]).await;
    }
    // Epoch 0 has two batches, and its end.
    for offset in [2, 3, 999_999] {
        let mut reader = reader(&log, Checkpoint::of(0, offset).unwrap());
        assert_eq!(places(&rest(&mut reader).await), ["1@1"], "{offset}");
    }
}

#[tokio::test]
async fn batches_that_filter_to_nothing_still_move_on() {
    let log = MemoryLog::new();
    let mut ingester = ingester(&log, 2);
    for id in 0..4 {
        write(&mut ingester, vec![span(id, 0)]).await;
    }
    let mut carts = reader(&log, Checkpoint::START).filter(Filter::default().category("Cart"));
    let batches = rest(&mut carts).await;
    assert_eq!(places(&batches), ["0@1", "0@2", "1@1", "1@2"]);
    let spans: Vec<_> = batches.into_iter().map(|batch| batch.spans).collect();
    assert_eq!(spans, [vec![span(0, 0)], vec![], vec![span(2, 0)], vec![]]);
}

/// Reads to the tail through a source that fails now and then, and begins anew from the last checkpoint now and then.
async fn read_with_trouble(log: MemoryLog, random: SeededRandom) -> Vec<FeedBatch> {
    let tail = Reader::at_tail(log.without_trouble(), PARTITION).await;
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
    let answer = std::rc::Rc::new(std::cell::RefCell::new(None));
    let given = answer.clone();
    let mut task: Task = Box::pin(async move {
        *given.borrow_mut() = Some(future.await);
    });
    while !run_on(&mut task) {}
    answer.take().unwrap()
}

#[test]
fn every_batch_is_told_once_from_wherever_one_begins() {
    for seed in 0..60 {
        let log = MemoryLog::with_trouble(seed);
        let random = SeededRandom::new(seed);
        let (log, random, along) = run(async move {
            let quiet = log.without_trouble();
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
            let mut told = [0; 5];
            for span in along.iter().flat_map(|batch| &batch.spans) {
                let id: usize = span.stream.id().parse().unwrap();
                assert_eq!(span.start, told[id]);
                told[id] = span.end();
            }
            assert_eq!(told, ends);
            for (place, batch) in along.iter().enumerate() {
                let mut reader = reader(&quiet, batch.checkpoint);
                assert_eq!(rest(&mut reader).await, along[place + 1..]);
            }
            (log, random, along)
        });
        let troubled = run(read_with_trouble(log, random));
        assert_eq!(troubled, along);
    }
}
