//! Loads of a long stream, compared with loads of a short one.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use floe::Db;
use floe::events::{Caching, EventStore, EventStoreOptions, Load};
use floe_testkit::meter::MeteredEngine;

use super::data::{Entry, Ledger, snapshot};
use super::plan::Plan;
use super::{Failure, Fixture, TaskResult};
use crate::Fallible;
use crate::measure::{Rate, median, ratio, repeat, shown};

const LONG_EVENTS: usize = 10_000;
const SHORT_EVENTS: usize = 10;
/// Calving counts 257 bytes for each; one more would exceed 32 KiB.
const FULL_TIP_EVENTS: usize = 127;

/// A case, with the maximum load time of the long stream relative to the short one.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Number of events in the Tip of the long stream.
    tip_events: usize,
    /// Number of events in the short stream, all of them in its Tip.
    short_events: usize,
    ceiling_times: Option<f64>,
}

pub(super) const CASES: [Case; 3] = [
    Case {
        name: "load_snapshot",
        tip_events: SHORT_EVENTS,
        short_events: SHORT_EVENTS,
        ceiling_times: Some(1.25),
    },
    Case {
        name: "load_snapshot_even",
        tip_events: FULL_TIP_EVENTS,
        short_events: FULL_TIP_EVENTS,
        ceiling_times: Some(1.25),
    },
    Case {
        name: "load_snapshot_full",
        tip_events: FULL_TIP_EVENTS,
        short_events: SHORT_EVENTS,
        ceiling_times: None,
    },
];

impl Case {
    pub(super) fn run(&self, fixture: &Fixture, plan: &Plan) -> Fallible<bool> {
        let id = |length: &str| format!("{length}.{}", self.name);
        let (long, short) = (id("long").replace('_', "-"), id("short").replace('_', "-"));
        let short_events = self.short_events;
        fixture.wait(fill(&fixture.db, &long, LONG_EVENTS, self.tip_events))?;
        fixture.wait(fill(&fixture.db, &short, short_events, short_events))?;
        let requests = [
            fixture.wait(requests(fixture, &long, LONG_EVENTS))?,
            fixture.wait(requests(fixture, &short, short_events))?,
        ];
        let events = fixture.db.events();
        let round = || -> Fallible<[f64; 2]> {
            let long = measure_round(fixture, &events, &long, plan.round)?;
            let short = measure_round(fixture, &events, &short, plan.round)?;
            Ok([long, short].map(Rate::per_second))
        };
        // The first round warms caches and is not counted.
        round()?;
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            let [of_long, of_short] = round()?;
            long.push(of_long);
            short.push(of_short);
        }
        let times = ratio(&short, &long);
        let is_fast = self.ceiling_times.is_none_or(|ceiling| times <= ceiling);
        let ok = is_fast && requests == [1, 1];
        let [long_requests, short_requests] = requests;
        println!(
            "bench=events case={} long_events={LONG_EVENTS} short_events={short_events} \
             tip_events={} long_requests={long_requests} short_requests={short_requests} \
             long_per_s={:.0} short_per_s={:.0} times={times:.2} ceiling_times={} ok={ok}",
            self.name,
            self.tip_events,
            median(long),
            median(short),
            shown(self.ceiling_times),
        );
        Ok(ok)
    }
}

/// Loads the stream repeatedly for a duration.
fn measure_round(
    fixture: &Fixture,
    events: &EventStore,
    id: &str,
    duration: Duration,
) -> Fallible<Rate> {
    repeat(duration, || {
        black_box(fixture.wait(load(events, id))?);
        Ok(1)
    })
}

/// Returns the number of entries of the stream.
async fn load(events: &EventStore, id: &str) -> TaskResult<u64> {
    let stream = events.stream::<Ledger>(id).access(snapshot());
    Ok(stream.query(|entries| *entries).await?)
}

/// Counts the requests of one load of a stream.
async fn requests(fixture: &Fixture, id: &str, expected: usize) -> TaskResult<u64> {
    let metered = Arc::new(MeteredEngine::new(Arc::clone(&fixture.raw.engine)));
    let db = Db::with_engine(metered.clone());
    let found = load(&db.events(), id).await?;
    if found != expected as u64 {
        return Err(
            format!("the stream has lost events: expected={expected} actual={found}").into(),
        );
    }
    Ok(metered.take().requests)
}

/// Fills a stream with `events` events, of which the Tip holds `tip_events` and batches the rest.
async fn fill(db: &Db, id: &str, events: usize, tip_events: usize) -> TaskResult<()> {
    // Each append calves the Tip.
    let options = EventStoreOptions::default().tip_events_max(1);
    let caching = Caching::Sliding(Duration::from_secs(60));
    let store = db.event_store(options).cached(caching, 1 << 20);
    let append = async |count: usize| {
        let stream = store.stream::<Ledger>(id).access(snapshot());
        let stream = stream.load(Load::AnyCached);
        let entries = || vec![Entry::new(); count];
        stream.transact(|_| Ok::<_, Failure>(entries())).await
    };
    let mut left = events - tip_events;
    while left > 0 {
        let count = left.min(100);
        append(count).await?;
        left -= count;
    }
    append(tip_events).await
}

#[cfg(test)]
mod tests {
    use floe_store::Item;
    use floe_store::op::GetItem;

    use super::*;

    #[test]
    fn tip_has_the_planned_size_and_a_load_is_one_request() {
        let fixture = Fixture::load(None).unwrap();
        for (events, tip_events) in [(10, 10), (390, 10), (400, 127)] {
            let id = format!("{events}");
            fixture
                .wait(fill(&fixture.db, &id, events, tip_events))
                .unwrap();
            let key = Item::new()
                .with("p", format!("Ledger-{id}"))
                .with("i", 2_147_483_647);
            let get = GetItem::new(&fixture.raw.table, key);
            let output = fixture.runtime.block_on(fixture.raw.engine.get_item(get));
            let tip = output.unwrap().item.unwrap();
            assert_eq!(tip.get("e").unwrap().as_l().unwrap().len(), tip_events);
            assert_eq!(fixture.wait(requests(&fixture, &id, events)).unwrap(), 1);
        }
    }
}
