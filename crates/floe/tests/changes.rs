//! The change router: which handlers a change goes to, in which order, and what becomes of those that fail.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "changes/consuming.rs"]
mod consuming;
#[path = "changes/handlers.rs"]
mod handlers;
#[path = "changes/parking.rs"]
mod parking;
#[path = "changes/processes.rs"]
mod processes;
#[path = "changes/recorded.rs"]
mod recorded;
#[path = "changes/routing.rs"]
mod routing;
#[path = "changes/sinks.rs"]
mod sinks;
#[path = "changes/support.rs"]
mod support;
#[path = "support/sim.rs"]
mod world;
