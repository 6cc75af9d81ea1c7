//! The fault engine does what it is asked, as often as it is asked, the same again from the same seed,
//! and nothing else: without faults it is not to be told from the engine inside.

mod batches;
mod fixture;
mod histories;
mod records;
mod refusals;
mod replay;
mod shards;
mod stale;

mod contract {
    //! The wrapper keeps the contract while it watches every write and splits shards.
    use super::fixture::QuietHarness;
    floe_testkit::contract_suite!(|| async { QuietHarness::new(1) });
}
