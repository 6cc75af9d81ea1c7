//! The lag between an append and its delivery to a reader at the tail of the feed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use floe::events::feed::limits::POLL;
use floe::events::feed::{IndexerOptions, Subscription};
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, StreamName};
use tokio::time::MissedTickBehavior;

use super::data::note;
use super::plan::Plan;
use super::{Failure, Fixture, TaskResult};
use crate::Fallible;

pub(super) const NAME: &str = "tail";

const EVENTS_PER_SECOND: u64 = 5_000;
const STREAMS: u64 = 400;
/// Number of writers, each with its own streams.
const TASKS: u64 = 50;
/// Number of events in an append. Each append rewrites the whole Tip, and the reader reads it.
const APPEND_EVENTS: u64 = 5;
/// Maximum lag of an event.
const CEILING_MAX: Duration = Duration::from_secs(1);
/// Minimum ratio of the actual to the planned rate of appends.
const FLOOR_RATE: f64 = 0.95;
/// An event that is not delivered this long after the last append is lost.
const END_MAX: Duration = Duration::from_secs(20);

pub(super) fn run(fixture: &Fixture, plan: &Plan) -> Fallible<bool> {
    let length = plan.round * u32::try_from(plan.rounds).unwrap_or(u32::MAX);
    let tail = fixture.wait(measure_round(fixture, length))?;
    let is_in_time = tail.max() <= CEILING_MAX;
    let ok = is_in_time && tail.per_second >= as_f64(EVENTS_PER_SECOND) * FLOOR_RATE;
    let millis = |delay: Duration| delay.as_secs_f64() * 1e3;
    println!(
        "bench=events case={NAME} events={} streams={STREAMS} per_s={:.0} poll_ms={} p50_ms={:.1} \
         p99_ms={:.1} max_ms={:.1} ceiling_max_ms={} ok={ok}",
        tail.delays.len(),
        tail.per_second,
        POLL.as_millis(),
        millis(tail.quantile(0.5)),
        millis(tail.quantile(0.99)),
        millis(tail.max()),
        CEILING_MAX.as_millis(),
    );
    Ok(ok)
}

/// The result of a run.
struct Tail {
    /// From the response to the append to the delivery, in ascending order.
    delays: Vec<Duration>,
    per_second: f64,
}

impl Tail {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "an index of a list that fits into memory"
    )]
    fn quantile(&self, part: f64) -> Duration {
        let index = (self.delays.len() as f64 * part) as usize;
        self.delays.get(index).copied().unwrap_or_default()
    }

    fn max(&self) -> Duration {
        self.delays.last().copied().unwrap_or_default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a printed number")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// Appends for a duration, while an indexer and a reader run.
async fn measure_round(fixture: &Fixture, length: Duration) -> TaskResult<Tail> {
    // A separate table, so that the feed does not begin with the events of other cases.
    let store = fixture.db.event_store(EventStoreOptions::new("tail"));
    store.ensure_table().await?;
    store.ensure_feed().await?;
    let over = Arc::new(AtomicBool::new(false));
    let indexing = tokio::spawn(index(store.clone(), Arc::clone(&over)));
    let reader = store.feed().from_start();
    let events = EVENTS_PER_SECOND * u64::try_from(length.as_millis())? / 1_000;
    let appends = events / TASKS / APPEND_EVENTS;
    let reading = tokio::spawn(read(reader, appends * TASKS * APPEND_EVENTS));

    let start = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(write(store.clone(), task, appends)))
        .collect();
    let mut acked = HashMap::new();
    for task in tasks {
        acked.extend(task.await??);
    }
    let elapsed = start.elapsed();
    let delivered = tokio::time::timeout(END_MAX, reading).await;
    over.store(true, Ordering::Relaxed);
    let delivered = delivered.map_err(|_| "the reader did not receive all events")???;
    indexing.await??;

    let delay = |(number, came): (u64, Instant)| {
        let acked = acked
            .get(&number)
            .ok_or("the reader received an unknown event")?;
        Ok::<_, Failure>(came.saturating_duration_since(*acked))
    };
    let delays: TaskResult<Vec<Duration>> = delivered.into_iter().map(delay).collect();
    let mut delays = delays?;
    delays.sort_unstable();
    Ok(Tail {
        per_second: as_f64(acked.len() as u64) / elapsed.as_secs_f64(),
        delays,
    })
}

/// Appends events at a constant rate. Returns when each was acknowledged.
async fn write(store: EventStore, task: u64, appends: u64) -> TaskResult<Vec<(u64, Instant)>> {
    let streams = (0..STREAMS).filter(|stream| stream % TASKS == task);
    let streams: Result<Vec<_>, _> = streams
        .map(|stream| StreamName::new("Tail", stream.to_string().as_str()))
        .collect();
    let streams = streams?;
    let pace = Duration::from_micros(1_000_000 * TASKS * APPEND_EVENTS / EVENTS_PER_SECOND);
    let mut pace = tokio::time::interval(pace);
    // A delayed writer catches up, so that the rate is the planned one.
    pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut acked = Vec::new();
    for (append, stream) in (0..appends).zip(streams.iter().cycle()) {
        pace.tick().await;
        let first = (task * appends + append) * APPEND_EVENTS;
        let numbers = first..first + APPEND_EVENTS;
        let events = numbers.clone().map(|number| {
            let body = format!("{number} {}", note());
            EventData::new("Booked", body)
        });
        store.append(stream, Expected::Any, events).await?;
        let now = Instant::now();
        acked.extend(numbers.map(|number| (number, now)));
    }
    Ok(acked)
}

async fn index(store: EventStore, over: Arc<AtomicBool>) -> TaskResult<()> {
    let mut indexer = store.indexer(IndexerOptions::new())?;
    let stop = async {
        while !over.load(Ordering::Relaxed) {
            tokio::time::sleep(POLL).await;
        }
    };
    indexer.run(stop).await?;
    Ok(())
}

/// Reads a number of events. Returns when each arrived.
async fn read(mut feed: Subscription, events: u64) -> TaskResult<Vec<(u64, Instant)>> {
    let mut came = Vec::new();
    while (came.len() as u64) < events {
        let batch = feed.wait_next().await?;
        let now = Instant::now();
        let recorded = batch.streams.iter().flat_map(|(_, events)| events);
        for recorded in recorded {
            let body = String::from_utf8_lossy(&recorded.event.data);
            let number = body.split(' ').next().unwrap_or_default();
            came.push((number.parse::<u64>()?, now));
        }
    }
    Ok(came)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_delivered_once() {
        let fixture = Fixture::load(None).unwrap();
        let tail = fixture
            .wait(measure_round(&fixture, Duration::from_millis(100)))
            .unwrap();
        assert_eq!(tail.delays.len(), 500);
        assert!(tail.delays.is_sorted() && tail.max() >= tail.quantile(0.5));
    }
}
