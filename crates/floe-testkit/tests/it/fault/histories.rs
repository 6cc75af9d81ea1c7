//! Clients use an engine with faults, and the history checkers check the result: lost responses keep a correct
//! engine linearizable, and eventually consistent reads are found not to be.

use std::sync::Arc;

use floe_store::env::SeededRandom;
use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{
    GetItem, PutItem, TransactGet, TransactGetItems, TransactWrite, TransactWriteItems, UpdateItem,
};
use floe_store::{Engine, Error, Item, Value};
use floe_testkit::fault::{FaultEngine, Faults, Lag};
use floe_testkit::history::isolation::{self, AnomalyKind, Level};
use floe_testkit::history::linear::{self, Recorder, RegisterOp, Report};

use super::fixture::{TABLE, engine, key, local, thing};

type History = Recorder<u64, RegisterOp<u64>>;

fn note(item: Option<Item>) -> Option<u64> {
    item?.get("note")?.as_n()?.to_u64()
}

async fn client(engine: Arc<FaultEngine>, history: Arc<History>, client: u64, consistent: bool) {
    let random = SeededRandom::new(client);
    for n in 0..200 {
        let (place, value) = (random.below(10), client * 1000 + n);
        let get = GetItem {
            consistent,
            ..GetItem::new(TABLE, key(place))
        };
        let read = history.call(client, place, None);
        let Ok(found) = engine.get_item(get).await else {
            continue;
        };
        let expected = note(found.item);
        read.returned(RegisterOp::Read(expected));
        let condition = match expected {
            Some(note) => Condition::eq(Path::attribute("note"), note),
            None => Condition::attribute_not_exists("note"),
        };
        let swap = RegisterOp::Swap {
            expected,
            new: Some(value),
        };
        let write = history.call(client, place, Some(swap.clone()));
        let put = PutItem::new(TABLE, thing(place, value)).condition(condition);
        match engine.write_item(put.return_old_on_failure().into()).await {
            Ok(_) => write.returned(swap),
            Err(Error::ConditionalCheckFailed { item }) => {
                let found = note(item.map(|item| *item));
                write.returned(RegisterOp::RejectedWith { expected, found });
            }
            Err(error) if error.may_have_applied() => write.lost(),
            Err(_) => write.failed(),
        }
        tokio::task::yield_now().await;
    }
}

async fn run(engine: Arc<FaultEngine>, consistent: bool) -> (Report<u64, RegisterOp<u64>>, usize) {
    let history = Arc::new(History::new());
    let clients: Vec<_> = (0..16)
        .map(|n| tokio::spawn(client(engine.clone(), history.clone(), n, consistent)))
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let history = Arc::into_inner(history).unwrap();
    (linear::check(&history.into_events()), engine.faults().len())
}

fn lossy() -> Faults {
    Faults::seeded(1)
        .throttle(0.1)
        .conflict(0.1)
        .lost_before(0.1)
        .lost_after(0.1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn engine_with_lost_responses_is_linearizable() {
    for engine in [engine(lossy()).await, local(lossy()).await] {
        let (report, faults) = run(engine, true).await;
        assert!(report.is_linearizable(), "{report}");
        assert!(
            report.unknown > 100 && faults > 500,
            "faults={faults} {report}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn consistent_reads_stay_linearizable_while_eventual_reads_are_stale() {
    let stale = || Faults::seeded(1).stale_reads(0.5, Lag::Operations(200));
    for engine in [engine(stale()).await, local(stale()).await] {
        let (report, _) = run(engine, true).await;
        assert!(report.is_linearizable(), "{report}");
    }
    let (report, faults) = run(engine(stale()).await, false).await;
    assert!(
        !report.violations.is_empty() && faults > 100,
        "faults={faults} {report}"
    );
}

/// How a client of lists writes.
#[derive(Clone, Copy, PartialEq)]
enum WriteMode {
    /// Reads a snapshot, and writes only if it has not changed.
    Conditional,
    /// Writes without a condition.
    Unconditional,
}

type Transactions = isolation::Recorder<u64, u64>;

async fn list_client(
    engine: Arc<FaultEngine>,
    history: Arc<Transactions>,
    client: u64,
    mode: WriteMode,
) {
    let random = SeededRandom::new(client);
    for n in 0..100 {
        let first = random.below(8);
        let places = [first, (first + 1 + random.below(7)) % 8];
        let mut open = history.begin(client);
        let gets = places.map(|place| TransactGet::new(TABLE, key(place)));
        let Ok(found) = engine.transact_get_items(TransactGetItems::new(gets)).await else {
            open.aborted();
            continue;
        };
        let mut actions: Vec<TransactWrite> = Vec::new();
        for (place, item) in places.into_iter().zip(found.items) {
            let list = item.and_then(|item| item.get("note").cloned());
            let values = list
                .as_ref()
                .and_then(|list| list.as_l())
                .unwrap_or_default();
            let values = values.iter().filter_map(|v| v.as_n()?.to_u64()).collect();
            open.read(place, values);
            let value = client * 1000 + n * 10 + place;
            open.append(place, value);
            let empty = SetOperand::if_not_exists("note", Value::L(Vec::new()));
            let appended = SetOperand::list_append(empty, Value::L(vec![value.into()]));
            let mut update =
                UpdateItem::new(TABLE, key(place), Update::new().set("note", appended));
            if mode == WriteMode::Conditional {
                update = update.condition(match list {
                    Some(list) => Condition::eq(Path::attribute("note"), list),
                    None => Condition::attribute_not_exists("note"),
                });
            }
            actions.push(update.into());
        }
        match engine
            .transact_write_items(TransactWriteItems::new(actions))
            .await
        {
            Ok(_) => open.committed(),
            Err(error) if error.may_have_applied() => open.lost(),
            Err(_) => open.aborted(),
        }
        tokio::task::yield_now().await;
    }
}

async fn run_lists(engine: Arc<FaultEngine>, mode: WriteMode) -> isolation::Report {
    let history = Arc::new(Transactions::new());
    let clients: Vec<_> = (0..16)
        .map(|n| tokio::spawn(list_client(engine.clone(), history.clone(), n, mode)))
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let history = Arc::into_inner(history).unwrap().into_transactions();
    isolation::check(&history, Level::StrictSerializable)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn engine_with_lost_responses_is_strictly_serializable() {
    for engine in [engine(lossy()).await, local(lossy()).await] {
        let report = run_lists(engine, WriteMode::Conditional).await;
        assert!(report.is_ok(), "{report}");
        assert!(
            report.committed > 100 && report.dependencies > 500,
            "{report}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn unconditional_transactions_lose_updates() {
    let report = run_lists(local(lossy()).await, WriteMode::Unconditional).await;
    assert!(
        report.kinds().contains(&AnomalyKind::LostUpdate),
        "{report}"
    );
}
