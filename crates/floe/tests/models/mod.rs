//! The suites of models and transactions. They run on any engine that `crate::stage` makes for them: the embedded
//! one here, the DynamoDB engine over HTTP in `floe-aws`.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod commit_races;
mod commit_table;
#[expect(
    dead_code,
    clippy::indexing_slicing,
    reason = "the tests of the cache use the rest"
)]
#[path = "../read_cache/gate.rs"]
mod gate;
#[path = "../support/ledger.rs"]
mod ledger;
mod lost_answers;
#[path = "../support/no_time.rs"]
mod no_time;
mod outbox;
mod query;
mod rows;
mod seed_models;
#[path = "../support/mod.rs"]
mod support;
mod transactions;
