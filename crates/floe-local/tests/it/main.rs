//! The engine from outside, on directories and in memory, in one program, so that it is linked once.

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
