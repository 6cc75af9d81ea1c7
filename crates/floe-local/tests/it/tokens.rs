//! Requests with an idempotency token are applied once, even if they are sent repeatedly.

use std::time::Duration;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::expr::{Condition, Update};
use floe_store::op::{
    PutItem, ReturnValues, TransactWriteItems, UpdateItem, WriteItem, WriteItemOutput,
};
use floe_store::table::KeyKind;
use floe_store::{Engine, Error, Item, TableDef};

use crate::common::{HOUR, TestStore, memory, open, open_at};

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
async fn repeated_transaction_is_applied_once_and_costs_reads() {
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
async fn token_of_another_request_is_rejected() {
    let store = memory();
    store.create(counters()).await;
    store
        .engine
        .transact_write_items(transaction("t-1"))
        .await
        .unwrap();
    let other = TransactWriteItems::new([add(2).into()]).token("t-1");
    let rejected = store.engine.transact_write_items(other).await;
    assert_eq!(rejected, Err(Error::IdempotentParameterMismatch));
    // Tokens of single writes are separate from those of transactions.
    store
        .engine
        .write_item(add(5).token("t-1").into())
        .await
        .unwrap();
    let rejected = store.engine.write_item(add(6).token("t-1").into()).await;
    assert_eq!(rejected, Err(Error::IdempotentParameterMismatch));
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 6)));
}

#[tokio::test]
async fn repeated_write_returns_the_first_response() {
    let store = memory();
    store.create(counters()).await;
    let write = || -> WriteItem {
        add(1)
            .token("w-1")
            .return_values(ReturnValues::AllNew)
            .into()
    };
    let expected = |n: i64| WriteItemOutput {
        attributes: Some(key().with("n", n)),
        ..Default::default()
    };
    assert_eq!(store.engine.write_item(write()).await, Ok(expected(1)));
    store.engine.write_item(add(10).into()).await.unwrap();
    assert_eq!(store.engine.write_item(write()).await, Ok(expected(1)));
    assert_eq!(
        store.get("Counters", key()).await,
        Some(key().with("n", 11))
    );
}

#[tokio::test]
async fn tokens_survive_a_restart_and_expire_after_ten_minutes() {
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
    store.run_background();
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
    store.run_background();
    store
        .engine
        .transact_write_items(transaction("t-1"))
        .await
        .unwrap();
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 3)));
}

#[tokio::test]
async fn failed_requests_do_not_use_up_their_tokens() {
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

/// Sends transactions with these token numbers concurrently.
async fn send_all(store: &TestStore, numbers: std::ops::Range<u32>) {
    let numbers: Vec<u32> = numbers.collect();
    for some in numbers.chunks(512) {
        let writes = some.iter().map(|n| {
            store
                .engine
                .transact_write_items(transaction(&format!("token-{n}")))
        });
        // The first poll puts a transaction into the committer's queue.
        let mut writes: Vec<_> = writes.collect();
        std::future::poll_fn(|context| {
            writes.retain_mut(|write| write.as_mut().poll(context).is_pending());
            if writes.is_empty() {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }
}

#[tokio::test]
async fn tokens_beyond_the_loaded_ones_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create(counters()).await;
    send_all(&store, 0..12_000).await;
    let clock = store.clock.clone();
    drop(store);

    let store = open_at(dir.path(), clock.clone());
    // Tokens of this slot and of an earlier slot, along with new ones.
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
async fn token_is_valid_after_the_clock_is_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create(counters()).await;
    let clock = store.clock.clone();
    let send = async |store: &TestStore| {
        let sent = store.engine.transact_write_items(transaction("t-1")).await;
        sent.unwrap();
    };
    send(&store).await;
    for minutes in [10, 60, 60 * 24 * 30] {
        clock.set_back(Duration::from_secs(60 * minutes));
        send(&store).await;
        store.run_background();
        send(&store).await;
    }
    drop(store);
    // The same if it is set back while the store is closed.
    clock.set_back(Duration::from_secs(3600));
    let store = open_at(dir.path(), clock.clone());
    send(&store).await;
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 1)));
    // The token time advances with the clock, so the token finally expires.
    clock.advance(Duration::from_secs(20 * 60));
    store.run_background();
    send(&store).await;
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 2)));
}

#[tokio::test]
async fn token_is_valid_after_the_clock_is_set_back_and_corrected() {
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
            let send = async |store: &TestStore| {
                let sent = store.engine.transact_write_items(transaction(&token)).await;
                sent.unwrap();
            };
            clock.set_back(step);
            send(&store).await;
            // Used while the clock is behind, and again after it is corrected or set ahead. Across a restart, a clock
            // that is ahead cannot be distinguished from elapsed time.
            let times = if is_restarted { 1 } else { 2 };
            for _ in 0..times {
                clock.set_ahead(step);
                clock.advance(Duration::from_secs(200));
                if is_restarted {
                    drop(store);
                    store = open_at(dir.path(), clock.clone());
                }
                store.run_background();
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
async fn write_token_is_valid_after_the_clock_is_set_ahead() {
    let store = memory();
    store.create(counters()).await;
    for _ in 0..2 {
        let write = add(1).token("w-1");
        store.engine.write_item(write.into()).await.unwrap();
        store.clock.set_ahead(HOUR);
    }
    assert_eq!(store.get("Counters", key()).await, Some(key().with("n", 1)));
}
