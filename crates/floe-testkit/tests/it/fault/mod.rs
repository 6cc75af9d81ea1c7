//! The fault engine injects the configured faults at the configured rates, repeats them from the same seed, and
//! changes nothing else: without faults it behaves as the wrapped engine.

mod batches;
mod fixture;
mod histories;
mod records;
mod rejections;
mod replay;
mod shards;
mod stale;

mod contract {
    //! The wrapper passes the contract suite while it tracks every write and splits shards.
    use super::fixture::QuietHarness;
    floe_testkit::contract_suite!(|| async { QuietHarness::new(1) });
}
