//! Creates the engines for the suites.

use std::sync::Arc;

use floe::Db;
use floe_local::{LocalEngine, Options};
use floe_store::{Engine, Env};

/// Number of increments in suites with many.
pub(crate) const INCREMENTS: i64 = 100_000;

/// Returns an empty engine.
pub(crate) fn engine() -> Arc<dyn Engine> {
    Arc::new(LocalEngine::memory().unwrap())
}

/// Returns an empty engine with the test's clock and ids, and without background work.
pub(crate) fn engine_at(env: Env) -> Arc<dyn Engine> {
    let options = Options::new().env(env).background(false);
    Arc::new(LocalEngine::memory_with(options).unwrap())
}

/// Returns a database on an empty engine.
pub(crate) fn db() -> Db {
    Db::with_engine(engine())
}
