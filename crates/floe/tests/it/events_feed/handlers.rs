//! Handlers that panic or hang: the attempt fails, and only their stream is blocked.

use std::future::pending;
use std::panic::resume_unwind;
use std::time::Duration;

use floe::events::feed::{Handled, ViewTransaction, WorkerNotice};
use floe::events::{Recorded, StreamName};
use floe::{Error, Model};

use super::sim::Sim;
use super::{StreamCount, count_events, name, view_rows};

/// Panics or hangs, depending on the id of the stream.
async fn panic_or_hang(stream: &StreamName) {
    match stream.id() {
        // Unlike `panic!`, prints nothing.
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
fn panic_or_timeout_fails_an_attempt() {
    let mut sim = Sim::new(1);
    sim.append(1, &[("Cart-hang", 1), ("Cart-panic", 2), ("Cart-1", 3)]);
    let group = sim.store.consumers("mail").attempts_max(2);
    let group = group.handler_timeout(Duration::from_secs(7));
    let started = sim.test.now();
    let summary = sim.wait(async move {
        let handler = async |stream: StreamName, _: Vec<Recorded>| {
            panic_or_hang(&stream).await;
            Ok::<_, Error>(Handled::All)
        };
        group.run_until_caught_up(handler).await.unwrap()
    });
    let mut parked: Vec<(String, String)> = summary
        .parked
        .iter()
        .map(|parked| (parked.stream.to_string(), parked.reason.clone()))
        .collect();
    parked.sort();
    let expected = REASONS.map(|(stream, reason)| (stream.to_owned(), reason.to_owned()));
    assert_eq!((summary.events, parked), (3, expected.to_vec()));
    let waited = sim.test.now().since(started).as_secs();
    assert_eq!(waited, 14, "two attempts");
}

/// Meanwhile other streams are handled, and the worker keeps its leases.
#[test]
fn hung_handler_blocks_only_its_stream() {
    let mut sim = Sim::new(2);
    sim.append(1, &[("Cart-hang", 1), ("Cart-1", 1)]);
    let group = sim.store.consumers("mail").attempts_max(1);
    let notices = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let recorded = notices.clone();
    let group = group.on_notice(move |notice| match notice {
        WorkerNotice::Lost(_) => recorded.lock().unwrap().push("lost"),
        WorkerNotice::Parked(..) => recorded.lock().unwrap().push("parked"),
        _ => {}
    });
    let worker = group.clone();
    let ledger = super::at_least_once::Ledger::default();
    let recording = ledger.clone();
    sim.spawn(async move {
        let handler = |stream: StreamName, events: Vec<Recorded>| {
            let recording = recording.clone();
            async move {
                panic_or_hang(&stream).await;
                recording.handle(stream, events, 0).await;
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
    assert!(notices.lock().unwrap().is_empty());
    // The default timeout is a minute.
    sim.pass(Duration::from_secs(10));
    assert_eq!(*notices.lock().unwrap(), ["parked"]);
    let lag = sim.wait(async move { group.lag().await.unwrap() });
    assert_eq!((lag.events, lag.parked), (0, 1));
}

/// Changes that a handler made before it panics or hangs are not in the view.
#[test]
fn panic_or_timeout_in_a_view_commits_nothing() {
    let mut sim = Sim::new(3);
    let (store, db) = (sim.store.clone(), sim.store.db().clone());
    sim.wait(async move { db.ensure_tables(&[StreamCount::SCHEMA]).await.unwrap() });
    sim.append(1, &[("Cart-hang", 1), ("Cart-panic", 2), ("Cart-1", 3)]);
    let view = store.consumers("view").attempts_max(2);
    let view = view.handler_timeout(Duration::from_secs(7));
    sim.wait(async move {
        let handler = async |delivery: ViewTransaction<'_>| {
            count_events(delivery).await?;
            panic_or_hang(delivery.stream).await;
            Ok(())
        };
        let summary = view
            .run_exactly_once_until_caught_up(handler)
            .await
            .unwrap();
        assert_eq!((summary.events, summary.parked.len()), (3, 2));
        for (stream, reason) in REASONS {
            let mut parked = summary.parked.iter();
            let parked = parked.find(|parked| parked.stream == name(stream));
            assert_eq!(parked.unwrap().reason, reason);
        }
        assert_eq!(view_rows(&store).await, [(name("Cart-1"), (3, 0))].into());
    });
}
