//! Integration tests of the engine, on disk and in memory. One program, so that it is linked only once.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod backup;
mod changes;
mod common;
mod doctor;
mod expire;
mod export;
mod indexes;
mod open;
mod safety;
mod tokens;
