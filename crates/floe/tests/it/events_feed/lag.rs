//! How far behind somebody is, and what it costs to know.

use std::time::Duration;

use floe::Error;
use floe::events::feed::{Filter, Handled, Partition};
use floe::events::{Recorded, StreamName};

use super::sim::Sim;

async fn done(_: StreamName, _: Vec<Recorded>) -> Result<Handled, Error> {
    Ok(Handled::All)
}

#[test]
fn lag_is_told_in_events_and_seconds() {
    let mut sim = Sim::new(1);
    sim.append(1, &[("Cart-1", 3), ("Order-1", 2)]);
    let group = sim.store.consumers("mail").tries_max(1);
    let run = group.clone();
    sim.wait(async move { run.run_until_caught_up(done).await.unwrap() });
    sim.take_requests();
    let asked = group.partition(Partition::FIRST);
    let lag = sim.wait(async move { asked.lag().await.unwrap() });
    assert_eq!((lag.events, lag.age, lag.parked), (0, Duration::ZERO, 0));
    assert_eq!(sim.take_requests(), 3, "the progress, the last epoch, and the dead letters");

    sim.append(1, &[("Cart-1", 2), ("Order-1", 1)]);
    sim.pass(Duration::from_secs(60));
    sim.append(1, &[("Order-2", 4)]);
    sim.pass(Duration::from_secs(30));
    let asked = group.clone();
    let lag = sim.wait(async move { asked.lag().await.unwrap() });
    assert_eq!((lag.events, lag.age), (7, Duration::from_secs(90)));
    let late = group.filter(Filter::default().streams(|stream| stream.id() == "2"));
    let lag = sim.wait(async move { late.lag().await.unwrap() });
    assert_eq!((lag.events, lag.age), (4, Duration::from_secs(30)));

    // A subscription tells the same of itself.
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
fn a_view_is_behind_by_the_events_that_are_not_in_it() {
    let mut sim = Sim::new(2);
    sim.append(1, &[("Cart-1", 5)]);
    let view = sim.store.consumers("view").events_max(2).tries_max(1);
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
        let parks = view.run_exactly_once_until_caught_up(async |_| {
            Err(floe_store::Error::validation("no").into())
        });
        parks.await.unwrap();
        view.lag().await.unwrap()
    });
    assert_eq!((parked.events, parked.parked), (0, 3));
}
