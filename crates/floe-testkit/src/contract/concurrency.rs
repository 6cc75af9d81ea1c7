//! Concurrent clients: no lost update, no partly visible transaction.

use std::sync::Arc;

use floe_store::error::CancellationCode;
use floe_store::op::{
    GetItem, PutItem, TransactGet, TransactGetItems, TransactGetItemsOutput, TransactWriteItems,
    UpdateItem,
};
use floe_store::table::{Projection, StreamView};
use floe_store::{Engine, Error, Item, Result, Value};
use tokio::task::JoinSet;

use super::fixture::*;

const CLIENTS: usize = 32;
const ROUNDS: usize = 8;

/// Runs a task for every client and waits for all of them.
fn clients<F>(t: &Fixture, task: impl Fn(Arc<dyn Engine>, usize) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    t.wait(async {
        let mut tasks = JoinSet::new();
        for client in 0..CLIENTS {
            tasks.spawn(task(t.engine(), client));
        }
        while let Some(done) = tasks.join_next().await {
            done.expect("the client completes");
        }
    });
}

/// The response, or `None` if the request failed because of a conflict and can be retried.
fn ok_unless_conflict<T>(response: Result<T>) -> Option<T> {
    match response {
        Err(error) if error.is_retryable() => None,
        other => Some(other.unwrap()),
    }
}

/// Whether a write was applied; `false` if its condition failed.
fn is_applied<T>(response: Result<T>) -> bool {
    match response {
        Ok(_) => true,
        Err(Error::ConditionalCheckFailed { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Increments the number of an item.
fn increment(pk: &str) -> UpdateItem {
    update_item("Plain", item(pk), "ADD n :one", &values! {"one" => 1})
}

fn number_at(item: &Item, name: &str) -> i64 {
    item.get(name)
        .and_then(Value::as_n)
        .and_then(|n| n.to_i64())
        .unwrap_or_default()
}

pub(super) fn concurrent_increments_are_not_lost(t: &mut Fixture) {
    t.create(plain());
    clients(t, |engine, _| async move {
        for _ in 0..ROUNDS {
            engine.write_item(increment("n").into()).await.unwrap();
        }
    });
    let n = t.get("Plain", item("n")).unwrap();
    assert_eq!(number_at(&n, "n"), (CLIENTS * ROUNDS) as i64);
}

pub(super) fn one_of_many_conditional_creates_succeeds(t: &mut Fixture) {
    t.create(plain());
    clients(t, |engine, client| async move {
        for round in 0..ROUNDS {
            let put = PutItem::new(
                "Plain",
                item(&format!("k{round}")).with("by", client.to_string()),
            )
            .condition(bare_condition("attribute_not_exists(pk)"));
            if is_applied(engine.write_item(put.into()).await) {
                engine.write_item(increment("wins").into()).await.unwrap();
            }
        }
    });
    let wins = t.get("Plain", item("wins")).unwrap();
    assert_eq!(number_at(&wins, "n"), ROUNDS as i64);
}

pub(super) fn optimistic_locking_prevents_lost_updates(t: &mut Fixture) {
    t.create_with(plain(), [item("doc").with("version", 0).with("sum", 0)]);
    clients(t, |engine, _| async move {
        let mut done = 0;
        while done < 2 {
            let get = GetItem::new("Plain", item("doc"));
            let doc = engine.get_item(get).await.unwrap().item.unwrap();
            let version = number_at(&doc, "version");
            let next = item("doc")
                .with("version", version + 1)
                .with("sum", number_at(&doc, "sum") + 1);
            let put = PutItem::new("Plain", next)
                .condition(condition("version = :v", &values! {"v" => version}));
            done += usize::from(is_applied(engine.write_item(put.into()).await));
        }
    });
    let doc = t.get("Plain", item("doc")).unwrap();
    assert_eq!(number_at(&doc, "sum"), (CLIENTS * 2) as i64);
    assert_eq!(number_at(&doc, "version"), (CLIENTS * 2) as i64);
}

/// Moves one unit between two accounts, unless the first one is empty.
fn transfer(from: usize, to: usize) -> TransactWriteItems {
    let add = |account: usize, n: i32| {
        let key = item(&format!("a{account}"));
        update_item("Plain", key, "ADD n :d", &values! {"d" => n})
    };
    let take = add(from, -1).condition(condition("n > :zero", &values! {"zero" => 0}));
    TransactWriteItems::new([take.into(), add(to, 1).into()])
}

pub(super) fn transfers_preserve_the_sum(t: &mut Fixture) {
    const ACCOUNTS: usize = 5;
    let accounts = (0..ACCOUNTS).map(|n| item(&format!("a{n}")).with("n", 10));
    t.create_with(plain(), accounts);
    clients(t, |engine, client| async move {
        for round in 0..ROUNDS {
            let from = (client + round) % ACCOUNTS;
            let to = (from + 1 + client % (ACCOUNTS - 1)) % ACCOUNTS;
            loop {
                match engine.transact_write_items(transfer(from, to)).await {
                    Ok(_) => break,
                    Err(error) if error.is_retryable() => {}
                    Err(Error::TransactionCanceled { reasons }) => {
                        assert_eq!(reasons[0].code, CancellationCode::ConditionalCheckFailed);
                        break;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            let keys = (0..ACCOUNTS).map(|n| TransactGet::new("Plain", item(&format!("a{n}"))));
            let snapshot = engine.transact_get_items(TransactGetItems::new(keys)).await;
            let Some(TransactGetItemsOutput { items, .. }) = ok_unless_conflict(snapshot) else {
                continue;
            };
            let sum: i64 = items
                .iter()
                .flatten()
                .map(|item| number_at(item, "n"))
                .sum();
            let whole = (ACCOUNTS * 10) as i64;
            assert_eq!(sum, whole, "a snapshot contains whole transfers");
        }
    });
    let items = t.all_items("Plain");
    let sum: i64 = items.iter().map(|item| number_at(item, "n")).sum();
    assert_eq!(sum, (ACCOUNTS * 10) as i64);
    assert!(items.iter().all(|item| number_at(item, "n") >= 0));
}

pub(super) fn swaps_preserve_both_values(t: &mut Fixture) {
    let sides = [("left", "red"), ("right", "blue")];
    t.create_with(plain(), sides.map(|(pk, v)| item(pk).with("v", v)));
    clients(t, |engine, _| async move {
        for _ in 0..ROUNDS {
            let pair = TransactGetItems::new(
                ["left", "right"].map(|pk| TransactGet::new("Plain", item(pk))),
            );
            let Ok(output) = engine.transact_get_items(pair).await else {
                continue;
            };
            let value = |at: usize| output.items[at].as_ref().unwrap().get("v").unwrap().clone();
            let (left, right) = (value(0), value(1));
            assert_ne!(left, right, "both sides have different values");
            let put = |pk: &str, old: &Value, new: &Value| {
                PutItem::new("Plain", item(pk).with("v", new.clone()))
                    .condition(condition("v = :old", &values! {"old" => old.clone()}))
            };
            let swap = TransactWriteItems::new([
                put("left", &left, &right).into(),
                put("right", &right, &left).into(),
            ]);
            match engine.transact_write_items(swap).await {
                Ok(_) | Err(Error::TransactionCanceled { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    let mut colours = texts(&t.all_items("Plain"), "v");
    colours.sort();
    assert_eq!(colours, ["blue", "red"]);
}

pub(super) fn page_of_a_partition_is_a_consistent_snapshot(t: &mut Fixture) {
    t.create_with(sorted(), (0..4).map(|sk| row("a", sk).with("v", 0)));
    clients(t, |engine, client| async move {
        for round in 0..ROUNDS {
            if client % 2 == 0 {
                let stamp = (client * 1000 + round) as i64;
                let puts =
                    (0..4).map(|sk| PutItem::new("Sorted", row("a", sk).with("v", stamp)).into());
                let puts = TransactWriteItems::new(puts);
                ok_unless_conflict(engine.transact_write_items(puts).await);
            } else {
                let query = partition("a").consistent();
                let page = engine.query(query).await.unwrap();
                let stamps: Vec<i64> = page.items.iter().map(|item| number_at(item, "v")).collect();
                assert_eq!(stamps.len(), 4);
                assert!(stamps.iter().all(|stamp| *stamp == stamps[0]), "{stamps:?}");
            }
        }
    });
}

pub(super) fn token_shared_by_many_clients_is_applied_once(t: &mut Fixture) {
    t.create(plain());
    clients(t, |engine, _| async move {
        for round in 0..ROUNDS {
            let add = increment("n").into();
            let transaction = TransactWriteItems::new([add]).token(format!("round-{round}"));
            let send = || engine.transact_write_items(transaction.clone());
            while ok_unless_conflict(send().await).is_none() {
                tokio::task::yield_now().await;
            }
        }
    });
    let n = t.get("Plain", item("n")).unwrap();
    assert_eq!(number_at(&n, "n"), ROUNDS as i64);
}

pub(super) fn indexes_and_streams_match_concurrent_writes(t: &mut Fixture) {
    t.create(indexed(Projection::All).stream(StreamView::NewAndOldImages));
    clients(t, |engine, client| async move {
        for round in 0..ROUNDS {
            let key = format!("k{}", (client + round) % 6);
            let item = item(&key)
                .with("g", format!("g{}", client % 3))
                .with("by", client.to_string());
            engine
                .write_item(PutItem::new("Plain", item).into())
                .await
                .unwrap();
        }
    });
    let sorted_by_key = |mut items: Vec<Item>| {
        items.sort_by_key(|item| format!("{item:?}"));
        items
    };
    let items = sorted_by_key(t.all_items("Plain"));
    let entries = sorted_by_key(t.all_entries("Plain", "by_g"));
    assert_eq!(items.len(), 6);
    assert_eq!(items, entries);

    // Replaying the changes yields the items: each old image is the previous new image.
    let mut replayed = std::collections::BTreeMap::new();
    for record in t.changes("Plain") {
        let key = format!("{:?}", record.keys);
        let before = record.old_image.as_ref();
        assert_eq!(replayed.get(&key), before, "no change is missing");
        replayed.insert(key, record.new_image.unwrap());
    }
    assert_eq!(sorted_by_key(replayed.into_values().collect()), items);
}

pub(super) fn concurrent_creates_make_one_table(t: &mut Fixture) {
    clients(t, |engine, _| async move {
        let table = plain().build().unwrap();
        match engine.create_table(table.into()).await {
            Ok(_) => {
                engine.write_item(increment("made").into()).await.unwrap();
            }
            Err(Error::ResourceInUse(_)) => {}
            Err(error) => panic!("{error}"),
        }
    });
    let made = t.get("Plain", item("made")).unwrap();
    assert_eq!(number_at(&made, "n"), 1);
}
