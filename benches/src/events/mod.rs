//! Appends to streams compared with the same updates as raw requests, loads of a long stream compared with a short one,
//! appends to one stream with and without coalescing, and the lag of a reader at the tail of the feed.
//!
//! Both sides use the same engine and table, each with its own items, in alternating rounds, so that only the cost of
//! streams differs. No two tasks use the same stream, so that there are no conflicts.

mod append;
mod coalesce;
mod data;
mod load;
mod plan;
mod raw_requests;
mod streams;
mod tail;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use floe::Db;
use tokio::runtime::Runtime;

use crate::rounds::{Failure, TaskResult, engine, runtime};
use crate::{Benchmark, Fallible, parsed};
use plan::{Flags, Plan};
use raw_requests::RawRequests;
use streams::Streams;

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "events",
    about: plan::ABOUT,
    details: plan::DETAILS,
    flags: Flags::augment_args,
    prepare: |flags| {
        let plan = Plan::of(parsed(flags)?);
        let appends = append::CASES.iter().map(|case| case.name);
        let loads = load::CASES.iter().map(|case| case.name);
        let others = [coalesce::NAME, tail::NAME];
        plan.cases.check(appends.chain(loads).chain(others))?;
        Ok(Box::new(move || run(&plan)))
    },
};

/// Runs the plan. Returns whether all floors were reached.
fn run(plan: &Plan) -> Fallible<bool> {
    let folder = tempfile::tempdir()?;
    let fixture = Fixture::load(Some(folder.path()))?;
    let mut ok = true;
    for case in append::CASES
        .iter()
        .filter(|case| plan.cases.wants(case.name))
    {
        ok &= case.run(&fixture, plan)?;
    }
    for case in load::CASES
        .iter()
        .filter(|case| plan.cases.wants(case.name))
    {
        ok &= case.run(&fixture, plan)?;
    }
    if plan.cases.wants(coalesce::NAME) {
        ok &= coalesce::run(&fixture, plan)?;
    }
    if plan.cases.wants(tail::NAME) {
        ok &= tail::run(&fixture, plan)?;
    }
    Ok(ok)
}

/// Both sides on one engine.
struct Fixture {
    db: Db,
    streams: Arc<Streams>,
    raw: Arc<RawRequests>,
    runtime: Runtime,
}

impl Fixture {
    /// Creates the tables in a directory, or in memory.
    fn load(folder: Option<&Path>) -> Fallible<Self> {
        let (runtime, engine) = (runtime()?, engine(folder)?);
        let db = Db::with_engine(Arc::clone(&engine));
        runtime.block_on(db.events().ensure_table())?;
        let table = db.events().options().table.clone();
        Ok(Self {
            streams: Arc::new(Streams::new(&db)),
            raw: Arc::new(RawRequests { engine, table }),
            db,
            runtime,
        })
    }

    fn wait<T>(&self, work: impl Future<Output = TaskResult<T>>) -> Fallible<T> {
        Ok(self.runtime.block_on(work).map_err(|error| error.0)?)
    }
}

#[cfg(test)]
mod tests {
    use floe_store::Item;
    use floe_store::op::GetItem;
    use floe_store::size::item_size;

    use super::append::{Subject, TaskStream};
    use super::*;

    /// Both sides must store the same data, otherwise they are not comparable.
    #[test]
    fn both_sides_store_the_same() {
        let fixture = Fixture::load(None).unwrap();
        let find = |key: Item| {
            let get = GetItem::new(&fixture.raw.table, key);
            let output = fixture.runtime.block_on(fixture.raw.engine.get_item(get));
            output.unwrap().item.unwrap()
        };
        let mut own = TaskStream::new();
        for _ in 1..data::STREAM_EVENTS {
            fixture.wait(fixture.streams.append(&own)).unwrap();
            fixture.wait(fixture.raw.append(&own)).unwrap();
            own = own.appended();
        }
        let by_hand = find(raw_requests::key(&own));
        let stream = format!("Ledger-{}", own.id);
        let appended = find(raw_requests::key(&own).with("p", stream));
        for item in [&by_hand, &appended] {
            assert_eq!(item.get("n"), Some(&own.version.into()));
            let events = item.get("e").unwrap().as_l().unwrap();
            assert_eq!(events.len() as u64, own.version);
        }
        let (ours, theirs) = (item_size(&appended), item_size(&by_hand));
        assert!(ours.abs_diff(theirs) * 100 < theirs, "{ours} {theirs}");
    }

    #[test]
    fn full_stream_is_followed_by_a_new_one() {
        let mut own = TaskStream::new();
        let first = own.id.clone();
        for version in 0..data::STREAM_EVENTS {
            assert_eq!((&own.id, own.version), (&first, version));
            own = own.appended();
        }
        assert_ne!(own.id, first);
        assert_eq!(own.version, 0);
    }
}
