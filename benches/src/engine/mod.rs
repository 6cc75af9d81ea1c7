//! The embedded engine beside the raw key-value store and beside `dynoxide-rs`.
//!
//! All three keep the same items in a directory and sync every write before they answer. The raw store
//! does by hand what the engine must do at least: for a conditional put, read the item, write the item,
//! its index entry and its change record in one batch, and sync; for several writers, one batch and one
//! sync for all of them.

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

/// What is done with the items that are read. Only the engine makes a difference: the raw store has
/// no values, and `dynoxide-rs` makes them always.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Look {
    /// They are taken as they come.
    Take,
    /// Every value is looked at.
    Read,
}

/// One of the stores side by side.
pub(crate) trait Subject {
    /// Reads items by their keys, one after the other, for so long.
    fn get(&self, picker: &mut Picker, look: Look, duration: Duration) -> Fallible<Rate>;
    /// Reads `count` consecutive items of a partition, again and again.
    fn query(
        &self,
        picker: &mut Picker,
        count: usize,
        look: Look,
        duration: Duration,
    ) -> Fallible<Rate>;
    /// Replaces items under a condition, durably, from so many writers at once.
    fn put(&self, picker: &mut Picker, writers: usize, duration: Duration) -> Fallible<Rate>;
    /// Replaces three items under conditions, all or nothing and durably, from one writer.
    fn transact(&self, picker: &mut Picker, duration: Duration) -> Fallible<Rate>;
}

#[derive(Clone, Copy)]
enum Work {
    Get(Look),
    Query(usize, Look),
    Put(usize),
    Transact,
}

impl Work {
    fn on(self, subject: &dyn Subject, picker: &mut Picker, round: Duration) -> Fallible<f64> {
        let rate = match self {
            Self::Get(look) => subject.get(picker, look, round),
            Self::Query(count, look) => subject.query(picker, count, look, round),
            Self::Put(writers) => subject.put(picker, writers, round),
            Self::Transact => subject.transact(picker, round),
        };
        rate.map(Rate::per_second)
    }
}

/// A case with the floors that its ratios must reach.
struct Case {
    name: &'static str,
    work: Work,
    floor_raw: Option<f64>,
    floor_dynoxide: Option<f64>,
}

const CASES: &[Case] = &[
    case("get", Work::Get(Look::Take), Some(0.5), Some(4.0)),
    case("get_read", Work::Get(Look::Read), None, None),
    case(
        "query_20",
        Work::Query(20, Look::Take),
        Some(0.5),
        Some(6.0),
    ),
    case("query_20_read", Work::Query(20, Look::Read), None, None),
    case("query_1000", Work::Query(1000, Look::Take), None, None),
    case("put_1", Work::Put(1), Some(0.8), Some(5.0)),
    case("put_16", Work::Put(16), None, None),
    case("put_64", Work::Put(64), Some(0.6), Some(25.0)),
    case("put_256", Work::Put(256), None, None),
    case("transact_3", Work::Transact, None, Some(15.0)),
];

const fn case(
    name: &'static str,
    work: Work,
    floor_raw: Option<f64>,
    floor_dynoxide: Option<f64>,
) -> Case {
    Case {
        name,
        work,
        floor_raw,
        floor_dynoxide,
    }
}

/// Runs the plan; true if every floor was reached.
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
            rates.push(case.work.on(floe, &mut picker, plan.round)?);
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
            let rate = case.work.on(*subject, picker, plan.round)?;
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

/// How much slower each kind of work becomes as the table grows, beside the raw store.
fn run_growth(plan: &Plan) -> Fallible<bool> {
    // The engine may grow slower than the raw store by a quarter for noise, no more.
    const SLACK: f64 = 1.25;
    let works = [
        ("get", Work::Get(Look::Take)),
        ("query_20", Work::Query(20, Look::Take)),
        ("put_64", Work::Put(64)),
    ];
    let mut smallest: Option<[(f64, f64); 3]> = None;
    let mut ok = true;
    let mut items = 10_000;
    while items <= plan.growth_to {
        let folder = tempfile::tempdir()?;
        let before = resident_mib();
        let (floe, raw) = load_pair(folder.path(), items)?;
        let mut now = [(0.0, 0.0); 3];
        for ((name, work), slot) in works.iter().zip(&mut now) {
            *slot = growth_rates(plan, *work, &floe, &raw, items)?;
            let base = smallest.map(|s| {
                works
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
    work: Work,
    floe: &floe::Floe,
    raw: &raw::Raw,
    items: u64,
) -> Fallible<(f64, f64)> {
    let mut pickers = [4, 5].map(|seed| Picker::new(seed, items));
    let [floe_picker, raw_picker] = &mut pickers;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..=plan.rounds {
        let rates = (
            work.on(floe, floe_picker, plan.round)?,
            work.on(raw, raw_picker, plan.round)?,
        );
        if round > 0 {
            ours.push(rates.0);
            theirs.push(rates.1);
        }
    }
    Ok((median(ours), median(theirs)))
}
