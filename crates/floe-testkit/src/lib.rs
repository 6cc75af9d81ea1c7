//! Tests for every engine of Floe, and the tools to write more.
//!
//! An engine under test is passed as a [`Harness`]. Two lines check it against everything that engines guarantee:
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
//! | module | contents |
//! |---|---|
//! | [`contract`] | the contract suite: one named case for each rule that every engine follows |
//! | [`model`] | a simple reference engine, and random operations compared with it |
//! | [`fault`] | an engine that wraps another one and injects faults by a seed |
//! | [`proxy`] | a proxy between client and server that cuts connections by a seed |
//! | [`history`] | checkers of recorded histories: linearizability, isolation |
//! | [`meter`] | an engine that wraps another one and adds up consumed capacity |
//! | [`record`] | an engine that wraps another one and records its requests |
//! | [`time`] | a test environment with a manual clock |
//! | [`harness`] | what a test needs of an engine besides its operations |
//!
//! Tests of the internals of an engine are in the crate of that engine.

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
mod key_range;
mod lock;
pub mod meter;
pub mod model;
pub mod proxy;
pub mod record;
pub mod time;

pub use harness::Harness;
