//! The entity graph: results, requests, and the consistency of its tables.

mod deletion;
mod entities;
mod indexes;
mod lists;
mod model;
mod plans;
mod properties;
mod races;
mod repair;
mod shared_lists;
mod steps;
mod support;
mod transactions;
mod typed;
mod unfinished;
mod use_cases;

use crate::support::{no_time, slow};
