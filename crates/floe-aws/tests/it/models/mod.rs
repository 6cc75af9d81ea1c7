//! The model and transaction suites of `floe`, run through the DynamoDB engine over HTTP against the Floe server in
//! this process.

mod stage;
#[path = "../../../../floe/tests/it/models/mod.rs"]
mod suites;
