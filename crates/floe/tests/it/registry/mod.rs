//! The versioned registry: what it answers, what it asks of the store, and that there is always one latest version.

mod access_patterns;
mod awkward;
mod described;
mod expiry;
mod halved;
mod holds;
mod life;
mod model;
mod properties;
mod races;
mod read_only;
mod shapes;
mod support;
mod transactions;

use crate::support::{no_time, slow};
