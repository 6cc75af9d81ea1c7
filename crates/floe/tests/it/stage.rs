//! Makes the engines for the suites.

use std::sync::Arc;

use floe::Db;
use floe_local::{LocalEngine, Options};
use floe_store::{Engine, Env};

/// How many increments a suite makes where more show more.
pub(crate) const INCREMENTS: i64 = 100_000;

/// An empty engine.
pub(crate) fn engine() -> Arc<dyn Engine> {
    Arc::new(LocalEngine::memory().unwrap())
}

/// An empty engine whose time and ids belong to the test, and which does nothing on its own.
pub(crate) fn engine_at(env: Env) -> Arc<dyn Engine> {
    let options = Options::new().env(env).background(false);
    Arc::new(LocalEngine::memory_with(options).unwrap())
}

/// A database on an empty engine.
pub(crate) fn db() -> Db {
    Db::with_engine(engine())
}
