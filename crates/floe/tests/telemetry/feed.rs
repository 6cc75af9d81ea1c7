//! Telemetry of the feed and of change consumers: spans of steps, handlers and turns, lag, and dead letters.

use std::time::Duration;

use floe::changes::{ChangeConsumer, ConsumerSummary, Failure, Inserted, Router, consumer};
use floe::events::feed::{Handled, IndexerOptions};
use floe::events::{EventData, EventStore, Expected, Recorded, StreamName};
use floe::{Db, Error, Model, Tx};
use tracing::Level;

use crate::collect::Collector;
use crate::world::World;

/// Runs work in a simulation with the collector as subscriber. On simulated time, leases do not expire because a thread
/// of the engine is slow.
fn listen<T>(collector: &Collector, work: impl FnOnce(&mut World) -> T) -> T {
    let mut world = World::new(1);
    tracing::subscriber::with_default(collector.clone(), || work(&mut world))
}

/// Returns a store with a feed, and three events in two streams.
fn store(world: &mut World) -> EventStore {
    let db = world.db.clone();
    world.wait(async move { filled(&db).await })
}

async fn filled(db: &Db) -> EventStore {
    let store = db.events();
    store.ensure_table().await.unwrap();
    store.ensure_feed().await.unwrap();
    for (category, events) in [("Cart", 2), ("Order", 1)] {
        let stream = StreamName::new(category, "customer-7").unwrap();
        let events = (0..events).map(|_| EventData::new("Happened", r#""swordfish""#));
        store.append(&stream, Expected::New, events).await.unwrap();
    }
    let mut indexer = store.indexer(IndexerOptions::new()).unwrap();
    indexer.run_until_caught_up().await.unwrap();
    store
}

async fn handle(stream: StreamName, _: Vec<Recorded>) -> Result<Handled, Error> {
    match stream.category() {
        "Order" => Ok(Handled::None),
        _ => Ok(Handled::All),
    }
}

#[test]
fn indexer_reports_its_progress() {
    let collector = Collector::default();
    listen(&collector, store);
    let steps = collector.spans("index");
    let brought = &steps[0].fields;
    assert_eq!(brought["floe.feed.records"], "2");
    assert_eq!(brought["floe.feed.events"], "3");
    assert_eq!(brought["db.collection.name"], "events");
    let records = collector.measured("monotonic_counter.floe.indexer.records");
    let events = collector.measured("monotonic_counter.floe.indexer.events");
    let sum = |all: &[(f64, _)]| -> f64 { all.iter().map(|(count, _)| count).sum() };
    assert_eq!((sum(&records), sum(&events)), (2.0, 3.0));
    assert_eq!(records[0].1["floe.feed.indexer"], "0");
    assert!(!collector.measured("gauge.floe.indexer.lag").is_empty());
}

#[test]
fn group_reports_lag_handlers_and_dead_letters() {
    let collector = Collector::default();
    listen(&collector, |world| {
        let group = store(world).consumers("mail").attempts_max(1);
        let asked = group.clone();
        world.wait(async move { asked.lag().await.unwrap() });
        let lag = collector.measured("gauge.floe.feed.lag_events");
        assert_eq!(lag.len(), 1);
        assert_eq!(lag[0].0, 3.0);
        assert_eq!(lag[0].1["floe.feed.group"], "mail");
        assert_eq!(lag[0].1["floe.feed.partition"], "0");

        // A running worker measures its lag itself.
        let worker = world.spawn(async move {
            group.run(std::future::pending(), handle).await.unwrap();
        });
        world.pass(Duration::from_secs(60));
        assert!(world.kill(worker));
    });
    let lag = collector.measured("gauge.floe.feed.lag_events");
    assert!(lag.len() > 1, "{lag:?}");
    assert_eq!(lag.last().unwrap().0, 0.0);
    let parked = collector.measured("gauge.floe.feed.parked_events");
    assert_eq!(parked.last().unwrap().0, 1.0);
    assert!(collector.measured("gauge.floe.feed.lag").len() == lag.len());

    let read = collector.spans("read");
    let batches = read
        .iter()
        .map(|span| span.fields["floe.feed.batches"].as_str());
    assert_eq!(batches.collect::<Vec<_>>()[..2], ["1", "0"]);
    assert_eq!(read[0].fields["floe.feed.partition"], "0");

    let handled = collector.spans("handle");
    assert!(
        handled
            .iter()
            .all(|span| span.fields["floe.feed.group"] == "mail")
    );
    let categories: Vec<_> = handled
        .iter()
        .map(|span| {
            (
                span.fields["floe.stream.category"].as_str(),
                span.fields["floe.feed.events"].as_str(),
            )
        })
        .collect();
    assert!(categories.contains(&("Cart", "2")) && categories.contains(&("Order", "1")));

    let parked = collector.events("a stream was parked");
    assert_eq!(parked.len(), 1);
    assert_eq!(
        (parked[0].level, parked[0].target),
        (Level::WARN, "floe::feed")
    );
    assert_eq!(parked[0].fields["floe.stream.category"], "Order");
    assert_eq!(
        collector
            .measured("monotonic_counter.floe.feed.parked_streams")
            .len(),
        1
    );
    let text = collector.text();
    assert!(
        !text.contains("customer-7") && !text.contains("swordfish"),
        "{text}"
    );
}

#[derive(Model)]
#[model(stream)]
struct Session {
    #[model(key)]
    id: String,
    user: String,
}

/// Creates two sessions; the handler of one fails.
async fn consumed(db: &Db) -> ConsumerSummary {
    db.ensure_tables(&[Session::SCHEMA]).await.unwrap();
    db.ensure_tables(&consumer::SCHEMAS).await.unwrap();
    let create = async |tx: &Tx| {
        for id in ["session-1", "session-2"] {
            tx.create(Session {
                id: id.to_owned(),
                user: "ada".to_owned(),
            })?;
        }
        Ok::<_, Error>(())
    };
    db.transact(create).await.unwrap();
    let router = Router::new().on_inserted::<Session>(async |inserted: Inserted<Session>| {
        match inserted.value.id.as_str() {
            "session-1" => Ok(()),
            _ => Err(Failure::new("ada is not welcome")),
        }
    });
    let consumer = ChangeConsumer::new(db, "greeter", router).attempts_max(1);
    consumer.run_until_caught_up().await.unwrap()
}

#[test]
fn change_consumer_reports_lag_turns_and_dead_letters() {
    let collector = Collector::default();
    let ran = listen(&collector, |world| {
        let db = world.db.clone();
        world.wait(async move { consumed(&db).await })
    });
    assert_eq!((ran.handled, ran.dead_letters), (1, 1));
    let turns = collector.spans("turn");
    assert_eq!(turns.len(), 2);
    for turn in &turns {
        assert_eq!(turn.fields["floe.changes.consumer"], "greeter");
        assert_eq!(turn.fields["floe.changes.changes"], "1");
    }
    let parked = collector.events("a change became a dead letter");
    assert_eq!((parked.len(), parked[0].level), (1, Level::WARN));
    let counted = collector.measured("monotonic_counter.floe.changes.parked");
    assert_eq!(counted.len(), 1);
    assert_eq!(counted[0].1["floe.changes.consumer"], "greeter");
    let lag = collector.measured("gauge.floe.changes.lag");
    assert_eq!(lag.last().unwrap().1["floe.changes.consumer"], "greeter");
    let text = collector.text();
    assert!(
        !text.contains("session-2") && !text.contains("not welcome"),
        "{text}"
    );
}

#[test]
fn info_level_contains_warnings_only() {
    let collector = Collector::up_to(Level::INFO);
    listen(&collector, |world| {
        let group = store(world).consumers("mail").attempts_max(1);
        world.wait(async move { group.run_until_caught_up(handle).await.unwrap() });
    });
    let state = collector.state();
    assert!(state.spans.is_empty(), "{:?}", state.spans);
    let messages: Vec<_> = state
        .events
        .iter()
        .map(|event| event.fields["message"].as_str())
        .collect();
    assert_eq!(messages, ["a stream was parked"]);
}
