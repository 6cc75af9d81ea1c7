//! Tests of the server over HTTP and of the service without it, in one binary that is linked once.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod compression;
mod guard;
mod http;
mod metrics;
mod sign;
mod sigv4;
mod support;
mod wire;
