//! The change router: which handlers a change goes to, in which order, and what becomes of those that fail.

mod consuming;
mod handlers;
mod parking;
mod processes;
mod recorded;
mod routing;
mod sinks;
mod support;

use crate::support::sim as world;
