//! Concurrent appends, each task to its own stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Fixture;
use super::data::STREAM_EVENTS;
use super::plan::{Plan, Side};
use crate::Fallible;
use crate::measure::{Rate, median};
use crate::rounds::{self, TaskResult};

/// Minimum throughput of appends, relative to raw requests.
const FLOOR_TIMES: f64 = 0.8;

/// A round of the plan is split into this many rounds of half the length, because the speed of the disk varies.
const PARTS: u64 = 4;

pub(super) struct Case {
    pub(super) name: &'static str,
    tasks: u64,
}

pub(super) const CASES: [Case; 3] = [
    case("append_1", 1),
    case("append_16", 16),
    case("append_64", 64),
];

const fn case(name: &'static str, tasks: u64) -> Case {
    Case { name, tasks }
}

/// One of the two sides.
pub(super) trait Subject: Send + Sync + 'static {
    /// Appends an event to the stream of a task.
    fn append(&self, stream: &TaskStream) -> impl Future<Output = TaskResult<()>> + Send;
}

/// The stream of one task.
pub(super) struct TaskStream {
    pub(super) id: String,
    pub(super) version: u64,
}

impl TaskStream {
    /// Returns a stream that was not used before.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: format!("{:08}", NEXT.fetch_add(1, Ordering::Relaxed)),
            version: 0,
        }
    }

    /// The stream after an append, or a new one if it is full.
    pub(super) fn appended(self) -> Self {
        let version = self.version + 1;
        if version < STREAM_EVENTS {
            Self { version, ..self }
        } else {
            Self::new()
        }
    }
}

impl Case {
    pub(super) fn run(&self, fixture: &Fixture, plan: &Plan) -> Fallible<bool> {
        // The first rounds warm caches and are not counted.
        self.round(fixture, plan, 0)?;
        let (mut streams, mut hand) = (Vec::new(), Vec::new());
        for number in 0..plan.rounds * PARTS {
            for (side, rate) in self.round(fixture, plan, number)? {
                match side {
                    Side::Streams => streams.push(rate),
                    Side::RawRequests => hand.push(rate),
                }
            }
        }
        let per_second = |rates: &[Rate]| median(rates.iter().map(|r| r.per_second()).collect());
        if let Some(side) = plan.only {
            let rate = per_second(&[streams, hand].concat());
            let name = self.name;
            println!("bench=events case={name} side={side:?} per_s={rate:.0}");
            return Ok(true);
        }
        // The ratio of all rounds together, because deferred work of the store falls into some rounds only.
        let times = all(&streams).per_second() / all(&hand).per_second();
        let ok = times >= FLOOR_TIMES;
        println!(
            "bench=events case={} tasks={} append_per_s={:.0} hand_per_s={:.0} times={times:.2} \
             floor_times={FLOOR_TIMES} ok={ok}",
            self.name,
            self.tasks,
            per_second(&streams),
            per_second(&hand),
        );
        Ok(ok)
    }

    /// Measures each side once. The sides take turns in going first, because work that the store defers runs while the
    /// other side is measured. All rounds differ in length, because the store flushes its buffers when they are full,
    /// which in equal rounds could always happen to the same side.
    fn round(&self, fixture: &Fixture, plan: &Plan, number: u64) -> Fallible<Vec<(Side, Rate)>> {
        let mut sides = Side::ALL;
        if number % 2 == 1 {
            sides.reverse();
        }
        let length = plan.round.mul_f64((0.5 + scattered(number)) / 2.0);
        let sides = sides.into_iter().filter(|side| plan.takes(*side));
        sides
            .map(|side| {
                let played = match side {
                    Side::Streams => {
                        fixture.wait(measure_round(&fixture.streams, self.tasks, length))
                    }
                    Side::RawRequests => {
                        fixture.wait(measure_round(&fixture.raw, self.tasks, length))
                    }
                };
                Ok((side, played?))
            })
            .collect()
    }
}

/// A number between 0 and 1, evenly distributed and different for each argument.
#[expect(clippy::cast_precision_loss, reason = "there are few rounds")]
fn scattered(number: u64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    (number as f64 * GOLDEN).fract()
}

/// The sum of all rounds.
fn all(rounds: &[Rate]) -> Rate {
    Rate {
        operations: rounds.iter().map(|round| round.operations).sum(),
        elapsed: rounds.iter().map(|round| round.elapsed).sum(),
    }
}

/// Runs all tasks for a duration, appending.
async fn measure_round<S: Subject>(
    subject: &Arc<S>,
    tasks: u64,
    duration: Duration,
) -> TaskResult<Rate> {
    rounds::run_tasks(duration, 0..tasks, |_, round| {
        let subject = Arc::clone(subject);
        async move {
            let (mut stream, mut done) = (TaskStream::new(), 0);
            while !round.is_over() {
                subject.append(&stream).await?;
                stream = stream.appended();
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
    fn rounds_differ_in_length_and_are_weighted_by_it() {
        let mut parts: Vec<f64> = (0..100).map(scattered).collect();
        parts.sort_by(f64::total_cmp);
        assert!(parts.windows(2).all(|pair| pair[1] - pair[0] < 0.02));
        let round = |operations, millis| Rate {
            operations,
            elapsed: Duration::from_millis(millis),
        };
        let together = all(&[round(10, 100), round(50, 900)]).per_second();
        assert!((together - 60.0).abs() < 1e-9, "{together}");
    }
}
