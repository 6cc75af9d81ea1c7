//! Transactions of models beside the same requests made by hand.
//!
//! Both sides work on the same engine and the same table, each on items of its own, in alternating rounds:
//! what differs is what a model does for its user. No two tasks touch the same item, so that nothing is
//! measured but the way there and back.

mod data;
mod hand;
mod model;
mod plan;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe::Db;
use tokio::runtime::Runtime;

use crate::measure::{Rate, cpu_time, median, ratio, shown};
use crate::play::{self, Failure, Sent, engine, runtime};
use crate::{Benchmark, Fallible, parsed};
use data::ITEMS;
use hand::Hand;
use model::Models;
use plan::{Flags, Plan, Side};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "models",
    about: plan::ABOUT,
    details: plan::DETAILS,
    flags: Flags::augment_args,
    prepare: |flags| {
        let plan = Plan::of(parsed(flags)?);
        Ok(Box::new(move || run(&plan)))
    },
};

/// One of the two sides.
trait Subject: Send + Sync + 'static {
    /// Does the work once, on the items of a task.
    fn step(&self, work: Work, own: &Own) -> impl Future<Output = Sent<()>> + Send;
}

#[derive(Clone, Copy)]
enum Work {
    /// One item is read and changed.
    Change,
    /// Two are, at once.
    ChangeTwo,
    /// So many are read at once.
    Read(usize),
}

/// The keys of the items that belong to one task.
struct Own(Vec<String>);

impl Own {
    const LEN: usize = 20;

    /// The items of this task, in the half that this side has.
    fn new(side: Side, task: u64) -> Self {
        let start = match side {
            Side::Model => 0,
            Side::Hand => ITEMS / 2,
        };
        let len = Self::LEN as u64;
        Self((0..len).map(|n| data::id(start + task * len + n)).collect())
    }

    fn one(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    fn two(&self) -> [&str; 2] {
        [self.one(), self.0.last().map_or("", String::as_str)]
    }

    fn some(&self, count: usize) -> &[String] {
        self.0.get(..count).unwrap_or(&self.0)
    }
}

/// A case, with the most times as long as the hand that a model may take.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    is_durable: bool,
    tasks: u64,
    work: Work,
    floor_times: Option<f64>,
}

const CASES: &[Case] = &[
    case("memory_1", 1, Work::Change, Some(2.0)),
    case("memory_64", 64, Work::Change, None),
    case("memory_two_1", 1, Work::ChangeTwo, None),
    case("memory_get_20", 1, Work::Read(20), None),
    durable(case("durable_64", 64, Work::Change, Some(1.15))),
    durable(case("durable_two_64", 64, Work::ChangeTwo, None)),
];

const fn case(name: &'static str, tasks: u64, work: Work, floor_times: Option<f64>) -> Case {
    Case {
        name,
        is_durable: false,
        tasks,
        work,
        floor_times,
    }
}

const fn durable(case: Case) -> Case {
    Case {
        is_durable: true,
        ..case
    }
}

/// Runs the plan; true if every floor was reached.
fn run(plan: &Plan) -> Fallible<bool> {
    let mut ok = true;
    for is_durable in [false, true] {
        let cases = CASES.iter().filter(|case| case.is_durable == is_durable);
        let wanted: Vec<_> = cases.filter(|case| plan.wants(case.name)).collect();
        if wanted.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir()?;
        let stage = Stage::load(is_durable.then(|| folder.path()))?;
        for case in wanted {
            ok &= match plan.only {
                None => stage.run_case(plan, case)?,
                Some(side) => stage.run_alone(plan, case, side)?,
            };
        }
    }
    Ok(ok)
}

/// What a side has done in one round.
#[derive(Clone, Copy)]
struct Round {
    rate: Rate,
    cpu: Duration,
}

/// What a side has done in all rounds.
struct Sum {
    side: Side,
    rates: Vec<f64>,
    operations: u64,
    cpu: Duration,
}

impl Sum {
    fn new(side: Side) -> Self {
        Self {
            side,
            rates: Vec::new(),
            operations: 0,
            cpu: Duration::ZERO,
        }
    }

    fn add(&mut self, round: Round) {
        self.rates.push(round.rate.per_second());
        self.operations += round.rate.operations;
        self.cpu += round.cpu;
    }

    fn per_second(&self) -> f64 {
        median(self.rates.clone())
    }

    /// The time on a core that each operation took, of the tasks and of the engine.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations.max(1) as f64
    }
}

/// Both sides on one engine.
struct Stage {
    models: Arc<Models>,
    hand: Arc<Hand>,
    runtime: Runtime,
}

impl Stage {
    /// On a directory, or in memory.
    fn load(folder: Option<&Path>) -> Fallible<Self> {
        let (runtime, engine) = (runtime()?, engine(folder)?);
        let db = Db::with_engine(Arc::clone(&engine));
        runtime.block_on(data::load(&db)).map_err(|e| e.0)?;
        Ok(Self {
            models: Arc::new(Models(db)),
            hand: Arc::new(Hand(engine)),
            runtime,
        })
    }

    fn run_case(&self, plan: &Plan, case: &Case) -> Fallible<bool> {
        // The first round warms caches and is not counted.
        let mut sums = [Side::Model, Side::Hand].map(Sum::new);
        for sum in &sums {
            self.round(plan, case, sum.side)?;
        }
        for _ in 0..plan.rounds {
            for sum in &mut sums {
                sum.add(self.round(plan, case, sum.side)?);
            }
        }
        let [model, hand] = sums;
        let times = ratio(&hand.rates, &model.rates);
        let times_cpu = model.cpu_micros() / hand.cpu_micros();
        let ok = case.floor_times.is_none_or(|floor| times <= floor);
        println!(
            "bench=models case={} tasks={} model_per_s={:.0} hand_per_s={:.0} model_cpu_us={:.1} \
             hand_cpu_us={:.1} times_cpu={times_cpu:.2} times={times:.2} floor_times={} ok={ok}",
            case.name,
            case.tasks,
            model.per_second(),
            hand.per_second(),
            model.cpu_micros(),
            hand.cpu_micros(),
            shown(case.floor_times),
        );
        Ok(ok)
    }

    fn run_alone(&self, plan: &Plan, case: &Case, side: Side) -> Fallible<bool> {
        let mut sum = Sum::new(side);
        for _ in 0..plan.rounds {
            sum.add(self.round(plan, case, side)?);
        }
        println!(
            "bench=models case={} tasks={} side={side:?} operations={} per_s={:.0} cpu_us={:.1}",
            case.name,
            case.tasks,
            sum.operations,
            sum.per_second(),
            sum.cpu_micros(),
        );
        Ok(true)
    }

    fn round(&self, plan: &Plan, case: &Case, side: Side) -> Fallible<Round> {
        let own = std::process::id();
        let cpu_before = cpu_time(own);
        let rate = match side {
            Side::Model => self
                .runtime
                .block_on(play(&self.models, case, side, plan.round)),
            Side::Hand => self
                .runtime
                .block_on(play(&self.hand, case, side, plan.round)),
        };
        Ok(Round {
            rate: rate.map_err(|e| e.0)?,
            cpu: cpu_time(own).saturating_sub(cpu_before),
        })
    }
}

/// Lets all tasks work until the time is over.
async fn play<S: Subject>(
    subject: &Arc<S>,
    case: &Case,
    side: Side,
    duration: Duration,
) -> Sent<Rate> {
    let work = case.work;
    play::play(duration, 0..case.tasks, |task, round| {
        let (subject, own) = (Arc::clone(subject), Own::new(side, task));
        async move {
            let mut done = 0;
            while !round.is_over() {
                subject.step(work, &own).await?;
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

    /// Both sides must leave the same behind, or they are not doing the same work.
    #[test]
    fn both_sides_do_the_same() {
        let stage = Stage::load(None).unwrap();
        let engine = &stage.hand.0;
        let level = |side, at: usize| {
            let id = Own::new(side, 3).0.swap_remove(at);
            let key = floe_store::Item::new().with("_id", id);
            let get = floe_store::op::GetItem::new(data::SCHEMA.table, key);
            let item = stage.runtime.block_on(engine.get_item(get)).unwrap().item;
            item.unwrap().get("level").unwrap().clone()
        };
        for work in [Work::Change, Work::ChangeTwo, Work::Read(20)] {
            let own = Own::new(Side::Model, 3);
            let step = stage.models.step(work, &own);
            stage.runtime.block_on(step).unwrap();
            let own = Own::new(Side::Hand, 3);
            let step = stage.hand.step(work, &own);
            stage.runtime.block_on(step).unwrap();
        }
        for (at, expected) in [(0, 3), (19, 2), (7, 1)] {
            assert_eq!(level(Side::Model, at), expected.into());
            assert_eq!(level(Side::Hand, at), expected.into());
        }
    }

    #[test]
    fn the_tasks_of_both_sides_have_items_of_their_own() {
        let sides = [Side::Model, Side::Hand];
        let ids = sides.map(|side| (0..64).flat_map(move |task| Own::new(side, task).0));
        let all: Vec<String> = ids.into_iter().flatten().collect();
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), unique.len()), (2560, 2560));
        assert!(all.iter().all(|id| *id < data::id(ITEMS)));
    }
}
