//! The server from outside: over HTTP, and as a service that is handed bodies; in one program, so that it is linked once.

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
