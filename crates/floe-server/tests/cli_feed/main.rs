//! The commands of the feed, started as a user starts them: on a directory, behind a server, and in AWS Lambda.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]
#![cfg(all(unix, feature = "feed"))]

mod feed;
mod indexer;
mod lambda;
mod world;
