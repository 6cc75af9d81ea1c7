//! Loads of a long stream beside those of a short one.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use floe::Db;
use floe::events::{Caching, EventStore, EventStoreOptions, Load};
use floe_testkit::meter::MeteredEngine;

use super::data::{Entry, Ledger, snapshot};
use super::plan::Plan;
use super::{Failure, Sent, Stage};
use crate::Fallible;
use crate::measure::{Rate, median, ratio, repeat, shown};

const LONG_EVENTS: usize = 10_000;
const SHORT_EVENTS: usize = 10;
/// Of 257 bytes each as calving counts them: with one more, they would be beyond 32 KiB.
const FULL_TIP_EVENTS: usize = 127;

/// A case, with the most times as long as the short stream that the long one may take.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// How many events the Tip of the long stream holds in the end.
    tip_events: usize,
    /// How many events the short stream has, all of them in its Tip.
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
    pub(super) fn run(&self, stage: &Stage, plan: &Plan) -> Fallible<bool> {
        let id = |length: &str| format!("{length}.{}", self.name);
        let (long, short) = (id("long").replace('_', "-"), id("short").replace('_', "-"));
        let short_events = self.short_events;
        stage.wait(fill(&stage.db, &long, LONG_EVENTS, self.tip_events))?;
        stage.wait(fill(&stage.db, &short, short_events, short_events))?;
        let requests = [
            stage.wait(requests(stage, &long, LONG_EVENTS))?,
            stage.wait(requests(stage, &short, short_events))?,
        ];
        let events = stage.db.events();
        let round = || -> Fallible<[f64; 2]> {
            let long = play(stage, &events, &long, plan.round)?;
            let short = play(stage, &events, &short, plan.round)?;
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

/// Loads until the time is over.
fn play(stage: &Stage, events: &EventStore, id: &str, duration: Duration) -> Fallible<Rate> {
    repeat(duration, || {
        black_box(stage.wait(load(events, id))?);
        Ok(1)
    })
}

/// How many entries the stream has.
async fn load(events: &EventStore, id: &str) -> Sent<u64> {
    let stream = events.stream::<Ledger>(id).access(snapshot());
    Ok(stream.query(|entries| *entries).await?)
}

/// How many requests it takes to load a stream.
async fn requests(stage: &Stage, id: &str, expected: usize) -> Sent<u64> {
    let metered = Arc::new(MeteredEngine::new(Arc::clone(&stage.hand.engine)));
    let db = Db::with_engine(metered.clone());
    let found = load(&db.events(), id).await?;
    if found != expected as u64 {
        return Err(format!("a stream has lost events: expected={expected} actual={found}").into());
    }
    Ok(metered.take().requests)
}

/// Makes a stream of so many events, of which the Tip holds this many and batches the rest.
async fn fill(db: &Db, id: &str, events: usize, tip_events: usize) -> Sent<()> {
    // Each append finds a Tip that is to be calved.
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
    fn the_tip_holds_what_it_shall_and_a_load_is_one_request() {
        let stage = Stage::load(None).unwrap();
        for (events, tip_events) in [(10, 10), (390, 10), (400, 127)] {
            let id = format!("{events}");
            stage
                .wait(fill(&stage.db, &id, events, tip_events))
                .unwrap();
            let key = Item::new()
                .with("p", format!("Ledger-{id}"))
                .with("i", 2_147_483_647);
            let get = GetItem::new(&stage.hand.table, key);
            let output = stage.runtime.block_on(stage.hand.engine.get_item(get));
            let tip = output.unwrap().item.unwrap();
            assert_eq!(tip.get("e").unwrap().as_l().unwrap().len(), tip_events);
            assert_eq!(stage.wait(requests(&stage, &id, events)).unwrap(), 1);
        }
    }
}
