//! The read cache answers eventual reads from memory, never shows a process less than it was told of its
//! own writes, and otherwise is not to be told from the engine inside.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod support;

#[path = "read_cache/fixture.rs"]
mod fixture;
#[path = "read_cache/gate.rs"]
mod gate;
#[path = "read_cache/models.rs"]
mod models;
#[path = "support/no_time.rs"]
mod no_time;
#[path = "read_cache/races.rs"]
mod races;
#[path = "read_cache/random.rs"]
mod random;
#[path = "read_cache/reads.rs"]
mod reads;
#[path = "read_cache/tables.rs"]
mod tables;
#[path = "read_cache/writes.rs"]
mod writes;

mod contract {
    //! Reads as they come.
    use super::fixture::Cached;
    floe_testkit::contract_suite!(|| async { Cached::new(1, false) });
}

mod eventual_contract {
    //! Every read that may, is made an eventual one on its way in.
    use super::fixture::Cached;
    floe_testkit::contract_suite!(|| async { Cached::new(1, true) });
}

#[tokio::test]
async fn random_operations_are_answered_as_the_model_answers() {
    for makes_eventual in [false, true] {
        let make = async |seed| fixture::Cached::new(seed, makes_eventual);
        let report = floe_testkit::model::run_property(make, 3, 3000).await;
        println!("{}", report.unwrap());
    }
}
