//! Appends of many tasks, each to a stream of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Stage;
use super::data::STREAM_EVENTS;
use super::plan::{Plan, Side};
use crate::Fallible;
use crate::measure::{Rate, median};
use crate::play::{self, Sent};

/// The least of the throughput of the hand that appends may have.
const FLOOR_TIMES: f64 = 0.8;

/// A round of the plan is taken in so many, each half as long: the disk is not the same from one moment to the next.
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
    fn append(&self, own: &Own) -> impl Future<Output = Sent<()>> + Send;
}

/// The stream that belongs to one task.
pub(super) struct Own {
    pub(super) id: String,
    pub(super) version: u64,
}

impl Own {
    /// A stream that nobody has had.
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            id: format!("{:08}", NEXT.fetch_add(1, Ordering::Relaxed)),
            version: 0,
        }
    }

    /// The stream after an append: the next one if this one is long enough.
    pub(super) fn appended(self) -> Self {
        let version = self.version + 1;
        match version < STREAM_EVENTS {
            true => Self { version, ..self },
            false => Self::new(),
        }
    }
}

impl Case {
    pub(super) fn run(&self, stage: &Stage, plan: &Plan) -> Fallible<bool> {
        // The first rounds warm caches and are not counted.
        self.round(stage, plan, 0)?;
        let (mut streams, mut hand) = (Vec::new(), Vec::new());
        for number in 0..plan.rounds * PARTS {
            for (side, rate) in self.round(stage, plan, number)? {
                match side {
                    Side::Streams => streams.push(rate),
                    Side::Hand => hand.push(rate),
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
        // Of all rounds together: what the store puts off falls into some of them and not into others.
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

    /// What each side has done in a round. Each goes first in turn: what the store puts off is done while the other one is
    /// measured. No two rounds are of the same length: the store writes its buffers out each time that they are full, and
    /// in equal rounds that could fall to the same side every time.
    fn round(&self, stage: &Stage, plan: &Plan, number: u64) -> Fallible<Vec<(Side, Rate)>> {
        let mut sides = Side::ALL;
        if number % 2 == 1 {
            sides.reverse();
        }
        let length = plan.round.mul_f64((0.5 + scattered(number)) / 2.0);
        let sides = sides.into_iter().filter(|side| plan.takes(*side));
        sides
            .map(|side| {
                let played = match side {
                    Side::Streams => stage.wait(play(&stage.streams, self.tasks, length)),
                    Side::Hand => stage.wait(play(&stage.hand, self.tasks, length)),
                };
                Ok((side, played?))
            })
            .collect()
    }
}

/// A part of one for each number, evenly scattered, and another one for each.
#[expect(clippy::cast_precision_loss, reason = "there are few rounds")]
fn scattered(number: u64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    (number as f64 * GOLDEN).fract()
}

/// All rounds as one.
fn all(rounds: &[Rate]) -> Rate {
    Rate {
        operations: rounds.iter().map(|round| round.operations).sum(),
        elapsed: rounds.iter().map(|round| round.elapsed).sum(),
    }
}

/// Lets all tasks append until the time is over.
async fn play<S: Subject>(subject: &Arc<S>, tasks: u64, duration: Duration) -> Sent<Rate> {
    play::play(duration, 0..tasks, |_, round| {
        let subject = Arc::clone(subject);
        async move {
            let (mut own, mut done) = (Own::new(), 0);
            while !round.is_over() {
                subject.append(&own).await?;
                own = own.appended();
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
    fn rounds_are_of_all_lengths_and_count_as_long_as_they_were() {
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
