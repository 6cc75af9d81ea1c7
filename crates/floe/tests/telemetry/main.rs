//! Spans, events and measurements, as a subscriber gets them.
//!
//! In a program of its own: whoever listens in a process is heard by all of it, and others count the requests that are made.

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
