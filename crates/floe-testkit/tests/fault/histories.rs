//! Clients that use an engine through faults, and what the history checkers say about them: lost answers
//! break no promise of a correct engine, and old answers break those that eventual reads never made.

use std::sync::Arc;

use floe_store::env::SeededRandom;
use floe_store::expr::Condition;
use floe_store::op::{GetItem, PutItem};
use floe_store::{Engine, Error, Item};
use floe_testkit::fault::{FaultEngine, Faults, Lag};
use floe_testkit::history::linear::{self, Recorder, RegisterOp, Report};

use crate::fixture::{TABLE, engine, key, thing};

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
            Some(note) => Condition::eq(floe_store::expr::Path::attribute("note"), note),
            None => Condition::attribute_not_exists("note"),
        };
        let swap = RegisterOp::Swap { expected, new: Some(value) };
        let write = history.call(client, place, Some(swap.clone()));
        let put = PutItem::new(TABLE, thing(place, value)).condition(condition);
        match engine.write_item(put.return_old_on_failure().into()).await {
            Ok(_) => write.returned(swap),
            Err(Error::ConditionalCheckFailed { item }) => {
                let found = note(item.map(|item| *item));
                write.returned(RegisterOp::RefusedBy { expected, found });
            }
            Err(error) if error.may_have_applied() => write.lost(),
            Err(_) => write.failed(),
        }
        tokio::task::yield_now().await;
    }
}

async fn run(faults: Faults, consistent: bool) -> (Report<u64, RegisterOp<u64>>, usize) {
    let engine = engine(faults).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lost_answers_leave_a_correct_engine_linearizable() {
    let faults = Faults::seeded(1).throttle(0.1).conflict(0.1).lost_before(0.1).lost_after(0.1);
    let (report, faults) = run(faults, true).await;
    assert!(report.is_linearizable(), "{report}");
    assert!(report.unknown > 100 && faults > 500, "faults={faults} {report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn strong_reads_stay_linearizable_where_eventual_ones_are_stale() {
    let stale = || Faults::seeded(1).stale_reads(0.5, Lag::Operations(200));
    let (report, _) = run(stale(), true).await;
    assert!(report.is_linearizable(), "{report}");
    let (report, faults) = run(stale(), false).await;
    assert!(!report.violations.is_empty() && faults > 100, "faults={faults} {report}");
}
