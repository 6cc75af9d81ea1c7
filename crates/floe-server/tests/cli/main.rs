//! The commands of the feed and of the graph, started as a user starts them: on a directory, behind a server, and in AWS
//! Lambda.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![cfg(all(unix, feature = "feed"))]

mod feed;
mod graph;
mod indexer;
mod lambda;
mod world;
