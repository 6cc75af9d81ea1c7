//! Runs the program `floe` as a user does: on a directory, on a server, and in AWS Lambda. Also runs the commands of the
//! book.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![cfg(all(unix, feature = "aws"))]

mod book;
mod demo;
mod feed;
mod graph;
mod indexer;
mod items;
mod json;
mod lambda;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod parked;
mod permissions;
mod refusals;
mod registry;
mod secrets;
mod selection;
mod serve;
mod support;
mod terminal;
mod transfer;
