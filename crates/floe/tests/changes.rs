//! The change router: which handlers a change goes to, in which order, and what becomes of those that fail.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "changes/routing.rs"]
mod routing;
#[path = "changes/support.rs"]
mod support;
