//! The suites of models and transactions. They run on any engine that `super::stage` creates: the embedded
//! one here, the DynamoDB engine over HTTP in `floe-aws`.

mod commit_conditions;
mod commit_limits;
mod commit_races;
mod commit_table;
mod cooperation;
mod fields;
mod hooks;
mod increments;
mod lost_responses;
mod outbox;
mod own_writes;
mod query;
mod reads_together;
mod rows;
mod seed_models;
mod transactions;

use super::stage;
use crate::support::{self, gate, ledger, no_time};
