//! The lag of groups, consumers and subscriptions, and the requests that it takes.

use std::time::Duration;

use floe::Error;
use floe::events::feed::{Filter, Handled, Partition};
use floe::events::{Recorded, StreamName};

use super::sim::Sim;

async fn handle_all(_: StreamName, _: Vec<Recorded>) -> Result<Handled, Error> {
    Ok(Handled::All)
}

#[test]
fn lag_has_events_and_age() {
    let mut sim = Sim::new(1);
    sim.append(1, &[("Cart-1", 3), ("Order-1", 2)]);
    let group = sim.store.consumers("mail").attempts_max(1);
    let run = group.clone();
    sim.wait(async move { run.run_until_caught_up(handle_all).await.unwrap() });
    sim.take_requests();
    let measured = group.partition(Partition::FIRST);
    let lag = sim.wait(async move { measured.lag().await.unwrap() });
    assert_eq!((lag.events, lag.age, lag.parked), (0, Duration::ZERO, 0));
    let requests = sim.take_requests();
    assert_eq!(
        requests, 3,
        "the checkpoint, the last epoch, and the dead letters"
    );

    sim.append(1, &[("Cart-1", 2), ("Order-1", 1)]);
    sim.pass(Duration::from_secs(60));
    sim.append(1, &[("Order-2", 4)]);
    sim.pass(Duration::from_secs(30));
    let measured = group.clone();
    let lag = sim.wait(async move { measured.lag().await.unwrap() });
    assert_eq!((lag.events, lag.age), (7, Duration::from_secs(90)));
    let filtered = group.filter(Filter::default().streams(|stream| stream.id() == "2"));
    let lag = sim.wait(async move { filtered.lag().await.unwrap() });
    assert_eq!((lag.events, lag.age), (4, Duration::from_secs(30)));

    // The lag of a subscription.
    let store = sim.store.clone();
    let (first, lag) = sim.wait(async move {
        let mut feed = store.feed().from_start();
        let first = feed.lag().await.unwrap().events;
        while feed.next().await.unwrap().is_some() {}
        (first, feed.lag().await.unwrap())
    });
    assert_eq!((first, lag.events, lag.age), (12, 0, Duration::ZERO));
}

#[test]
fn lag_of_a_view_counts_events_that_are_not_committed() {
    let mut sim = Sim::new(2);
    sim.append(1, &[("Cart-1", 5)]);
    let view = sim.store.consumers("view").events_max(2).attempts_max(1);
    let consumer = view.partition(Partition::FIRST);
    let lag = sim.wait(async move {
        let failed = consumer.run_exactly_once(async |delivery| match delivery.events[0].index {
            2 => Err(floe_store::Error::Unreachable("no".to_owned()).into()),
            _ => Ok(()),
        });
        failed.await.unwrap_err();
        consumer.lag().await.unwrap()
    });
    assert_eq!(lag.events, 3);
    let parked = sim.wait(async move {
        let parking = view.run_exactly_once_until_caught_up(async |_| {
            Err(floe_store::Error::validation("no").into())
        });
        parking.await.unwrap();
        view.lag().await.unwrap()
    });
    assert_eq!((parked.events, parked.parked), (0, 3));
}
