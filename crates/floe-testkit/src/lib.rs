//! Tests that any engine of Floe runs, and the parts to make more of them.
//!
//! An engine under test stands in a [`Harness`]. Two lines hold it to everything that engines promise:
//!
//! ```no_run
//! mod contract {
//!     floe_testkit::contract_suite!(|| async { floe_testkit::model::ModelHarness::new(1) });
//! }
//!
//! # async fn example() {
//! use floe_testkit::model::{ModelHarness, run_property};
//!
//! let report = run_property(async |seed| ModelHarness::new(seed), 1, 10_000).await;
//! println!("{}", report.unwrap());
//! # }
//! ```
//!
//! # What is where
//!
//! | module | what it holds |
//! |---|---|
//! | [`contract`] | the contract suite: one named case for each rule that every engine keeps |
//! | [`model`] | an engine that is slow and obviously right, and random operations compared with it |
//! | [`fault`] | an engine around an engine that lies like the cloud, seeded and replayable |
//! | [`proxy`] | a proxy between client and server that cuts connections, seeded |
//! | [`history`] | checkers of what many clients saw: linearizability, isolation |
//! | [`meter`] | an engine around an engine that adds up what it is charged |
//! | [`record`] | an engine around an engine that remembers what it was asked |
//! | [`time`] | time that belongs to the test |
//! | [`harness`] | what a test needs of an engine besides its operations |
//!
//! What is not here: tests of one engine's insides, which stand with the engine.

#![forbid(unsafe_code)]

#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a case of the suite is a test: it fails by panicking"
)]
pub mod contract;
pub mod fault;
pub mod harness;
pub mod history;
mod lock;
pub mod meter;
pub mod model;
pub mod proxy;
pub mod record;
pub mod time;

pub use harness::Harness;
