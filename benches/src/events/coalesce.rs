//! Appends of many tasks to one stream: together, and each for itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use floe::ErrorKind;
use floe::events::{Appender, EventData, EventStore, Expected, StreamName};

use super::Stage;
use super::data::note;
use super::plan::Plan;
use crate::Fallible;
use crate::measure::{Rate, median, ratio};
use crate::play::{self, Sent};

pub(super) const NAME: &str = "coalesced";

const TASKS: u64 = 64;

/// How many times as many appends as without coalescing there must be at least.
const FLOOR_TIMES: f64 = 5.0;

pub(super) fn run(stage: &Stage, plan: &Plan) -> Fallible<bool> {
    let store = stage.db.events();
    let round = || -> Fallible<[f64; 3]> {
        let together = Way::Together(Appender::new(store.clone(), Duration::ZERO));
        let together = stage.wait(play(&together, TASKS, plan.round))?;
        let apart = stage.wait(play(&Way::Apart(store.clone()), TASKS, plan.round))?;
        let alone = stage.wait(play(&Way::Apart(store.clone()), 1, plan.round))?;
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
enum Way {
    /// Those who come at the same time together.
    Together(Appender),
    /// Each for itself, again and again until it is its turn.
    Apart(EventStore),
}

impl Way {
    async fn append(&self, stream: &StreamName) -> Sent<()> {
        match self {
            Self::Together(appender) => {
                appender.append(stream, vec![event()]).await?;
                Ok(())
            }
            Self::Apart(store) => loop {
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

/// A stream that nobody has had.
fn new_stream() -> Sent<StreamName> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = NEXT.fetch_add(1, Ordering::Relaxed).to_string();
    Ok(StreamName::new("Log", id.as_str())?)
}

/// Lets all tasks append to a new stream until the time is over.
async fn play(way: &Way, tasks: u64, duration: Duration) -> Sent<Rate> {
    let stream = new_stream()?;
    play::play(duration, 0..tasks, |_, round| {
        let (way, stream) = (way.clone(), stream.clone());
        async move {
            let mut done = 0;
            while !round.is_over() {
                way.append(&stream).await?;
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
    fn both_ways_append_what_they_count() {
        let stage = Stage::load(None).unwrap();
        let store = stage.db.events();
        let ways = [
            Way::Together(Appender::new(store.clone(), Duration::ZERO)),
            Way::Apart(store.clone()),
        ];
        for way in ways {
            let (stream, tasks) = (new_stream().unwrap(), 8);
            stage
                .wait(async {
                    let appends = (0..tasks).map(|_| {
                        let (way, stream) = (way.clone(), stream.clone());
                        tokio::spawn(async move { way.append(&stream).await })
                    });
                    for append in appends.collect::<Vec<_>>() {
                        append.await??;
                    }
                    Ok(())
                })
                .unwrap();
            let version = stage.runtime.block_on(store.version(&stream)).unwrap();
            assert_eq!(version, tasks);
        }
    }
}
