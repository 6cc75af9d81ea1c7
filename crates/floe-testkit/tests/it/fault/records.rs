//! Repeated and late change records, always in order.

use floe_store::Engine;
use floe_store::op::*;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};

use super::fixture::{TABLE, count, engine, local, put, thing};

async fn start(engine: &FaultEngine) -> String {
    let table = engine.describe_table(TABLE.to_owned()).await.unwrap();
    let stream_arn = table.latest_stream.unwrap().arn;
    let describe = DescribeStream {
        stream_arn: stream_arn.clone(),
        ..DescribeStream::default()
    };
    let description = engine.describe_stream(describe).await.unwrap();
    let request = GetShardIterator {
        stream_arn,
        shard_id: description.shards[0].id.clone(),
        kind: IteratorKind::TrimHorizon,
    };
    engine.get_shard_iterator(request).await.unwrap()
}

/// The sequence numbers of the next page, and the iterator after it.
async fn page(engine: &FaultEngine, iterator: String, limit: usize) -> (Vec<String>, String) {
    let limit = Some(limit);
    let output = engine.get_records(GetRecords { iterator, limit }).await;
    let output = output.unwrap();
    let sequences = output.records.into_iter().map(|record| record.sequence);
    (sequences.collect(), output.next_iterator.unwrap())
}

async fn write(engine: &FaultEngine, count: u64) {
    for n in 0..count {
        put(engine, thing(n % 5, n)).await.unwrap();
    }
}

#[tokio::test]
async fn repeated_records_continue_from_the_start_of_an_earlier_page() {
    let engine = engine(Faults::seeded(1)).await;
    write(&engine, 6).await;
    let iterator = start(&engine).await;
    let (first, iterator) = page(&engine, iterator, 2).await;
    let (second, iterator) = page(&engine, iterator, 2).await;
    let repeat = || engine.script(Operation::GetRecords, FaultKind::RepeatedRecords);
    repeat().unwrap();
    let (again, iterator) = page(&engine, iterator, 2).await;
    assert!(again == first || again == second, "{again:?}");
    let (rest, _) = page(&engine, iterator, 100).await;
    let returned: Vec<String> = again.into_iter().chain(rest).collect();
    let all: Vec<String> = page(&engine, start(&engine).await, 100).await.0;
    assert!(
        all.ends_with(&returned) && returned.len() >= 4,
        "{returned:?} {all:?}"
    );
    assert_eq!(count(&engine, FaultKind::RepeatedRecords), 1);

    // A reader that has read nothing is not sent to a page of another reader.
    repeat().unwrap();
    let (fresh, _) = page(&engine, start(&engine).await, 1).await;
    assert_eq!(fresh, all[..1]);
    assert_eq!(count(&engine, FaultKind::RepeatedRecords), 1);
}

#[tokio::test]
async fn late_records_are_returned_with_later_pages() {
    let engine = engine(Faults::seeded(3)).await;
    write(&engine, 40).await;
    let mut iterator = start(&engine).await;
    let mut sizes = Vec::new();
    for _ in 0..9 {
        let late = engine.script(Operation::GetRecords, FaultKind::LateRecords);
        late.unwrap();
        let (returned, next) = page(&engine, iterator, 3).await;
        sizes.push(returned.len());
        iterator = next;
    }
    assert!(sizes.iter().all(|size| *size < 4), "{sizes:?}");
    assert!(sizes.contains(&0) && sizes.contains(&2), "{sizes:?}");
    let (rest, _) = page(&engine, iterator, 100).await;
    assert_eq!(sizes.iter().sum::<usize>() + rest.len(), 40);
}

/// A reader that drops repeated records gets every record once and in order.
#[tokio::test]
async fn records_are_never_skipped_or_out_of_order() {
    for seed in 0..10 {
        let faults = || {
            Faults::seeded(seed)
                .repeated_records(0.2)
                .late_records(0.3)
                .only_on([Operation::GetRecords])
        };
        for engine in [engine(faults()).await, local(faults()).await] {
            write(&engine, 300).await;
            let mut iterator = start(&engine).await;
            let (mut known, mut returned): (Vec<String>, usize) = (Vec::new(), 0);
            while known.len() < 300 {
                let (sequences, next) = page(&engine, iterator, 7).await;
                assert!(sequences.is_sorted(), "{sequences:?}");
                returned += sequences.len();
                for sequence in sequences {
                    if known.last().is_none_or(|last| *last < sequence) {
                        known.push(sequence);
                    } else {
                        assert!(known.contains(&sequence), "seed={seed}: {sequence}");
                    }
                }
                iterator = next;
            }
            engine.pause();
            let (all, _) = page(&engine, start(&engine).await, 1000).await;
            assert_eq!(known, all, "seed={seed}");
            assert!(returned > 300, "seed={seed}: no record was repeated");
            assert!(count(&engine, FaultKind::LateRecords) > 3, "seed={seed}");
        }
    }
}
