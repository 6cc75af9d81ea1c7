//! The fault engine does what it is asked, as often as it is asked, the same again from the same seed,
//! and nothing else: without faults it is not to be told from the engine inside.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "fault/batches.rs"]
mod batches;
#[path = "fault/fixture.rs"]
mod fixture;
#[path = "fault/histories.rs"]
mod histories;
#[path = "fault/records.rs"]
mod records;
#[path = "fault/refusals.rs"]
mod refusals;
#[path = "fault/replay.rs"]
mod replay;
#[path = "fault/shards.rs"]
mod shards;
#[path = "fault/stale.rs"]
mod stale;

mod contract {
    //! The wrapper keeps the contract while it watches every write and splits shards.
    use super::fixture::QuietHarness;
    floe_testkit::contract_suite!(|| async { QuietHarness::new(1) });
}
