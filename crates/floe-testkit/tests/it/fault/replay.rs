//! The same seed repeats a run.

use floe_store::expr::KeyCondition;
use floe_store::op::*;
use floe_store::{Engine, Error};
use floe_testkit::fault::{Fault, FaultEngine, Faults, Lag};

use super::fixture::{TABLE, engine, key, put, thing};

fn all_faults(seed: u64) -> Faults {
    Faults::seeded(seed)
        .throttle(0.1)
        .conflict(0.1)
        .lost_before(0.1)
        .lost_after(0.1)
        .partial_batches(0.5)
        .index_lag(0.5, Lag::Operations(10))
        .stale_reads(0.5, Lag::Operations(10))
        .shard_splits(0.2)
        .repeated_records(0.2)
        .late_records(0.2)
}

/// The responses to a client, as text.
async fn run(engine: &FaultEngine) -> Vec<String> {
    let mut responses = Vec::new();
    for n in 0..400_u64 {
        let place = n * 7 % 10;
        let item = thing(place, n).with("color", "red").with("weight", n);
        let batch = BatchWriteItem::new()
            .put(TABLE, item.clone())
            .delete(TABLE, key(place + 20));
        let red = Query::new(TABLE, KeyCondition::partition("color", "red")).index("by_color");
        let write = TransactWriteItems::new([PutItem::new(TABLE, item.clone()).into()]);
        let get = GetItem::new(TABLE, key(place)).eventual();
        responses.push(match n % 6 {
            0 => format!("{:?}", put(engine, item).await),
            1 => format!("{:?}", engine.transact_write_items(write).await),
            2 => format!("{:?}", engine.batch_write_item(batch).await),
            3 => format!("{:?}", engine.get_item(get).await),
            4 => format!("{:?}", engine.query(red).await),
            _ => format!("{:?}", engine.scan(Scan::new(TABLE)).await),
        });
    }
    responses
}

#[tokio::test]
async fn same_seed_repeats_responses_and_log() {
    let (first, again) = (engine(all_faults(42)).await, engine(all_faults(42)).await);
    assert_eq!(run(&first).await, run(&again).await);
    assert_eq!(first.faults(), again.faults());
    assert!(first.faults().len() > 100);

    let other = engine(all_faults(43)).await;
    run(&other).await;
    assert_ne!(first.faults(), other.faults());
}

#[tokio::test]
async fn pause_does_not_change_later_faults() {
    let (whole, paused) = (engine(all_faults(1)).await, engine(all_faults(1)).await);
    let log = |engine: &FaultEngine| -> Vec<Fault> { engine.faults() };
    for engine in [&whole, &paused] {
        for n in 0..400 {
            if std::ptr::eq(engine, &paused) {
                match n {
                    100 => engine.pause(),
                    200 => engine.resume(),
                    _ => {}
                }
            }
            let _ = put(&**engine, thing(n, n)).await;
        }
    }
    let outside = |fault: &Fault| !(101..=200).contains(&fault.number);
    let expected: Vec<Fault> = log(&whole).into_iter().filter(outside).collect();
    assert_eq!(log(&paused), expected);
    assert!(expected.len() < log(&whole).len());
}

#[tokio::test]
async fn log_can_be_replayed_without_rates() {
    let random = engine(all_faults(42)).await;
    let responses = run(&random).await;
    let log = random.faults();
    let mut fixed = Faults::seeded(42)
        .index_lag(0.5, Lag::Operations(10))
        .stale_reads(0.0, Lag::Operations(10));
    for fault in &log {
        fixed = fixed.at(fault.number, fault.kind);
    }
    let replayed = engine(fixed).await;
    assert_eq!(run(&replayed).await, responses);
    assert_eq!(replayed.faults(), log);
}

#[tokio::test]
async fn fault_can_be_injected_by_operation_number() {
    use floe_testkit::fault::FaultKind;
    let engine = engine(Faults::seeded(1).at(3, FaultKind::LostAfter).throttle(0.0)).await;
    for n in 1..=5 {
        let response = put(&*engine, thing(n, n)).await;
        assert_eq!(matches!(response, Err(Error::OutcomeUnknown(_))), n == 3);
    }
}
