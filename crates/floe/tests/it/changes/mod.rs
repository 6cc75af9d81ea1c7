//! The change router: which handlers a change goes to, in which order, and what happens to changes that fail.

mod consuming;
mod dead_letters;
mod handlers;
mod processes;
mod recorded;
mod routing;
mod sinks;
mod support;

use crate::support::sim as world;
