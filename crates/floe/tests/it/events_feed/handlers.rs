//! Handlers that panic or hang: they have failed a try, and hold their stream alone.

use std::future::pending;
use std::panic::resume_unwind;
use std::time::Duration;

use floe::events::feed::{Handled, ViewTransaction, WorkerNotice};
use floe::events::{Recorded, StreamName};
use floe::{Error, Model};

use super::sim::Sim;
use super::{Seen, name, see, seen};

/// What a handler does for bad streams.
async fn strike(stream: &StreamName) {
    match stream.id() {
        // It writes nothing to the output, as a panic does.
        "panic" => resume_unwind(Box::new("no luck")),
        "hang" => pending().await,
        _ => {}
    }
}

const REASONS: [(&str, &str); 2] = [
    ("Cart-hang", "the handler timed out: timeout=7s"),
    ("Cart-panic", "the handler panicked: no luck"),
];

#[test]
fn panicking_or_hung_handler_has_failed_a_try() {
    let mut sim = Sim::new(1);
    sim.append(1, &[("Cart-hang", 1), ("Cart-panic", 2), ("Cart-1", 3)]);
    let group = sim.store.consumers("mail").tries_max(2);
    let group = group.handler_timeout(Duration::from_secs(7));
    let begun = sim.test.now();
    let worked = sim.wait(async move {
        let handler = async |stream: StreamName, _: Vec<Recorded>| {
            strike(&stream).await;
            Ok::<_, Error>(Handled::All)
        };
        group.run_until_caught_up(handler).await.unwrap()
    });
    let mut parked: Vec<(String, String)> = worked
        .parked
        .iter()
        .map(|parked| (parked.stream.to_string(), parked.reason.clone()))
        .collect();
    parked.sort();
    let expected = REASONS.map(|(stream, reason)| (stream.to_owned(), reason.to_owned()));
    assert_eq!((worked.events, parked), (3, expected.to_vec()));
    let waited = sim.test.now().since(begun).as_secs();
    assert_eq!(waited, 14, "two tries");
}

/// A hung handler does not stop the worker of its partition: what comes meanwhile is handled, and leases are kept.
#[test]
fn hung_handler_does_not_stop_its_partition() {
    let mut sim = Sim::new(2);
    sim.append(1, &[("Cart-hang", 1), ("Cart-1", 1)]);
    let group = sim.store.consumers("mail").tries_max(1);
    let lost = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = lost.clone();
    let group = group.on_notice(move |notice| match notice {
        WorkerNotice::Lost(_) => noted.lock().unwrap().push("lost"),
        WorkerNotice::Parked(..) => noted.lock().unwrap().push("parked"),
        _ => {}
    });
    let worker = group.clone();
    let ledger = super::at_least_once::Ledger::default();
    let seen = ledger.clone();
    sim.spawn(async move {
        let handler = |stream: StreamName, events: Vec<Recorded>| {
            let seen = seen.clone();
            async move {
                strike(&stream).await;
                seen.handle(stream, events, 0).await;
                Ok::<_, Error>(Handled::All)
            }
        };
        worker.run(pending(), handler).await.unwrap();
    });
    sim.pass(Duration::from_secs(30));
    sim.append(1, &[("Cart-1", 1), ("Cart-2", 1)]);
    sim.pass(Duration::from_secs(25));
    let ends = [("Cart-1".to_owned(), 2), ("Cart-2".to_owned(), 1)];
    assert_eq!(ledger.ends(), ends.into());
    assert!(lost.lock().unwrap().is_empty());
    // The default is a minute.
    sim.pass(Duration::from_secs(10));
    assert_eq!(*lost.lock().unwrap(), ["parked"]);
    let lag = sim.wait(async move { group.lag().await.unwrap() });
    assert_eq!((lag.events, lag.parked), (0, 1));
}

/// What a handler has written before it panics or hangs is not in the view.
#[test]
fn panicking_or_hung_view_has_failed_a_try() {
    let mut sim = Sim::new(3);
    let (store, db) = (sim.store.clone(), sim.store.db().clone());
    sim.wait(async move { db.ensure_tables(&[Seen::SCHEMA]).await.unwrap() });
    sim.append(1, &[("Cart-hang", 1), ("Cart-panic", 2), ("Cart-1", 3)]);
    let view = store.consumers("view").tries_max(2);
    let view = view.handler_timeout(Duration::from_secs(7));
    sim.wait(async move {
        let handler = async |delivery: ViewTransaction<'_>| {
            see(delivery).await?;
            strike(delivery.stream).await;
            Ok(())
        };
        let worked = view
            .run_exactly_once_until_caught_up(handler)
            .await
            .unwrap();
        assert_eq!((worked.events, worked.parked.len()), (3, 2));
        for (stream, reason) in REASONS {
            let mut parked = worked.parked.iter();
            let parked = parked.find(|parked| parked.stream == name(stream));
            assert_eq!(parked.unwrap().reason, reason);
        }
        assert_eq!(seen(&store).await, [(name("Cart-1"), (3, 0))].into());
    });
}
