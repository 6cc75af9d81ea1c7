//! What models and transactions do, once more: through the DynamoDB engine, over HTTP, against the Floe server in
//! this process. The suites are those of `floe`.

mod stage;
#[path = "../../../../floe/tests/it/models/mod.rs"]
mod suites;
