//! The embedded engine, compared with the raw key-value store and with `dynoxide-rs`.
//!
//! All three store the same items in a directory and sync every write before they acknowledge it. The raw store does
//! the minimum that the engine must do: for a conditional put, it reads the item, writes the item, its index entry and
//! its change record in one batch, and syncs; for several writers, one batch and one sync for all of them.

mod data;
mod dynoxide;
mod floe;
mod plan;
mod raw;

use std::path::Path;
use std::time::Duration;

use clap::Args;

use crate::measure::{Rate, median, ratio, resident_mib, shown};
use crate::{Benchmark, Fallible, parsed};
use data::Picker;
use plan::{Flags, Plan};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "engine",
    about: plan::ABOUT,
    details: plan::DETAILS,
    flags: Flags::augment_args,
    prepare: |flags| {
        let plan = Plan::of(parsed(flags)?);
        Ok(Box::new(move || run(&plan)))
    },
};

/// How the read items are used. It makes a difference for the engine only: the raw store has no values, and
/// `dynoxide-rs` always decodes them.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Decoding {
    /// Items stay packed.
    Lazy,
    /// Every value is decoded.
    Full,
}

/// A store under measurement.
pub(crate) trait Subject {
    /// Reads items by their keys, sequentially, for a duration.
    fn get(&self, picker: &mut Picker, decoding: Decoding, duration: Duration) -> Fallible<Rate>;
    /// Reads `count` consecutive items of a partition, repeatedly.
    fn query(
        &self,
        picker: &mut Picker,
        count: usize,
        decoding: Decoding,
        duration: Duration,
    ) -> Fallible<Rate>;
    /// Replaces items under a condition, durably, from concurrent writers.
    fn put(&self, picker: &mut Picker, writers: usize, duration: Duration) -> Fallible<Rate>;
    /// Replaces three items under conditions in one durable transaction, from one writer.
    fn transact(&self, picker: &mut Picker, duration: Duration) -> Fallible<Rate>;
}

#[derive(Clone, Copy)]
enum Operation {
    Get(Decoding),
    Query(usize, Decoding),
    Put(usize),
    Transact,
}

impl Operation {
    fn on(self, subject: &dyn Subject, picker: &mut Picker, round: Duration) -> Fallible<f64> {
        let rate = match self {
            Self::Get(decoding) => subject.get(picker, decoding, round),
            Self::Query(count, decoding) => subject.query(picker, count, decoding, round),
            Self::Put(writers) => subject.put(picker, writers, round),
            Self::Transact => subject.transact(picker, round),
        };
        rate.map(Rate::per_second)
    }
}

/// A case, with the minimum ratios.
struct Case {
    name: &'static str,
    operation: Operation,
    floor_raw: Option<f64>,
    floor_dynoxide: Option<f64>,
}

const CASES: &[Case] = &[
    case("get", Operation::Get(Decoding::Lazy), Some(0.5), Some(4.0)),
    case("get_read", Operation::Get(Decoding::Full), None, None),
    case(
        "query_20",
        Operation::Query(20, Decoding::Lazy),
        Some(0.5),
        Some(6.0),
    ),
    case(
        "query_20_read",
        Operation::Query(20, Decoding::Full),
        None,
        None,
    ),
    case(
        "query_1000",
        Operation::Query(1000, Decoding::Lazy),
        None,
        None,
    ),
    case("put_1", Operation::Put(1), Some(0.8), Some(5.0)),
    case("put_16", Operation::Put(16), None, None),
    case("put_64", Operation::Put(64), Some(0.6), Some(25.0)),
    case("put_256", Operation::Put(256), None, None),
    case("transact_3", Operation::Transact, None, Some(15.0)),
];

const fn case(
    name: &'static str,
    operation: Operation,
    floor_raw: Option<f64>,
    floor_dynoxide: Option<f64>,
) -> Case {
    Case {
        name,
        operation,
        floor_raw,
        floor_dynoxide,
    }
}

/// Runs the plan. Returns whether all floors were reached.
fn run(plan: &Plan) -> Fallible<bool> {
    let mut ok = true;
    if CASES.iter().any(|case| plan.wants(case.name)) {
        ok &= run_cases(plan)?;
    }
    if plan.wants("growth") {
        ok &= run_growth(plan)?;
    }
    Ok(ok)
}

fn run_cases(plan: &Plan) -> Fallible<bool> {
    let folder = tempfile::tempdir()?;
    if plan.alone {
        return run_alone(plan, &floe::Floe::load(folder.path(), plan.items)?);
    }
    let (floe, raw) = load_pair(folder.path(), plan.items)?;
    eprintln!("loading: subject=dynoxide items={}", plan.items);
    let dynoxide = dynoxide::Dynoxide::load(&folder.path().join("dynoxide.db"), plan.items)?;
    let mut ok = true;
    for case in CASES.iter().filter(|case| plan.wants(case.name)) {
        ok &= run_case(plan, case, [&floe, &raw, &dynoxide])?;
    }
    Ok(ok)
}

fn run_alone(plan: &Plan, floe: &floe::Floe) -> Fallible<bool> {
    for case in CASES.iter().filter(|case| plan.wants(case.name)) {
        let mut picker = Picker::new(1, plan.items);
        let mut rates = Vec::new();
        for _ in 0..plan.rounds {
            rates.push(case.operation.on(floe, &mut picker, plan.round)?);
        }
        println!(
            "bench=engine case={} items={} floe_per_s={:.0}",
            case.name,
            plan.items,
            median(rates)
        );
    }
    Ok(true)
}

fn load_pair(folder: &Path, items: u64) -> Fallible<(floe::Floe, raw::Raw)> {
    eprintln!("loading: subject=floe items={items}");
    let floe = floe::Floe::load(&folder.join("floe"), items)?;
    eprintln!("loading: subject=raw items={items}");
    let raw = raw::Raw::load(&folder.join("raw"), items)?;
    Ok((floe, raw))
}

fn run_case(plan: &Plan, case: &Case, subjects: [&dyn Subject; 3]) -> Fallible<bool> {
    let mut pickers = [1, 2, 3].map(|seed| Picker::new(seed, plan.items));
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..=plan.rounds {
        for ((subject, picker), rates) in subjects.iter().zip(&mut pickers).zip(&mut rates) {
            let rate = case.operation.on(*subject, picker, plan.round)?;
            // The first round warms caches and is not counted.
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let [floe, raw, dynoxide] = &rates;
    let vs_raw = ratio(floe, raw);
    let vs_dynoxide = ratio(floe, dynoxide);
    let reached = |floor: Option<f64>, ratio: f64| floor.is_none_or(|floor| ratio >= floor);
    let ok = reached(case.floor_raw, vs_raw) && reached(case.floor_dynoxide, vs_dynoxide);
    println!(
        "bench=engine case={} items={} floe_per_s={:.0} raw_per_s={:.0} dynoxide_per_s={:.0} \
         vs_raw={vs_raw:.2} vs_dynoxide={vs_dynoxide:.1} floor_raw={} floor_dynoxide={} ok={ok}",
        case.name,
        plan.items,
        median(floe.clone()),
        median(raw.clone()),
        median(dynoxide.clone()),
        shown(case.floor_raw),
        shown(case.floor_dynoxide),
    );
    Ok(ok)
}

/// Measures how the throughput of each operation decreases as the table grows, compared with the raw store.
fn run_growth(plan: &Plan) -> Fallible<bool> {
    // The engine may slow down by a quarter more than the raw store, because of noise.
    const SLACK: f64 = 1.25;
    let operations = [
        ("get", Operation::Get(Decoding::Lazy)),
        ("query_20", Operation::Query(20, Decoding::Lazy)),
        ("put_64", Operation::Put(64)),
    ];
    let mut smallest: Option<[(f64, f64); 3]> = None;
    let mut ok = true;
    let mut items = 10_000;
    while items <= plan.growth_to {
        let folder = tempfile::tempdir()?;
        let before = resident_mib();
        let (floe, raw) = load_pair(folder.path(), items)?;
        let mut now = [(0.0, 0.0); 3];
        for ((name, operation), slot) in operations.iter().zip(&mut now) {
            *slot = growth_rates(plan, *operation, &floe, &raw, items)?;
            let base = smallest.map(|s| {
                operations
                    .iter()
                    .zip(s)
                    .find(|(w, _)| w.0 == *name)
                    .map(|(_, r)| r)
            });
            let (floe_base, raw_base) = base.flatten().unwrap_or(*slot);
            let (floe_slower, raw_slower) = (floe_base / slot.0, raw_base / slot.1);
            let fine = floe_slower <= raw_slower.max(1.0) * SLACK;
            ok &= fine;
            println!(
                "bench=engine case=growth_{name} items={items} floe_per_s={:.0} raw_per_s={:.0} \
                 vs_raw={:.2} floe_slower={floe_slower:.2} raw_slower={raw_slower:.2} \
                 rss_mib={} ok={fine}",
                slot.0,
                slot.1,
                slot.0 / slot.1,
                resident_mib().saturating_sub(before),
            );
        }
        smallest.get_or_insert(now);
        items *= 10;
    }
    Ok(ok)
}

fn growth_rates(
    plan: &Plan,
    operation: Operation,
    floe: &floe::Floe,
    raw: &raw::Raw,
    items: u64,
) -> Fallible<(f64, f64)> {
    let mut pickers = [4, 5].map(|seed| Picker::new(seed, items));
    let [floe_picker, raw_picker] = &mut pickers;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=plan.rounds {
        let rates = (
            operation.on(floe, floe_picker, plan.round)?,
            operation.on(raw, raw_picker, plan.round)?,
        );
        if round > 0 {
            ours.push(rates.0);
            theirs.push(rates.1);
        }
    }
    Ok((median(ours), median(theirs)))
}
