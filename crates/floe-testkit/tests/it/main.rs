//! Tests of the test kit, in one program so that it is linked once.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod fault;
mod history;
mod local;
mod model;
