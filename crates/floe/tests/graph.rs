//! The entity graph: what it answers, what it asks of the store, and that its tables always agree.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "graph/deletion.rs"]
mod deletion;
#[path = "graph/entities.rs"]
mod entities;
#[path = "graph/indexes.rs"]
mod indexes;
#[path = "graph/lists.rs"]
mod lists;
#[path = "graph/model.rs"]
mod model;
#[path = "support/no_time.rs"]
mod no_time;
#[path = "graph/plans.rs"]
mod plans;
#[path = "graph/properties.rs"]
mod properties;
#[path = "graph/races.rs"]
mod races;
#[path = "graph/repair.rs"]
mod repair;
#[path = "graph/shared_lists.rs"]
mod shared_lists;
#[path = "graph/slow.rs"]
mod slow;
#[path = "graph/steps.rs"]
mod steps;
#[path = "graph/support.rs"]
mod support;
#[path = "graph/transactions.rs"]
mod transactions;
#[path = "graph/use_cases.rs"]
mod use_cases;
