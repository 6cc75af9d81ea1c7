//! Spans of streams: decisions, loads, appends and prunes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::events::{Decider, EventData, EventStoreOptions, Expected, StreamName};
use floe::{Db, Error, Event, Tx};
use floe_local::LocalEngine;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use serde::{Deserialize, Serialize};

use crate::collect::{Collector, Fields, listen};
use crate::transactions::Tokenless;

#[derive(Clone, Debug, Event, Serialize, Deserialize)]
enum CartEvent {
    Added { product: String },
}

struct Cart;

impl Decider for Cart {
    type Id = String;
    type Event = CartEvent;
    type State = usize;

    const CATEGORY: &'static str = "Cart";

    fn initial() -> usize {
        0
    }

    fn evolve(state: usize, _: &CartEvent) -> usize {
        state + 1
    }
}

fn added() -> CartEvent {
    CartEvent::Added {
        product: "swordfish".to_owned(),
    }
}

fn take<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    fields.get(name).map(String::as_str)
}

#[test]
fn decision_span_contains_its_load_and_append() {
    let db = Db::memory().unwrap();
    let collector = Collector::default();
    listen(&collector, async {
        let store = db.events();
        store.ensure_table().await.unwrap();
        let id = "customer-7".to_owned();
        let decide = |_: &usize| Ok::<_, Error>([added()]);
        db.stream::<Cart>(&id).transact(decide).await.unwrap();
    });
    let state = collector.state();
    let place = |name: &str| state.spans.iter().position(|span| span.name == name);
    let (decide, load, append) = (place("decide"), place("load"), place("append"));
    assert_eq!(state.spans[load.unwrap()].parent, decide);
    assert_eq!(state.spans[append.unwrap()].parent, decide);
    let of_append = &state.spans[append.unwrap()].fields;
    assert_eq!(take(of_append, "floe.stream.category"), Some("Cart"));
    assert_eq!(take(of_append, "db.collection.name"), Some("events"));
    assert_eq!(take(of_append, "floe.stream.events"), Some("1"));
    assert_eq!(take(of_append, "floe.stream.calves"), Some("false"));
    assert_eq!(take(of_append, "floe.stream.outcome"), Some("written"));
    let requests = state.spans.iter().filter(|span| span.parent == append);
    assert_eq!(requests.count(), 1);
    drop(state);
    let text = collector.text();
    assert!(
        !text.contains("customer-7") && !text.contains("swordfish"),
        "{text}"
    );
    let appended = collector.measured("monotonic_counter.floe.stream.appended_events");
    assert_eq!(appended.len(), 1);
    assert_eq!(appended[0].0, 1.0);
    assert_eq!(appended[0].1["floe.stream.category"], "Cart");
}

#[test]
fn resyncs_calves_and_prunes_are_recorded() {
    let db = Db::memory().unwrap();
    let collector = Collector::default();
    listen(&collector, async {
        let store = db.event_store(EventStoreOptions::new("events").tip_events_max(1));
        store.ensure_table().await.unwrap();
        let name = StreamName::new("Cart", "7").unwrap();
        let event = || [EventData::new("Added", r#"{"product":"tea"}"#)];
        store.append(&name, Expected::New, event()).await.unwrap();
        store.append(&name, Expected::Any, event()).await.unwrap();

        // Another writer appends during the decision.
        let ran = std::sync::atomic::AtomicBool::new(false);
        let (other, theirs) = (store.clone(), name.clone());
        let decide = |_: &usize| {
            if !ran.swap(true, Ordering::Relaxed) {
                at_once(other.append(&theirs, Expected::Any, event())).unwrap();
            }
            Ok::<_, Error>([added()])
        };
        store
            .stream::<Cart>(&"7".to_owned())
            .transact(decide)
            .await
            .unwrap();
        store.prune(&name, 1).await.unwrap();
    });
    let calves: Vec<_> = collector
        .spans("append")
        .iter()
        .map(|span| span.fields["floe.stream.calves"].clone())
        .collect();
    assert_eq!(calves[..2], ["false", "true"]);
    let pruned = &collector.spans("prune")[0].fields;
    assert_eq!(take(pruned, "floe.stream.deleted"), Some("1"));
    let decided = &collector.spans("decide")[0].fields;
    assert_eq!(take(decided, "floe.stream.resyncs"), Some("1"));
    let conflicts = collector.measured("monotonic_counter.floe.conflicts");
    assert_eq!(conflicts.len(), 1);
    assert_eq!(take(&conflicts[0].1, "floe.model"), Some("Cart"));
}

/// Runs a future whose requests complete at once, as those of the in-memory engine do.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    loop {
        if let std::task::Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}

#[test]
fn append_in_a_transaction_is_measured_at_commit() {
    let db = Db::memory().unwrap();
    let collector = Collector::default();
    listen(&collector, async {
        db.events().ensure_table().await.unwrap();
        let body = async |tx: &Tx| {
            for id in ["a", "b"] {
                let mut cart = tx.stream::<Cart>(&id.to_owned()).await?;
                cart.append([added(), added()])?;
            }
            Ok::<_, Error>(())
        };
        db.transact(body).await.unwrap();
    });
    let appended = collector.measured("monotonic_counter.floe.stream.appended_events");
    let appended: f64 = appended.iter().map(|(events, _)| events).sum();
    assert_eq!(appended, 4.0);
    let transaction = &collector.spans("transaction")[0].fields;
    assert_eq!(
        take(transaction, "floe.transaction.items_written"),
        Some("2")
    );
}

#[test]
fn concurrent_append_is_one_conflict_of_a_transaction() {
    for streams in [&["a"][..], &["a", "b"]] {
        let db = Db::memory().unwrap();
        let collector = Collector::default();
        listen(&collector, async {
            let store = db.events();
            store.ensure_table().await.unwrap();
            let runs = AtomicU32::new(0);
            let body = async |tx: &Tx| {
                for id in streams {
                    let mut cart = tx.stream::<Cart>(&(*id).to_owned()).await?;
                    cart.append([added()])?;
                }
                if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                    let name = StreamName::new("Cart", "a")?;
                    let event = EventData::new("Added", r#"{"product":"tea"}"#);
                    store.append(&name, Expected::New, [event]).await?;
                }
                Ok::<_, Error>(())
            };
            db.transact(body).await.unwrap();
        });
        let conflicts = collector.measured("monotonic_counter.floe.conflicts");
        assert_eq!(conflicts.len(), 1, "{streams:?} {conflicts:?}");
        assert_eq!(take(&conflicts[0].1, "floe.model"), Some("Cart"));
        assert_eq!(collector.events("lost a race").len(), 1);
    }
}

#[test]
fn reconciled_append_is_recorded() {
    let faulty = Arc::new(FaultEngine::new(
        Arc::new(LocalEngine::memory().unwrap()),
        Faults::seeded(3),
    ));
    let db = Db::with_engine(Arc::new(Tokenless(faulty.clone())));
    let collector = Collector::default();
    listen(&collector, async {
        let store = db.events();
        store.ensure_table().await.unwrap();
        let lost = faulty.script(Operation::WriteItem, FaultKind::LostAfter);
        lost.unwrap();
        let name = StreamName::new("Cart", "a").unwrap();
        let event = EventData::new("Added", r#"{"product":"tea"}"#);
        store.append(&name, Expected::New, [event]).await.unwrap();
    });
    let settled = collector.events("a lost answer is settled");
    assert_eq!(settled.len(), 1);
    assert_eq!(take(&settled[0].fields, "floe.applied"), Some("true"));
    assert!(
        collector
            .measured("monotonic_counter.floe.conflicts")
            .is_empty()
    );
}
