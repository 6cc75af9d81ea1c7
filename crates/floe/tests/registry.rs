//! The versioned registry: what it answers, what it asks of the store, and that there is always one latest version.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "registry/access_patterns.rs"]
mod access_patterns;
#[path = "registry/awkward.rs"]
mod awkward;
#[path = "registry/holds.rs"]
mod holds;
#[path = "support/no_time.rs"]
mod no_time;
#[path = "registry/shapes.rs"]
mod shapes;
#[path = "registry/support.rs"]
mod support;
#[path = "registry/transactions.rs"]
mod transactions;
