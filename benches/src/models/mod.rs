//! Transactions of models, compared with the same requests made directly.
//!
//! Both sides use the same engine and table, each with its own items, in alternating rounds, so that only the cost of
//! models differs. No two tasks use the same item, so that there are no conflicts.

mod data;
mod model;
mod plan;
mod raw_requests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe::Db;
use tokio::runtime::Runtime;

use crate::measure::{Rate, cpu_time, median, ratio, shown};
use crate::rounds::{self, Failure, TaskResult, engine, runtime};
use crate::{Benchmark, Fallible, parsed};
use data::ITEMS;
use model::Models;
use plan::{Flags, Plan, Side};
use raw_requests::RawRequests;

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
    /// Performs the operation once, on the items of a task.
    fn step(
        &self,
        operation: Operation,
        items: &TaskItems,
    ) -> impl Future<Output = TaskResult<()>> + Send;
}

#[derive(Clone, Copy)]
enum Operation {
    /// Reads and changes one item.
    Change,
    /// Reads and changes two items together.
    ChangeTwo,
    /// Reads a number of items together.
    Read(usize),
}

/// The keys of the items of one task.
struct TaskItems(Vec<String>);

impl TaskItems {
    const LEN: usize = 20;

    /// The items of a task, in the half of its side.
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

/// A case, with the maximum time of a model relative to raw requests.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    is_durable: bool,
    tasks: u64,
    operation: Operation,
    floor_times: Option<f64>,
}

const CASES: &[Case] = &[
    case("memory_1", 1, Operation::Change, Some(2.0)),
    case("memory_64", 64, Operation::Change, None),
    case("memory_two_1", 1, Operation::ChangeTwo, None),
    case("memory_get_20", 1, Operation::Read(20), None),
    durable(case("durable_64", 64, Operation::Change, Some(1.15))),
    durable(case("durable_two_64", 64, Operation::ChangeTwo, None)),
];

const fn case(
    name: &'static str,
    tasks: u64,
    operation: Operation,
    floor_times: Option<f64>,
) -> Case {
    Case {
        name,
        is_durable: false,
        tasks,
        operation,
        floor_times,
    }
}

const fn durable(case: Case) -> Case {
    Case {
        is_durable: true,
        ..case
    }
}

/// Runs the plan. Returns whether all floors were reached.
fn run(plan: &Plan) -> Fallible<bool> {
    let mut ok = true;
    for is_durable in [false, true] {
        let cases = CASES.iter().filter(|case| case.is_durable == is_durable);
        let wanted: Vec<_> = cases.filter(|case| plan.wants(case.name)).collect();
        if wanted.is_empty() {
            continue;
        }
        let folder = tempfile::tempdir()?;
        let fixture = Fixture::load(is_durable.then(|| folder.path()))?;
        for case in wanted {
            ok &= match plan.only {
                None => fixture.run_case(plan, case)?,
                Some(side) => fixture.run_alone(plan, case, side)?,
            };
        }
    }
    Ok(ok)
}

/// The result of a side in one round.
#[derive(Clone, Copy)]
struct Round {
    rate: Rate,
    cpu: Duration,
}

/// The results of a side in all rounds.
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

    /// CPU time per operation, of the tasks and of the engine.
    #[expect(clippy::cast_precision_loss, reason = "a printed number")]
    fn cpu_micros(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations.max(1) as f64
    }
}

/// Both sides on one engine.
struct Fixture {
    models: Arc<Models>,
    raw: Arc<RawRequests>,
    runtime: Runtime,
}

impl Fixture {
    /// Creates the items in a directory, or in memory.
    fn load(folder: Option<&Path>) -> Fallible<Self> {
        let (runtime, engine) = (runtime()?, engine(folder)?);
        let db = Db::with_engine(Arc::clone(&engine));
        runtime.block_on(data::load(&db)).map_err(|e| e.0)?;
        Ok(Self {
            models: Arc::new(Models(db)),
            raw: Arc::new(RawRequests(engine)),
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
            Side::Model => {
                self.runtime
                    .block_on(measure_round(&self.models, case, side, plan.round))
            }
            Side::Hand => self
                .runtime
                .block_on(measure_round(&self.raw, case, side, plan.round)),
        };
        Ok(Round {
            rate: rate.map_err(|e| e.0)?,
            cpu: cpu_time(own).saturating_sub(cpu_before),
        })
    }
}

/// Runs all tasks for a duration.
async fn measure_round<S: Subject>(
    subject: &Arc<S>,
    case: &Case,
    side: Side,
    duration: Duration,
) -> TaskResult<Rate> {
    let operation = case.operation;
    rounds::run_tasks(duration, 0..case.tasks, |task, round| {
        let (subject, own) = (Arc::clone(subject), TaskItems::new(side, task));
        async move {
            let mut done = 0;
            while !round.is_over() {
                subject.step(operation, &own).await?;
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

    /// Both sides must store the same data, otherwise they are not comparable.
    #[test]
    fn both_sides_store_the_same() {
        let fixture = Fixture::load(None).unwrap();
        let engine = &fixture.raw.0;
        let level = |side, at: usize| {
            let id = TaskItems::new(side, 3).0.swap_remove(at);
            let key = floe_store::Item::new().with("_id", id);
            let get = floe_store::op::GetItem::new(data::SCHEMA.table, key);
            let item = fixture.runtime.block_on(engine.get_item(get)).unwrap().item;
            item.unwrap().get("level").unwrap().clone()
        };
        for operation in [Operation::Change, Operation::ChangeTwo, Operation::Read(20)] {
            let own = TaskItems::new(Side::Model, 3);
            let step = fixture.models.step(operation, &own);
            fixture.runtime.block_on(step).unwrap();
            let own = TaskItems::new(Side::Hand, 3);
            let step = fixture.raw.step(operation, &own);
            fixture.runtime.block_on(step).unwrap();
        }
        for (at, expected) in [(0, 3), (19, 2), (7, 1)] {
            assert_eq!(level(Side::Model, at), expected.into());
            assert_eq!(level(Side::Hand, at), expected.into());
        }
    }

    #[test]
    fn tasks_of_both_sides_use_different_items() {
        let sides = [Side::Model, Side::Hand];
        let ids = sides.map(|side| (0..64).flat_map(move |task| TaskItems::new(side, task).0));
        let all: Vec<String> = ids.into_iter().flatten().collect();
        let unique: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!((all.len(), unique.len()), (2560, 2560));
        assert!(all.iter().all(|id| *id < data::id(ITEMS)));
    }
}
