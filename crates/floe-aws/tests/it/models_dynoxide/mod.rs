//! What models and transactions do, on a store that is not ours: through the DynamoDB engine, over HTTP, against
//! `dynoxide` serving in this process. The suites are those of `floe`.

mod stage;
#[path = "../../../../floe/tests/it/models/mod.rs"]
mod suites;
