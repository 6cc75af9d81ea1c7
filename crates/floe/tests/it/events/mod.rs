//! What an event store stores, sends and costs, and what it promises while others write, answers are lost and states
//! are kept.

mod probe;
mod support;

mod cache;
mod conflicts;
mod cost;
mod dialects;
mod large;
mod load;
mod lost_answers;
mod properties;
mod properties_pruned;
mod shapes;

use crate::support::{gate, no_time};
