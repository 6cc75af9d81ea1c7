//! The versioned registry: what it answers, what it asks of the store, and that there is always one latest version.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "registry/access_patterns.rs"]
mod access_patterns;
#[path = "registry/awkward.rs"]
mod awkward;
#[path = "registry/described.rs"]
mod described;
#[path = "registry/expiry.rs"]
mod expiry;
#[path = "registry/holds.rs"]
mod holds;
#[path = "registry/life.rs"]
mod life;
#[path = "registry/model.rs"]
mod model;
#[path = "support/no_time.rs"]
mod no_time;
#[path = "registry/properties.rs"]
mod properties;
#[path = "registry/races.rs"]
mod races;
#[path = "registry/read_only.rs"]
mod read_only;
#[path = "registry/shapes.rs"]
mod shapes;
#[path = "graph/slow.rs"]
mod slow;
#[path = "registry/support.rs"]
mod support;
#[path = "registry/transactions.rs"]
mod transactions;
