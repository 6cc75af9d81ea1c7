//! Concurrent appends to one stream, with and without coalescing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use floe::ErrorKind;
use floe::events::{Appender, EventData, EventStore, Expected, StreamName};

use super::Fixture;
use super::data::note;
use super::plan::Plan;
use crate::Fallible;
use crate::measure::{Rate, median, ratio};
use crate::rounds::{self, TaskResult};

pub(super) const NAME: &str = "coalesced";

const TASKS: u64 = 64;

/// Minimum throughput relative to appends without coalescing.
const FLOOR_TIMES: f64 = 5.0;

pub(super) fn run(fixture: &Fixture, plan: &Plan) -> Fallible<bool> {
    let store = fixture.db.events();
    let round = || -> Fallible<[f64; 3]> {
        let together = AppendMode::Coalesced(Appender::new(store.clone(), Duration::ZERO));
        let together = fixture.wait(measure_round(&together, TASKS, plan.round))?;
        let apart = fixture.wait(measure_round(
            &AppendMode::Separate(store.clone()),
            TASKS,
            plan.round,
        ))?;
        let alone = fixture.wait(measure_round(
            &AppendMode::Separate(store.clone()),
            1,
            plan.round,
        ))?;
        Ok([together, apart, alone].map(Rate::per_second))
    };
    // The first round warms caches and is not counted.
    round()?;
    let (mut together, mut apart, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let [of_all, of_each, of_one] = round()?;
        together.push(of_all);
        apart.push(of_each);
        alone.push(of_one);
    }
    let times = ratio(&together, &apart);
    let times_alone = ratio(&together, &alone);
    let ok = times >= FLOOR_TIMES;
    println!(
        "bench=events case={NAME} tasks={TASKS} coalesced_per_s={:.0} apart_per_s={:.0} \
         alone_per_s={:.0} times_alone={times_alone:.2} times={times:.2} floor_times={FLOOR_TIMES} ok={ok}",
        median(together),
        median(apart),
        median(alone),
    );
    Ok(ok)
}

/// How the tasks append.
#[derive(Clone)]
enum AppendMode {
    /// Concurrent appends are coalesced.
    Coalesced(Appender),
    /// Each task appends separately, and retries after conflicts.
    Separate(EventStore),
}

impl AppendMode {
    async fn append(&self, stream: &StreamName) -> TaskResult<()> {
        match self {
            Self::Coalesced(appender) => {
                appender.append(stream, vec![event()]).await?;
                Ok(())
            }
            Self::Separate(store) => loop {
                match store.append(stream, Expected::Any, [event()]).await {
                    Err(error) if error.kind() == ErrorKind::MaxResyncsExhausted => {}
                    appended => return Ok(appended.map(drop)?),
                }
            },
        }
    }
}

fn event() -> EventData {
    EventData::new("Booked", note())
}

/// Returns a stream that was not used before.
fn new_stream() -> TaskResult<StreamName> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    Ok(StreamName::new("Log", id.as_str())?)
}

/// Runs all tasks for a duration, appending to a new stream.
async fn measure_round(mode: &AppendMode, tasks: u64, duration: Duration) -> TaskResult<Rate> {
    let stream = new_stream()?;
    rounds::run_tasks(duration, 0..tasks, |_, round| {
        let (mode, stream) = (mode.clone(), stream.clone());
        async move {
            let mut done = 0;
            while !round.is_over() {
                mode.append(&stream).await?;
                done += 1;
            }
            Ok(done)
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modes_append_every_event() {
        let fixture = Fixture::load(None).unwrap();
        let store = fixture.db.events();
        let modes = [
            AppendMode::Coalesced(Appender::new(store.clone(), Duration::ZERO)),
            AppendMode::Separate(store.clone()),
        ];
        for mode in modes {
            let (stream, tasks) = (new_stream().unwrap(), 8);
            fixture
                .wait(async {
                    let appends = (0..tasks).map(|_| {
                        let (mode, stream) = (mode.clone(), stream.clone());
                        tokio::spawn(async move { mode.append(&stream).await })
                    });
                    for append in appends.collect::<Vec<_>>() {
                        append.await??;
                    }
                    Ok(())
                })
                .unwrap();
            let version = fixture.runtime.block_on(store.version(&stream)).unwrap();
            assert_eq!(version, tasks);
        }
    }
}
