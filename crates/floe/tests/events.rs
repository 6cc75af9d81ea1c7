//! What an event store stores, sends and costs, and what it promises while others write, answers are lost and states
//! are kept.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "read_cache/gate.rs"]
mod gate;
#[path = "support/no_time.rs"]
mod no_time;
#[path = "events/probe.rs"]
mod probe;
#[path = "events/support.rs"]
mod support;

#[path = "events/cache.rs"]
mod cache;
#[path = "events/conflicts.rs"]
mod conflicts;
#[path = "events/cost.rs"]
mod cost;
#[path = "events/dialects.rs"]
mod dialects;
#[path = "events/large.rs"]
mod large;
#[path = "events/load.rs"]
mod load;
#[path = "events/lost_answers.rs"]
mod lost_answers;
#[path = "events/properties.rs"]
mod properties;
#[path = "events/properties_pruned.rs"]
mod properties_pruned;
#[path = "events/shapes.rs"]
mod shapes;
