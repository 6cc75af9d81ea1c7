//! Spans, events and measurements, as a subscriber gets them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "telemetry/collect.rs"]
mod collect;
#[path = "telemetry/feed.rs"]
mod feed;
#[path = "telemetry/graph.rs"]
mod graph;
#[path = "telemetry/requests.rs"]
mod requests;
#[path = "telemetry/streams.rs"]
mod streams;
mod support;
#[path = "telemetry/transactions.rs"]
mod transactions;
#[path = "support/sim.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod world;
