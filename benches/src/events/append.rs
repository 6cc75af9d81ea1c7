//! Appends of many tasks, each to a stream of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::data::STREAM_EVENTS;
use super::plan::{Plan, Side};
use super::{Failure, Sent, Stage};
use crate::Fallible;
use crate::measure::{Rate, median};

/// The least of the throughput of the hand that appends may have.
const FLOOR_TIMES: f64 = 0.8;

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
        let mut rounds = Vec::new();
        for number in 0..plan.rounds {
            rounds.push(self.round(stage, plan, number)?);
        }
        let rates = |side| rounds.iter().map(|round| of_side(round, side)).collect();
        let (streams, hand): (Vec<f64>, Vec<f64>) = (rates(Side::Streams), rates(Side::Hand));
        if let Some(side) = plan.only {
            let rates = median(rates(side));
            println!(
                "bench=events case={} side={side:?} per_s={rates:.0}",
                self.name
            );
            return Ok(true);
        }
        // Of all rounds together: what the store puts off falls into some of them and not into others.
        let times = streams.iter().sum::<f64>() / hand.iter().sum::<f64>();
        let ok = times >= FLOOR_TIMES;
        println!(
            "bench=events case={} tasks={} append_per_s={:.0} hand_per_s={:.0} times={times:.2} \
             floor_times={FLOOR_TIMES} ok={ok}",
            self.name,
            self.tasks,
            median(streams),
            median(hand),
        );
        Ok(ok)
    }

    /// What each side has done in a second. Each goes first in turn: what the store puts off is done while the other one is
    /// measured.
    fn round(&self, stage: &Stage, plan: &Plan, number: u64) -> Fallible<[(Side, f64); 2]> {
        let mut sides = Side::ALL;
        if number % 2 == 1 {
            sides.reverse();
        }
        let mut round = sides.map(|side| (side, 0.0));
        for (side, rate) in round.iter_mut().filter(|(side, _)| plan.takes(*side)) {
            let played = match side {
                Side::Streams => stage.wait(play(&stage.streams, self.tasks, plan.round)),
                Side::Hand => stage.wait(play(&stage.hand, self.tasks, plan.round)),
            };
            *rate = played?.per_second();
        }
        Ok(round)
    }
}

fn of_side(round: &[(Side, f64); 2], side: Side) -> f64 {
    let own = round.iter().find(|(own, _)| *own == side);
    own.map_or(0.0, |(_, rate)| *rate)
}

/// Lets all tasks append until the time is over.
async fn play<S: Subject>(subject: &Arc<S>, tasks: u64, duration: Duration) -> Sent<Rate> {
    let over = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let tasks: Vec<_> = (0..tasks)
        .map(|_| {
            let (subject, over) = (Arc::clone(subject), Arc::clone(&over));
            tokio::spawn(async move {
                let (mut own, mut done) = (Own::new(), 0);
                while !over.load(Ordering::Relaxed) {
                    subject.append(&own).await?;
                    own = own.appended();
                    done += 1;
                    if start.elapsed() >= duration {
                        over.store(true, Ordering::Relaxed);
                    }
                }
                Ok::<u64, Failure>(done)
            })
        })
        .collect();
    let mut operations = 0;
    for task in tasks {
        operations += task.await??;
    }
    Ok(Rate {
        operations,
        elapsed: start.elapsed(),
    })
}
