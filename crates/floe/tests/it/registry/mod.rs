//! The versioned registry: results, requests, and the invariant that each group has one latest version.

mod access_patterns;
mod described;
mod edge_cases;
mod expiry;
mod items;
mod life_cycle;
mod model;
mod properties;
mod races;
mod read_only;
mod retention;
mod split_batch;
mod support;
mod transactions;

use crate::support::{no_time, slow};
