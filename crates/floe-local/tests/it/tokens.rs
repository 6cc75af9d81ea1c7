//! Requests with a token apply once, however often they are sent.

use std::time::Duration;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::expr::{Condition, Update};
use floe_store::op::{
    PutItem, ReturnValues, TransactWriteItems, UpdateItem, WriteItem, WriteItemOutput,
};
use floe_store::table::KeyKind;
use floe_store::{Engine, Error, Item, TableDef};

use crate::common::{HOUR, Owned, memory, open, open_at};

fn counters() -> TableDef {
    TableDef::builder("Counters", "id", KeyKind::S)
        .build()
        .unwrap()
}

fn key() -> Item {
    Item::new().with("id", "a")
}

fn add(amount: i64) -> UpdateItem {
    UpdateItem::new("Counters", key(), Update::new().add("n", amount))
}

fn transaction(token: &str) -> TransactWriteItems {
    TransactWriteItems::new([add(1).into()]).token(token)
}

#[tokio::test]
async fn a_repeated_transaction_is_applied_once_and_costs_reads() {
    let store = memory();
    store.create(counters()).await;
    let mut request = transaction("t-1");
    request.return_capacity = ReturnConsumedCapacity::Total;
    let first = store
        .engine
        .transact_write_items(request.clone())
        .await
        .unwrap();
    let again = store.engine.transact_write_items(request).await.unwrap();
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 1)));
    assert_eq!(first.consumed[0].write.as_f64(), 2.0);
    assert_eq!(again.consumed[0].write.as_f64(), 0.0);
    assert_eq!(again.consumed[0].read.as_f64(), 2.0);
}

#[tokio::test]
async fn a_token_of_another_request_is_refused() {
    let store = memory();
    store.create(counters()).await;
    store
        .engine
        .transact_write_items(transaction("t-1"))
        .await
        .unwrap();
    let other = TransactWriteItems::new([add(2).into()]).token("t-1");
    let refused = store.engine.transact_write_items(other).await;
    assert_eq!(refused, Err(Error::IdempotentParameterMismatch));
    // A single write has tokens of its own.
    store
        .engine
        .write_item(add(5).token("t-1").into())
        .await
        .unwrap();
    let refused = store.engine.write_item(add(6).token("t-1").into()).await;
    assert_eq!(refused, Err(Error::IdempotentParameterMismatch));
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 6)));
}

#[tokio::test]
async fn a_repeated_write_answers_what_the_first_did() {
    let store = memory();
    store.create(counters()).await;
    let write = || -> WriteItem {
        add(1)
            .token("w-1")
            .return_values(ReturnValues::AllNew)
            .into()
    };
    let answer = |n: i64| WriteItemOutput {
        attributes: Some(key().with("n", n)),
        ..Default::default()
    };
    assert_eq!(store.engine.write_item(write()).await, Ok(answer(1)));
    store.engine.write_item(add(10).into()).await.unwrap();
    assert_eq!(store.engine.write_item(write()).await, Ok(answer(1)));
    assert_eq!(
        store.get("Counters", key()).await,
        Some(key().with("n", 11))
    );
}

#[tokio::test]
async fn tokens_outlive_a_restart_and_are_forgotten_after_ten_minutes() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create(counters()).await;
    store
        .engine
        .transact_write_items(transaction("t-1"))
        .await
        .unwrap();
    let clock = store.clock.clone();
    drop(store);

    let store = open_at(dir.path(), clock.clone());
    clock.advance(Duration::from_secs(599));
    store.settle();
    store
        .engine
        .transact_write_items(transaction("t-1"))
        .await
        .unwrap();
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 1)));

    clock.advance(Duration::from_secs(1));
    store
        .engine
        .transact_write_items(transaction("t-1"))
        .await
        .unwrap();
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 2)));
    clock.advance(Duration::from_secs(601));
    store.settle();
    store
        .engine
        .transact_write_items(transaction("t-1"))
        .await
        .unwrap();
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 3)));
}

#[tokio::test]
async fn failures_are_not_remembered() {
    let store = memory();
    store.create(counters()).await;
    let put = || {
        let exists = Condition::attribute_exists("id");
        let put = PutItem::new("Counters", key().with("n", 9)).condition(exists);
        WriteItem::from(put.token("w-1"))
    };
    let failed = store.engine.write_item(put()).await;
    assert_eq!(failed, Err(Error::ConditionalCheckFailed { item: None }));
    store.engine.write_item(add(1).into()).await.unwrap();
    store.engine.write_item(put()).await.unwrap();
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 9)));
}

/// Sends transactions with the tokens of these numbers, many at once.
async fn send_all(store: &Owned, numbers: std::ops::Range<u32>) {
    let numbers: Vec<u32> = numbers.collect();
    for some in numbers.chunks(512) {
        let writes = some.iter().map(|n| {
            store
                .engine
                .transact_write_items(transaction(&format!("token-{n}")))
        });
        // Each is in the queue of the committer once it was polled.
        let mut writes: Vec<_> = writes.collect();
        std::future::poll_fn(|context| {
            writes.retain_mut(|write| write.as_mut().poll(context).is_pending());
            match writes.is_empty() {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    }
}

#[tokio::test]
async fn more_tokens_than_are_read_at_the_start_outlive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create(counters()).await;
    send_all(&store, 0..12_000).await;
    let clock = store.clock.clone();
    drop(store);

    let store = open_at(dir.path(), clock.clone());
    // In this slot of time, in a later one, and new ones beside them.
    send_all(&store, 11_990..12_010).await;
    clock.advance(Duration::from_secs(400));
    send_all(&store, 0..20).await;
    send_all(&store, 12_000..12_010).await;
    assert_eq!(
        store.get("Counters", key()).await,
        Some(key().with("n", 12_010))
    );
}

#[tokio::test]
async fn token_is_remembered_when_the_clock_goes_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create(counters()).await;
    let clock = store.clock.clone();
    let send = async |store: &Owned| {
        let sent = store.engine.transact_write_items(transaction("t-1")).await;
        sent.unwrap();
    };
    send(&store).await;
    for minutes in [10, 60, 60 * 24 * 30] {
        clock.set_back(Duration::from_secs(60 * minutes));
        send(&store).await;
        store.settle();
        send(&store).await;
    }
    drop(store);
    // Also when it goes back while the store is closed.
    clock.set_back(Duration::from_secs(3600));
    let store = open_at(dir.path(), clock.clone());
    send(&store).await;
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 1)));
    // The time of tokens goes on with the clock, and they are forgotten in the end.
    clock.advance(Duration::from_secs(20 * 60));
    store.settle();
    send(&store).await;
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 2)));
}

#[tokio::test]
async fn token_is_remembered_when_the_clock_is_set_back_and_right_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    store.create(counters()).await;
    let clock = store.clock.clone();
    let mut sent = 0;
    for step in [660, 3600, 60 * 60 * 24] {
        for is_restarted in [false, true] {
            let step = Duration::from_secs(step);
            sent += 1;
            let token = format!("t-{sent}");
            let send = async |store: &Owned| {
                let sent = store.engine.transact_write_items(transaction(&token)).await;
                sent.unwrap();
            };
            clock.set_back(step);
            send(&store).await;
            // Used while the clock is behind, and again when it is right, or even ahead: but over a restart, a clock that
            // is ahead is one that went on.
            let times = if is_restarted { 1 } else { 2 };
            for _ in 0..times {
                clock.set_ahead(step);
                clock.advance(Duration::from_secs(200));
                if is_restarted {
                    drop(store);
                    store = open_at(dir.path(), clock.clone());
                }
                store.settle();
                send(&store).await;
            }
            let found = store.get("Counters", key()).await;
            assert_eq!(
                found,
                Some(key().with("n", sent)),
                "{step:?} {is_restarted}"
            );
        }
    }
}

#[tokio::test]
async fn write_token_is_remembered_when_the_clock_is_set_ahead() {
    let store = memory();
    store.create(counters()).await;
    for _ in 0..2 {
        let write = add(1).token("w-1");
        store.engine.write_item(write.into()).await.unwrap();
        store.clock.set_ahead(HOUR);
    }
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 1)));
}
