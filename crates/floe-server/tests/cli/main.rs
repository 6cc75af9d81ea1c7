//! The program `floe`, started as a user starts it: on a directory, behind a server, and in AWS Lambda.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![cfg(unix)]

#[cfg(feature = "cli")]
mod demo;
#[cfg(feature = "cli")]
mod feed;
#[cfg(feature = "cli")]
mod graph;
#[cfg(feature = "cli")]
mod indexer;
#[cfg(feature = "cli")]
mod items;
#[cfg(feature = "cli")]
mod lambda;
#[cfg(feature = "cli")]
mod parked;
#[cfg(feature = "cli")]
mod permissions;
#[cfg(feature = "cli")]
mod refusals;
#[cfg(feature = "cli")]
mod registry;
mod secrets;
mod serve;
#[cfg(feature = "cli")]
mod transfer;
#[cfg(feature = "cli")]
mod world;
