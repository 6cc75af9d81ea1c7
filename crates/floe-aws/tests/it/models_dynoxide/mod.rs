//! The model and transaction suites of `floe`, run on another store: through the DynamoDB engine over HTTP against
//! `dynoxide` in this process.

mod stage;
#[path = "../../../../floe/tests/it/models/mod.rs"]
mod suites;
