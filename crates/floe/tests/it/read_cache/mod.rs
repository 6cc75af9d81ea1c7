//! The read cache answers eventual reads from memory, never shows a process less than it was told of its
//! own writes, and otherwise is not to be told from the engine inside.

mod fixture;
mod models;
mod races;
mod random;
mod reads;
mod tables;
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

use crate::support::{self, gate, no_time};
