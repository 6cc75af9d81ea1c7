//! The event store: stored items, requests and cost, and its guarantees with concurrent writers, lost responses and
//! cached states.

mod probe;
mod support;

mod cache;
mod conflicts;
mod cost;
mod dialects;
mod large;
mod load;
mod lost_responses;
mod properties;
mod properties_pruned;
mod shapes;

use crate::support::{gate, no_time};
