//! Integration tests of the library, in one binary that is linked once.
//!
//! Separate binaries: `telemetry`, because a subscriber affects its whole process; `telemetry_off`, because its process
//! must have no subscriber. Compile-fail tests are in `floe-derive`.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod changes;
#[cfg(feature = "lambda")]
mod changes_lambda;
#[cfg(feature = "webhook")]
mod changes_webhook;
mod compile_pass;
mod derive;
mod event_derive;
mod event_harness;
mod event_transactions;
mod events;
mod events_archive;
mod events_coalesce;
mod events_cost;
mod events_feed;
mod events_feed_source;
mod events_prune;
mod graph;
#[cfg(feature = "axum")]
mod http;
mod models;
mod read_cache;
mod registry;
#[cfg(any(feature = "axum", feature = "json-schema"))]
mod seed_features;
mod stage;
mod support;
