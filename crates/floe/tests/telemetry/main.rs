//! Spans, events and measurements, as a subscriber receives them.
//!
//! A separate binary: a subscriber affects its whole process, and other tests count requests.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod collect;
#[cfg(feature = "otlp")]
mod collector;
mod feed;
mod graph;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp")]
mod protobuf;
mod requests;
mod streams;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;
mod transactions;

use support::sim as world;
