//! Appends to streams beside the same updates made by hand, loads of a long stream beside a short one, appends to one
//! stream with and without coalescing, and how far a reader at the tail of the feed is behind.
//!
//! Both sides work on the same engine and the same table, each on items of its own, in alternating rounds:
//! what differs is what a stream does for its user. No two tasks touch the same stream, so that nothing is
//! measured but the way there and back.

mod append;
mod coalesce;
mod data;
mod hand;
mod load;
mod plan;
mod streams;
mod tail;

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use floe::Db;
use tokio::runtime::Runtime;

use crate::play::{Failure, Sent, engine, runtime};
use crate::{Benchmark, Fallible, parsed};
use hand::Hand;
use plan::{Flags, Plan};
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

/// Runs the plan; true if every floor was reached.
fn run(plan: &Plan) -> Fallible<bool> {
    let folder = tempfile::tempdir()?;
    let stage = Stage::load(Some(folder.path()))?;
    let mut ok = true;
    for case in append::CASES
        .iter()
        .filter(|case| plan.cases.wants(case.name))
    {
        ok &= case.run(&stage, plan)?;
    }
    for case in load::CASES
        .iter()
        .filter(|case| plan.cases.wants(case.name))
    {
        ok &= case.run(&stage, plan)?;
    }
    if plan.cases.wants(coalesce::NAME) {
        ok &= coalesce::run(&stage, plan)?;
    }
    if plan.cases.wants(tail::NAME) {
        ok &= tail::run(&stage, plan)?;
    }
    Ok(ok)
}

/// Both sides on one engine.
struct Stage {
    db: Db,
    streams: Arc<Streams>,
    hand: Arc<Hand>,
    runtime: Runtime,
}

impl Stage {
    /// On a directory, or in memory.
    fn load(folder: Option<&Path>) -> Fallible<Self> {
        let (runtime, engine) = (runtime()?, engine(folder)?);
        let db = Db::with_engine(Arc::clone(&engine));
        runtime.block_on(db.events().ensure_table())?;
        let table = db.events().options().table.clone();
        Ok(Self {
            streams: Arc::new(Streams::new(&db)),
            hand: Arc::new(Hand { engine, table }),
            db,
            runtime,
        })
    }

    fn wait<T>(&self, work: impl Future<Output = Sent<T>>) -> Fallible<T> {
        Ok(self.runtime.block_on(work).map_err(|error| error.0)?)
    }
}

#[cfg(test)]
mod tests {
    use floe_store::Item;
    use floe_store::op::GetItem;
    use floe_store::size::item_size;

    use super::append::{Own, Subject};
    use super::*;

    /// Both sides must leave the same behind, or they are not doing the same work.
    #[test]
    fn both_sides_do_the_same() {
        let stage = Stage::load(None).unwrap();
        let find = |key: Item| {
            let get = GetItem::new(&stage.hand.table, key);
            let output = stage.runtime.block_on(stage.hand.engine.get_item(get));
            output.unwrap().item.unwrap()
        };
        let mut own = Own::new();
        for _ in 1..data::STREAM_EVENTS {
            stage.wait(stage.streams.append(&own)).unwrap();
            stage.wait(stage.hand.append(&own)).unwrap();
            own = own.appended();
        }
        let by_hand = find(hand::key(&own));
        let stream = format!("Ledger-{}", own.id);
        let appended = find(hand::key(&own).with("p", stream));
        for item in [&by_hand, &appended] {
            assert_eq!(item.get("n"), Some(&own.version.into()));
            let events = item.get("e").unwrap().as_l().unwrap();
            assert_eq!(events.len() as u64, own.version);
        }
        let (ours, theirs) = (item_size(&appended), item_size(&by_hand));
        assert!(ours.abs_diff(theirs) * 100 < theirs, "{ours} {theirs}");
    }

    #[test]
    fn a_stream_that_is_long_enough_is_followed_by_another() {
        let mut own = Own::new();
        let first = own.id.clone();
        for version in 0..data::STREAM_EVENTS {
            assert_eq!((&own.id, own.version), (&first, version));
            own = own.appended();
        }
        assert_ne!(own.id, first);
        assert_eq!(own.version, 0);
    }
}
