//! The read cache answers eventual reads from memory. A process always sees its own acknowledged writes, and results
//! otherwise equal those of the inner engine.

mod fixture;
mod models;
mod races;
mod random;
mod reads;
mod tables;
mod writes;

mod contract {
    //! Reads as the suite sends them.
    use super::fixture::Cached;
    floe_testkit::contract_suite!(|| async { Cached::new(1, false) });
}

mod eventual_contract {
    //! Every read that can be eventual is made eventual.
    use super::fixture::Cached;
    floe_testkit::contract_suite!(|| async { Cached::new(1, true) });
}

#[tokio::test]
async fn random_operations_match_the_model() {
    for makes_eventual in [false, true] {
        let make = async |seed| fixture::Cached::new(seed, makes_eventual);
        let report = floe_testkit::model::run_property(make, 3, 3000).await;
        println!("{}", report.unwrap());
    }
}

use crate::support::{self, gate, no_time};
