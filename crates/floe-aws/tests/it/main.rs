//! Tests of the DynamoDB engine against the Floe server and `dynoxide`, both served in this process, in one binary that
//! is linked once. The model suites are those of `floe`.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]
#![expect(clippy::duplicate_mod, reason = "the suites run against both servers")]

mod contract_dynoxide;
mod contract_floe;
mod credentials;
mod engine;
#[cfg(feature = "eventbridge")]
mod eventbridge;
mod faults;
mod models;
mod models_dynoxide;
/// Support code shared by the suites of `floe`.
#[path = "../../../floe/tests/it/support/mod.rs"]
#[expect(dead_code, reason = "the tests of floe use the rest")]
mod support;
mod world;
